#include "topologies/import/bus_id.h"

namespace railyard::topologies {

std::optional<std::uint64_t> bus_number(std::string_view bus_id) {
  std::uint64_t number = 0;
  bool any = false;
  for (const char c : bus_id) {
    if (c == ':' || c == '.') continue;
    std::uint64_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<std::uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<std::uint64_t>(c - 'a') + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<std::uint64_t>(c - 'A') + 10;
    } else {
      return std::nullopt;
    }
    if ((number >> 60) != 0) return std::nullopt;
    number = number << 4 | digit;
    any = true;
  }
  if (!any) return std::nullopt;
  return number;
}

bool same_bus_id(std::string_view a, std::string_view b) {
  const auto first = bus_number(a);
  return first.has_value() && first == bus_number(b);
}

}  // namespace railyard::topologies
