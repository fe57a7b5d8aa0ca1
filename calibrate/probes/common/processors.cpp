#include "calibrate/probes/common/processors.h"

#include <sstream>

namespace railyard::probe {

std::optional<cpu_set_t> parse_processors(const std::string& list) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) {
    std::istringstream range(part);
    int first = -1, last = -1;
    char dash = 0;
    if (!(range >> first)) return std::nullopt;
    if (!(range >> dash >> last)) last = first;
    if (first < 0 || last < first || last >= CPU_SETSIZE) return std::nullopt;
    for (int processor = first; processor <= last; ++processor)
      CPU_SET(static_cast<std::size_t>(processor), &set);
  }
  if (CPU_COUNT(&set) == 0) return std::nullopt;
  return set;
}

}  // namespace railyard::probe
