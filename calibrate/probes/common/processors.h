// Sets of processors as the kernel writes them.
#pragma once

#include <sched.h>

#include <optional>
#include <string>

namespace railyard::probe {

// "0-3,8" as the kernel writes lists of processors; nothing when it is no such list or empty.
std::optional<cpu_set_t> parse_processors(const std::string& list);

}  // namespace railyard::probe
