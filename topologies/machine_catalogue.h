// The catalogue's parts; each function is one file's worth of data tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topologies/machine.h"

namespace railyard::topologies {

std::vector<MachineSpec> sxm_machines();      // machines_sxm.cpp: DGX and HGX
std::vector<MachineSpec> quad_machines();     // machines_quad.cpp: four GPUs wired in pairs
std::vector<MachineSpec> grace_machines();    // machines_grace.cpp
std::vector<MachineSpec> plain_machines();    // machines_plain.cpp: the A100 PCIe boxes, flat
std::vector<MachineSpec> card_machines();     // machines_cards.cpp: data-centre PCIe cards
std::vector<MachineSpec> geforce_machines();  // machines_geforce.cpp: workstation cards

// Sources that several entries cite.
inline constexpr std::string_view kPcieGen3 = "PCIe 3.0 x16: 16 lanes x 8 GT/s x 128/130";
inline constexpr std::string_view kPcieGen4 = "PCIe 4.0 x16: 16 lanes x 16 GT/s x 128/130";
inline constexpr std::string_view kPcieGen5 = "PCIe 5.0 x16: 16 lanes x 32 GT/s x 128/130";
inline constexpr std::string_view kPcieGen6 = "PCIe 6.0 x16: 16 lanes x 64 GT/s x 236/256 (FLITs)";

inline Rate pcie_gen3() { return {sim::gigabytes_per_second(15.754), std::string(kPcieGen3)}; }
inline Rate pcie_gen4() { return {sim::gigabytes_per_second(31.508), std::string(kPcieGen4)}; }
inline Rate pcie_gen5() { return {sim::gigabytes_per_second(63.015), std::string(kPcieGen5)}; }
inline Rate pcie_gen6() { return {pcie_rate(64, 16), std::string(kPcieGen6)}; }

// Processors that several entries have. Families as NCCL's dumps print them: 0x8F, 0xAF.
inline HostCpu broadwell() {
  return {"x86_64", "GenuineIntel", 6, 79, "Xeon E5-2698 v4 (Broadwell)"};
}
inline HostCpu skylake() {
  return {"x86_64", "GenuineIntel", 6, 85, "Xeon Scalable, 1st and 2nd generation (Skylake)"};
}
inline HostCpu sapphire_rapids() {
  return {"x86_64", "GenuineIntel", 6, 143, "Xeon Platinum 8480C (Sapphire Rapids)"};
}
inline HostCpu rome() { return {"x86_64", "AuthenticAMD", 143, 49, "EPYC 7002 (Rome)"}; }
inline HostCpu milan() { return {"x86_64", "AuthenticAMD", 175, 1, "EPYC 7003 (Milan)"}; }
inline HostCpu genoa() { return {"x86_64", "AuthenticAMD", 175, 17, "EPYC 9004 (Genoa)"}; }

// Between the sockets of two such processors.
inline Rate broadwell_smp() {
  return {sim::gigabytes_per_second(38.4), "Xeon E5-2698 v4: 2 x QPI at 9.6 GT/s x 2 B"};
}
inline Rate skylake_smp() {
  return {sim::gigabytes_per_second(62.4), "Xeon Platinum: 3 x UPI at 10.4 GT/s x 2 B"};
}
inline Rate sapphire_rapids_smp() {
  return {sim::gigabytes_per_second(128), "Xeon 8480C: 4 x UPI at 16 GT/s x 2 B"};
}
inline Rate epyc_smp() {
  return {sim::gigabytes_per_second(96),
          "EPYC 7002 and 7003: 3 x xGMI x16 at 16 GT/s between the sockets"};
}
inline Rate genoa_smp() {
  return {sim::gigabytes_per_second(192), "EPYC 9004: 3 x xGMI x16 at 32 GT/s between the sockets"};
}

}  // namespace railyard::topologies
