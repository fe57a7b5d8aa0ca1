// All parameter structs of a profile with the names that files use, and single parameters by their
// dotted path ("links.nvlink.efficiency").
//
// The unit of a parameter as a number is SI: seconds, bytes, bytes/s, FLOP/s; ratios as they are.
#pragma once

#include <string>
#include <string_view>

#include "sim/parameters.h"
#include "sim/result.h"

namespace railyard::sim {

// Calls visit(path prefix, struct) for every struct, in the order of the file.
template <typename AnyParameters, typename Visitor>
void for_each_group(AnyParameters& parameters, Visitor&& visit) {
  visit(std::string("gpu"), parameters.gpu);
  visit(std::string("host"), parameters.host);
  visit(std::string("network"), parameters.network);
  visit(std::string("nvls"), parameters.nvls);
  visit(std::string("send_recv"), parameters.send_recv);
  visit(std::string("gloo"), parameters.gloo);
  for (const auto& entry : EnumTable<LinkClass>::entries)
    visit("links." + std::string(entry.name),
          parameters.links[static_cast<std::size_t>(entry.value)]);
  for (const auto& entry : EnumTable<Protocol>::entries)
    visit("protocols." + std::string(entry.name),
          parameters.protocols[static_cast<std::size_t>(entry.value)]);
}

// Unknown path: an error with the nearest name.
Result<double> parameter_value(const Parameters& parameters, std::string_view path);
Result<void> set_parameter(Parameters& parameters, std::string_view path, double value);

}  // namespace railyard::sim
