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
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/enum_table.h"
#include "sim/result.h"
#include "sim/topology.h"
#include "sim/units.h"

namespace railyard::sim {
struct Hardware;
}  // namespace railyard::sim

namespace railyard::topologies {

inline constexpr std::uint64_t kMaxGpus = 1'000'000;  // of a cluster

// A datasheet figure and where it was published.
struct Rate {
  sim::Bandwidth value{};
  std::string source{};
};

// What a GPU, NIC or PCIe switch hangs from.
struct Parent {
  bool is_switch = false;
  std::uint32_t index = 0;
  sim::Bandwidth rate{};  // of the link to it where it differs from the machine's; zero: the same
};
constexpr Parent at_switch(std::uint32_t index) { return {true, index, {}}; }
constexpr Parent at_cpu(std::uint32_t index) { return {false, index, {}}; }

// A NUMA node: NCCL and nvidia-smi treat each as a CPU of its own.
struct NumaNode {
  std::int32_t id = 0;  // the operating system's number; -1 where it has none
  std::string cpus{};   // affinity list as nvidia-smi prints it
};

// The host's processor in the words of NCCL's topology XML, where the bandwidth between NUMA nodes
// and the peer-to-peer rules follow from it.
struct HostCpu {
  std::string arch{};    // x86_64, arm64
  std::string vendor{};  // GenuineIntel, AuthenticAMD; empty for Arm
  std::int32_t family = -1;
  std::int32_t model = -1;
  std::string source{};
};

// NVLink-C2C as NVML reports it to NCCL.
struct C2cLinks {
  double megabytes_per_second = 0;  // of one link
  std::uint32_t count = 0;          // of one GPU
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
  std::uint32_t port_functions = 1;  // PCIe functions, each a NIC to NCCL, that one port shows

  HostCpu cpu{};
  std::int32_t compute_capability = 0;  // x 10: 90 = Hopper

  std::uint32_t nvlinks_per_gpu = 0;
  bool nvswitch = false;            // all NVLinks end in one NVSwitch plane (one device)
  std::vector<NvlinkPair> pairs{};  // or GPU to GPU
  // Links to the NVSwitch of each GPU where they are not equal (a failed link); else empty.
  std::vector<std::uint16_t> gpu_nvlinks{};
  // Links of a bridge between two neighbouring cards, for NvlinkWiring::bridges; 0: none fits.
  std::uint16_t bridge_links = 0;
  // Nodes that share one NVSwitch plane (the 18 trays of an NVL72 rack).
  std::uint32_t nodes_per_nvlink_domain = 1;

  sim::LinkClass gpu_host_class = sim::LinkClass::pcie;  // or c2c
  Rate nvlink{};                                         // one link
  Rate gpu_host{};                                       // GPU - its parent
  Rate pcie{};                                           // NIC - parent, switch - parent: x16
  Rate smp{};                                            // between any two NUMA nodes
  // Direct NIC: GPU i and NIC i are also joined past the CPU. Zero: they are not.
  Rate direct_nic{};
  Rate nic{};                               // one port, the fastest
  std::vector<sim::Bandwidth> nic_rates{};  // of each NIC where they are not equal
  std::vector<std::string> nic_names{};  // the host's own, mlx5_0; empty where they are not known
  std::optional<C2cLinks> c2c{};

  bool pcie_p2p = true;  // GPUs without NVLink between them reach each other; GeForce cards do not
  // PCIe Access Control Services are on: a switch sends what its devices send each other up to the
  // root complex, which sends it back down.
  bool acs = false;
  bool gpudirect = true;  // NICs reach GPU memory (GPUDirect RDMA)

  // All root ports of a NUMA node belong to one host bridge: nvidia-smi says PHB, else NODE.
  bool one_host_bridge_per_cpu = false;
  // The topology file that it was read from, whole; null in the catalogue.
  std::shared_ptr<const sim::Hardware> hardware{};
  // No GPUs: what the node lists as such are places for processes, on the processor they hang from.
  bool processors_only = false;
  // No inside at all: any number of GPUs, each with one port on the fabric (comparison scenarios).
  bool flat = false;
};

enum class NvlinkWiring {
  as_built,  // as the machine's entry says
  none,      // neither bridges nor an NVSwitch
  bridges    // a bridge on cards 0 and 1, 2 and 3, ...; only where the card takes one
};

// Counts and rates that a scenario may set differently from the catalogue.
struct MachineOverrides {
  std::optional<std::uint32_t> gpus_per_node;  // the first n; a flat machine takes any number
  // Spread evenly over the places of the machine's NICs: n of them, or several at a place.
  std::optional<std::uint32_t> nics_per_node;
  std::optional<sim::Bandwidth> nic_rate;
  std::optional<std::uint32_t> nodes_per_nvlink_domain;  // 1 = no NVLink between nodes
  NvlinkWiring nvlink = NvlinkWiring::as_built;
  bool acs = false;
  bool direct_nic = true;  // false: nobody uses it, as with NCCL_IB_DATA_DIRECT=0
};

// In catalogue order.
std::vector<std::string_view> machine_names();

// Other names of catalogue entries: what a product or a cloud calls the same machine.
struct MachineAlias {
  std::string_view name;
  std::string_view machine;
};
const std::vector<MachineAlias>& machine_aliases();

// By name or alias. Unknown: error with the nearest name and the list.
sim::Result<MachineSpec> find_machine(std::string_view name);

// The machine with the overrides applied, or why they do not fit it.
sim::Result<MachineSpec> apply_overrides(MachineSpec machine, const MachineOverrides& overrides);

// PCIe one way, after the line code, to the MB/s: 16 lanes of 32 GT/s are 63.015 GB/s. Zero for a
// speed that no generation has.
sim::Bandwidth pcie_rate(double gigatransfers, std::uint32_t lanes);

// `count` NICs, spread evenly over the places of the machine's, which has some unless count is 0.
void spread_nics(MachineSpec& machine, std::uint32_t count);

// Is the entry self-consistent? For machines that do not come from the catalogue.
sim::Result<void> check_machine(const MachineSpec& machine);

}  // namespace railyard::topologies

namespace railyard::sim {
template <>
struct EnumTable<topologies::NvlinkWiring> {
  static constexpr std::string_view kind = "NVLink wiring";
  static constexpr std::array entries{EnumEntry{topologies::NvlinkWiring::as_built, "as-built"},
                                      EnumEntry{topologies::NvlinkWiring::none, "none"},
                                      EnumEntry{topologies::NvlinkWiring::bridges, "bridges"}};
};
}  // namespace railyard::sim
