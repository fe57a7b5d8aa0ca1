// The steps of build_system, shared by its files. Not for others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/nccl/system.h"

namespace railyard::algorithms::nccl {

// A host's hardware as the ranks see it together: only what leads to their GPUs and to NICs, in
// the order in which ranks brought it. `first_rank` is the position of the rank that did.
struct FusedPci {
  const sim::HardwarePci* pci = nullptr;
  std::size_t first_rank = 0;
  std::int32_t rank = -1;  // of its GPU
  std::vector<FusedPci> children;
};
struct FusedCpu {
  const sim::HardwareCpu* cpu = nullptr;
  std::size_t first_rank = 0;
  std::int32_t host = 0;
  std::vector<FusedPci> pci;
};
sim::Result<std::vector<FusedCpu>> fuse(const NodeInputs& inputs);

// NCCL's number of a bus id: its hexadecimal digits.
std::int64_t bus_number(std::string_view bus_id);
// Host in the top 8 bits.
std::int64_t system_id(std::int32_t host, std::int64_t local);

// Parallel links add up; a vertex's links stay sorted by bandwidth, ties in order of arrival.
void connect(System& system, std::int32_t from, const SystemLink& link);
void connect_both(System& system, std::int32_t from, const SystemLink& link);

// NVLinks, C2C and PCI links between switches, once all vertices stand.
sim::Result<void> add_links(System& system, const std::vector<FusedCpu>& cpus);
// Two-level Broadcom switches pass for one.
void flatten_switches(System& system);
void connect_cpus(System& system);
// PCI links upwards go last.
void sort_links(System& system);

}  // namespace railyard::algorithms::nccl
