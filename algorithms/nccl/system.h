// System: NCCL's graph of one node, before any path is computed. Vertices are GPUs, the devices
// they sit on, PCI switches, the NVSwitches (one vertex for all), NUMA nodes, NICs and network
// devices; edges are directed links with the bandwidth NCCL credits them with, which is not the
// wire's.
//
// "Node" is what NCCL treats as one: a host, or all hosts of a multi-node NVLink (MNNVL) domain,
// whose hardware is fused into one graph. A vertex knows its host.
//
// Every rank contributes the part of its host's file that leads to its own GPU and to the NICs;
// parts are fused in rank order, so that the order of vertices (and with it every tie) depends on
// the ranks as well as on the file.
//
// Invariants: the order of vertices of a kind, and of a vertex's links (NVLinks by bandwidth, PCI
// down, PCI up, then between CPUs), are NCCL's. Bandwidths are float because NCCL's are: the search
// compares sums of them.
//
// Units: GB/s (1e9 B/s) of one direction, microseconds. Cost: linear in the links.
// Source: facts 3.1-3.3, from NCCL 2.30.7 src/graph/topo.{h,cc} and xml.cc.
//
//   RAILYARD_ASSIGN(System system, build_system({.hosts = {&dgx_h100}, .ranks = ranks_0_to_7}));
//   system.count(VertexKind::net) == 8
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/channel_graph.h"
#include "sim/hardware.h"
#include "sim/result.h"

namespace railyard::algorithms::nccl {

// GB/s per direction, as the search counts them.
inline constexpr float kLocalBandwidth = 5000.0F;  // within a device
inline constexpr float kArmSocketBandwidth = 6.0F;
inline constexpr float kPowerSocketBandwidth = 32.0F;
inline constexpr float kAmdSocketBandwidth = 16.0F;

// Of one NVLink of a GPU of compute capability `sm`.
float nvlink_bandwidth(std::int32_t sm);
// Of a PCI link: width in lanes (0: unknown, 16), speed as in the XML ("32.0 GT/s PCIe").
float pci_bandwidth(const std::string& speed, std::int32_t width);

enum class VertexKind : std::uint8_t { gpu, pci, nvs, cpu, nic, net, device };
inline constexpr std::size_t kVertexKinds = 7;

// NCCL's numbers. `mixed` is of a communicator whose nodes differ.
enum class CpuArch : std::int8_t {
  undefined = -1,
  other = 0,
  x86 = 1,
  power = 2,
  arm = 3,
  mixed = 4
};
enum class CpuVendor : std::int8_t {
  undefined = -1,
  other = 0,
  intel = 1,
  amd = 2,
  zhaoxin = 3,
  mixed = 4
};
// The generations NCCL tells apart, slowest socket link first.
enum class CpuModel : std::int8_t {
  undefined = -1,
  intel_broadwell = 1,
  intel_skylake = 2,
  intel_sapphire_rapids = 3,
  intel_emerald_rapids = 4,
  yongfeng = 5
};

// A link's type is the type of a path that consists of it: loc, nvl, c2c, pix (PCI), sys, net.
struct SystemLink {
  sim::PathType type = sim::PathType::loc;
  std::int32_t to = -1;  // vertex
  float bandwidth = 0;
};

struct Vertex {
  VertexKind kind = VertexKind::pci;
  std::int64_t id = 0;  // unique among its kind: host in the top 8 bits, then bus id or number
  std::int32_t host = 0;
  std::int32_t index = -1;  // among its kind; -1: taken out of the graph
  std::vector<SystemLink> links;

  // GPU and device
  std::int32_t dev = -1;  // GPU: NVML index; net: the plugin's number
  std::int32_t rank = -1;
  std::int32_t sm = 0;
  std::int32_t device = -1;  // a GPU's device vertex
  bool gdr = false;          // also net
  bool pcie_p2p = true;      // P2P with GPUs that no NVLink joins it to
  // net
  std::uint64_t asic = 0;  // equal asic and port share bandwidth
  std::int32_t port = 0;
  float bandwidth = 0;
  float latency = 0;
  bool collnet = false;
  std::int32_t rail = -1;
  std::int32_t plane = -1;
  std::string bus_id;  // of the PCI device it is on; empty without one
  // pci
  std::uint64_t pci_device = 0;  // vendor, device, subsystem vendor and device, 16 bits each
  // cpu
  CpuArch arch = CpuArch::undefined;
  CpuVendor vendor = CpuVendor::undefined;
  CpuModel model = CpuModel::undefined;
};

struct System {
  std::vector<Vertex> vertices;
  std::array<std::vector<std::int32_t>, kVertexKinds> by_kind;  // indices into vertices
  std::int32_t hosts = 0;

  [[nodiscard]] const std::vector<std::int32_t>& all(VertexKind kind) const {
    return by_kind[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] std::int32_t count(VertexKind kind) const {
    return static_cast<std::int32_t>(all(kind).size());
  }
  [[nodiscard]] std::int32_t vertex_of(VertexKind kind, std::int32_t index) const {
    return all(kind)[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] const Vertex& at(std::int32_t vertex) const {
    return vertices[static_cast<std::size_t>(vertex)];
  }
  [[nodiscard]] Vertex& at(std::int32_t vertex) {
    return vertices[static_cast<std::size_t>(vertex)];
  }
  [[nodiscard]] const Vertex& at(VertexKind kind, std::int32_t index) const {
    return at(vertex_of(kind, index));
  }
  // The GPU with this rank, among the GPUs; -1: not in this node.
  [[nodiscard]] std::int32_t gpu_of_rank(std::int32_t rank) const;
  // -1: no such device. `id` as in ChannelGraph.
  [[nodiscard]] std::int32_t net_of_id(std::int64_t id) const;
  // Over all devices, also those whose GPU no rank of this part of the node uses.
  [[nodiscard]] std::int32_t min_sm() const;
  [[nodiscard]] std::int32_t max_sm() const;
};

// One rank: the GPU numbered `dev` of a host. Ranks ascend and are those of this node.
struct NodeRank {
  std::int32_t rank = 0;
  std::int32_t host = 0;
  std::int32_t dev = 0;
};

// Hosts in the order of their lowest rank. The hardware is read during the call only.
struct NodeInputs {
  std::vector<const sim::Hardware*> hosts;
  std::vector<NodeRank> ranks;
};

// Errors: no rank, a rank whose GPU the host lacks, two ranks on one GPU, an NVLink that only one
// end reports (found when paths are computed), a bus id that is no hexadecimal number.
sim::Result<System> build_system(const NodeInputs& inputs);

// Takes a vertex out, with every link to it. The others keep their numbers and their order.
void remove_vertex(System& system, std::int32_t vertex);

}  // namespace railyard::algorithms::nccl
