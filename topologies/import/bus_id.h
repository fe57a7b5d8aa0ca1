// PCI bus ids: "0000:1b:00.0" and its variants (longer domains, upper case, no function).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace railyard::topologies {

// NCCL's number of a bus id: its hexadecimal digits in a row. nullopt if there is anything but
// digits, ':' and '.', or more than 16 digits count.
std::optional<std::uint64_t> bus_number(std::string_view bus_id);

// Do the ids name one device? (Case and the length of the domain do not matter.)
bool same_bus_id(std::string_view a, std::string_view b);

}  // namespace railyard::topologies
