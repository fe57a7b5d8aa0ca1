// Sets of CPUs in the two spellings of the tools: nvidia-smi's list "0-55,112-167" and the kernel's
// mask "ff000000,00ffffff" (32-bit words, most significant first).
#pragma once

#include <string>
#include <string_view>

namespace railyard::topologies {

// Empty if the text is not of the other kind or names a CPU above 65,535.
std::string cpu_mask(std::string_view list);
std::string cpu_list(std::string_view mask);

}  // namespace railyard::topologies
