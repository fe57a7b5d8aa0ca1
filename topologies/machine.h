// Machine catalogue: what is inside one node. An entry is a data table (machines_*.cpp); every
// figure carries its source. Rates are line rates of one direction, as in the datasheet.
//
// Invariants of a catalogue entry: parents point at existing switches and CPUs; a switch's parent
// comes before it; NVLinks of a GPU add up to `nvlinks_per_gpu`. Cost: O(entry).
//
//   RAILYARD_ASSIGN(const MachineSpec machine, find_machine("hgx-h100"));
//   machine.gpus.size() == 8
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"
#include "sim/topology.h"
#include "sim/units.h"

namespace railyard::topologies {

inline constexpr std::uint64_t kMaxGpus = 1'000'000;  // of a cluster

// A datasheet figure and where it was published.
struct Rate {
  sim::Bandwidth value{};
  std::string_view source{};
};

// What a GPU, NIC or PCIe switch hangs from.
struct Parent {
  bool is_switch = false;
  std::uint32_t index = 0;
};
constexpr Parent at_switch(std::uint32_t index) { return {true, index}; }
constexpr Parent at_cpu(std::uint32_t index) { return {false, index}; }

// A NUMA node: NCCL and nvidia-smi treat each as a CPU of its own.
struct NumaNode {
  std::uint32_t id = 0;     // the operating system's number
  std::string_view cpus{};  // affinity list as nvidia-smi prints it
};

struct PcieSwitch {
  Parent parent;
  // x16 links to the parent; 2 where the two switches are partitions of one chip.
  std::uint16_t width = 1;
};

struct NvlinkPair {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint16_t links = 1;
};

struct MachineSpec {
  std::string name;
  std::string title;
  std::string profile;  // scenarios/profiles/<profile>.yaml

  std::vector<NumaNode> numa{};
  std::vector<PcieSwitch> switches{};
  std::vector<Parent> gpus{};
  std::vector<Parent> nics{};

  std::uint32_t nvlinks_per_gpu = 0;
  bool nvswitch = false;            // all NVLinks end in one NVSwitch plane (one device)
  std::vector<NvlinkPair> pairs{};  // or GPU to GPU
  // Nodes that share one NVSwitch plane (the 18 trays of an NVL72 rack).
  std::uint32_t nodes_per_nvlink_domain = 1;

  sim::LinkClass gpu_host_class = sim::LinkClass::pcie;  // or c2c
  Rate nvlink{};                                         // one link
  Rate gpu_host{};                                       // GPU - its parent
  Rate pcie{};                                           // NIC - parent, switch - parent: x16
  Rate smp{};                                            // between any two NUMA nodes
  Rate nic{};                                            // one port

  // All root ports of a NUMA node belong to one host bridge: nvidia-smi says PHB, else NODE.
  bool one_host_bridge_per_cpu = false;
  // No inside at all: any number of GPUs, each with one port on the fabric (comparison scenarios).
  bool flat = false;
};

// Counts and rates that a scenario may set differently from the catalogue.
struct MachineOverrides {
  std::optional<std::uint32_t> gpus_per_node;  // the first n; a flat machine takes any number
  std::optional<std::uint32_t> nics_per_node;  // n of the machine's NICs, spread evenly
  std::optional<sim::Bandwidth> nic_rate;
  std::optional<std::uint32_t> nodes_per_nvlink_domain;  // 1 = no NVLink between nodes
};

// In catalogue order.
std::vector<std::string_view> machine_names();

// Unknown name: error with the nearest name and the list.
sim::Result<MachineSpec> find_machine(std::string_view name);

// The machine with the overrides applied, or why they do not fit it.
sim::Result<MachineSpec> apply_overrides(MachineSpec machine, const MachineOverrides& overrides);

// Keeps `count` of the machine's NICs, spread evenly over them.
void keep_nics(MachineSpec& machine, std::uint32_t count);

// Is the entry self-consistent? For machines that do not come from the catalogue.
sim::Result<void> check_machine(const MachineSpec& machine);

}  // namespace railyard::topologies
