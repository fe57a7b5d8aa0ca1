// The catalogue's parts; each function is one file's worth of data tables.
#pragma once

#include <vector>

#include "topologies/machine.h"

namespace railyard::topologies {

std::vector<MachineSpec> sxm_machines();    // machines_sxm.cpp: DGX and HGX
std::vector<MachineSpec> grace_machines();  // machines_grace.cpp
std::vector<MachineSpec> plain_machines();  // machines_plain.cpp: PCIe boxes, flat

// Sources that several entries cite.
inline constexpr std::string_view kPcieGen3 = "PCIe 3.0 x16: 16 lanes x 8 GT/s x 128/130";
inline constexpr std::string_view kPcieGen4 = "PCIe 4.0 x16: 16 lanes x 16 GT/s x 128/130";
inline constexpr std::string_view kPcieGen5 = "PCIe 5.0 x16: 16 lanes x 32 GT/s x 128/130";

inline Rate pcie_gen3() { return {sim::gigabytes_per_second(15.754), std::string(kPcieGen3)}; }
inline Rate pcie_gen4() { return {sim::gigabytes_per_second(31.508), std::string(kPcieGen4)}; }
inline Rate pcie_gen5() { return {sim::gigabytes_per_second(63.015), std::string(kPcieGen5)}; }

}  // namespace railyard::topologies
