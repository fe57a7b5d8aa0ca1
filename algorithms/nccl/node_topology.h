// NodeTopology: NCCL's view of one "node": the graph of its hardware, the paths through it as the
// transports will use them, and the bandwidths the channel search starts from. Everything that NCCL
// decides inside a node is a function of this value.
//
// A node is the set of ranks that can reach each other without the network, or better without it:
// a host, an MNNVL domain, or a part of either. build() computes the paths of all ranks it is
// given, then keeps the part that `rank` belongs to; node_parts() tells the parts.
//
// Invariants: immutable once built; the search works on copies of the bandwidths. All indices are
// NCCL's order within a kind. Units: GB/s. Cost: ends^2 + ends x links, 20 ms for 72 GPUs.
// Source: facts 3.1-3.4, NCCL 2.30.7 src/graph/{paths,search}.cc.
//
//   RAILYARD_ASSIGN(NodeTopology node, NodeTopology::build({inputs, 0, 16}, env, {}));
//   node.path({gpu, 0}, {net, 1}).type == PathType::pxn
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/nccl/environment.h"
#include "algorithms/nccl/node_settings.h"
#include "algorithms/nccl/path_table.h"
#include "algorithms/nccl/system.h"
#include "sim/result.h"

namespace railyard::algorithms::nccl {

struct NodeRequest {
  NodeInputs inputs;
  std::int32_t rank = 0;        // whose part of the node
  std::int32_t comm_ranks = 0;  // of the whole communicator
};

enum class GdrMode { off, on, over_pci };  // over_pci: forced off the C2C link

class NodeTopology {
 public:
  static sim::Result<NodeTopology> build(const NodeRequest& request, const Environment& env,
                                         const Capabilities& capabilities);

  [[nodiscard]] const System& system() const { return system_; }
  [[nodiscard]] const NodeSettings& settings() const { return settings_; }
  [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }
  [[nodiscard]] const PathTable& paths() const { return paths_; }
  [[nodiscard]] const Path& path(PathEnd from, PathEnd to) const { return paths_.at(from, to); }
  [[nodiscard]] const Path& gpu_path(std::int32_t from, std::int32_t to) const {
    return path({VertexKind::gpu, from}, {VertexKind::gpu, to});
  }
  [[nodiscard]] const Path& net_path(std::int32_t gpu, std::int32_t net) const {
    return path({VertexKind::gpu, gpu}, {VertexKind::net, net});
  }

  [[nodiscard]] std::int32_t gpus() const { return system_.count(VertexKind::gpu); }
  [[nodiscard]] std::int32_t nets() const { return system_.count(VertexKind::net); }
  [[nodiscard]] const Vertex& gpu(std::int32_t index) const {
    return system_.at(VertexKind::gpu, index);
  }
  [[nodiscard]] const Vertex& net(std::int32_t index) const {
    return system_.at(VertexKind::net, index);
  }
  // Whether the network is plain sockets: no GPUDirect RDMA, hence no PXN.
  [[nodiscard]] bool sockets() const { return capabilities_.sockets || settings_.sockets; }
  // Whether the communicator goes on beyond this node.
  [[nodiscard]] bool inter() const { return inter_; }
  // Best bandwidth of one path, and of all links of a GPU together.
  [[nodiscard]] float max_bandwidth() const { return max_bandwidth_; }
  [[nodiscard]] float total_bandwidth() const { return total_bandwidth_; }
  // The GPU that a network device is the first choice of; -1: none.
  [[nodiscard]] std::int32_t local_gpu(std::int32_t net) const {
    return local_gpu_[static_cast<std::size_t>(net)];
  }

  // Whether two GPUs may use P2P; `via`: the GPU in between on an NVB path, else -1.
  struct P2pCheck {
    bool allowed = false;
    std::int32_t via = -1;
  };
  [[nodiscard]] P2pCheck check_p2p(std::int32_t from, std::int32_t to) const;
  // Whether the network beats the path between two GPUs of this node.
  [[nodiscard]] bool net_is_better(std::int32_t from, std::int32_t to) const;
  // The transports' answers for two GPUs.
  [[nodiscard]] bool p2p_connects(std::int32_t from, std::int32_t to) const;
  [[nodiscard]] bool shm_connects(std::int32_t from, std::int32_t to) const;
  // Whether a GPU and a network device use GPUDirect RDMA; `read`: the device reads (a send).
  [[nodiscard]] GdrMode check_gdr(std::int32_t gpu, std::int32_t net, bool read) const;
  // The GPU that relays from `gpu` to `net` (PXN); `gpu` itself without a relay.
  [[nodiscard]] std::int32_t relay_gpu(std::int32_t gpu, std::int32_t net) const;
  // Fewest hops to a CPU; -1: none is connected.
  [[nodiscard]] std::int32_t local_cpu(std::int32_t gpu) const;
  // Best and worst type of a path from a GPU to any other end of a kind.
  [[nodiscard]] sim::PathType min_type(VertexKind kind) const;
  [[nodiscard]] sim::PathType max_type(VertexKind kind) const;
  // Two groups of GPUs with NVLink inside each and none between.
  [[nodiscard]] bool split_nvlink() const;

 private:
  friend class PathRules;
  friend sim::Result<std::vector<std::vector<std::int32_t>>> node_parts(const NodeInputs&,
                                                                        const Environment&,
                                                                        const Capabilities&);
  NodeTopology() = default;
  static sim::Result<NodeTopology> of_all_ranks(const NodeInputs& inputs, const Environment& env,
                                                const Capabilities& capabilities);
  void trim(std::int32_t rank);
  [[nodiscard]] std::vector<std::int32_t> domains() const;
  void find_bandwidths();

  System system_;
  PathTable paths_;
  NodeSettings settings_;
  Capabilities capabilities_;
  bool inter_ = false;
  float max_bandwidth_ = 0;
  float total_bandwidth_ = 0;
  std::vector<std::int32_t> local_gpu_;
};

// The ranks, grouped by the node NCCL makes of them, each group ascending.
sim::Result<std::vector<std::vector<std::int32_t>>> node_parts(const NodeInputs& inputs,
                                                               const Environment& env,
                                                               const Capabilities& capabilities);

}  // namespace railyard::algorithms::nccl
