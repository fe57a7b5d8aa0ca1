// Cluster: from the hosts of a communicator to its plan. The one place where the two halves meet:
// the view of a node with its graph search (node_topology.h, search.h), and what follows for all
// nodes together (plan.h).
//
// Hosts of one NVLink domain are one node, unless NCCL_MNNVL_ENABLE=0; GPUs of a host that cannot
// reach each other are nodes of their own. Nodes with equal hardware and equal places of their
// ranks are searched once.
//
//   ClusterRequest request;                 // hardware, hosts with their ranks
//   RAILYARD_ASSIGN(const Cluster cluster, plan_cluster(request, env));
//   choose(cluster.comm, {.function = Function::all_reduce, .count = 1 << 20});
//
// Cost: one search per kind of node (milliseconds to tenths of a second), linear in the ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/nccl/environment.h"
#include "algorithms/nccl/node_topology.h"
#include "algorithms/nccl/plan.h"
#include "sim/hardware.h"
#include "sim/result.h"

namespace railyard::algorithms::nccl {

struct HostRank {
  std::int32_t rank = 0;
  std::int32_t dev = 0;  // HardwareGpu::dev
};

struct ClusterHost {
  std::size_t hardware = 0;     // index into ClusterRequest::hardware
  std::int32_t domain = -1;     // hosts of one NVLink domain carry the same number; -1 = alone
  std::vector<HostRank> ranks;  // ascending
};

struct ClusterRequest {
  std::vector<sim::Hardware> hardware;  // one per kind of host
  std::vector<ClusterHost> hosts;       // in order of their lowest rank
  Capabilities capabilities;
  CollNetPlugin collnet;
  Version version = kNewestVersion;
  std::optional<TunerFile> tuner;                // of NCCL_TUNER_CONFIG_FILE
  std::vector<sim::ChannelGraph> forced_graphs;  // of NCCL_GRAPH_FILE
  bool forced_have_ranks = false;                // their channels hold ranks, not device numbers
};

// Where a rank is: its host, and its node as NCCL counts them.
struct RankPlace {
  std::int32_t host = 0;  // index into ClusterRequest::hosts
  std::int32_t dev = 0;
  std::int32_t node = 0;   // index into CommPlan's nodes
  std::int32_t local = 0;  // index among the node's ranks
};

struct Cluster {
  CommPlan comm;
  std::vector<NodeTopology> topologies;          // by CommInputs::kinds
  std::vector<RankPlace> ranks;                  // by rank
  std::vector<std::vector<std::int32_t>> hosts;  // by node: indices into ClusterRequest::hosts
  // By node: the numbers that its NodeTopology knows its ranks by, ascending.
  std::vector<std::vector<std::int32_t>> search_ranks;

  [[nodiscard]] std::size_t kind_of(std::int32_t rank) const {
    return comm.inputs.nodes[static_cast<std::size_t>(place(rank).node)].kind;
  }
  [[nodiscard]] const NodeTopology& topology_of(std::int32_t rank) const {
    return topologies[kind_of(rank)];
  }
  [[nodiscard]] const RankPlace& place(std::int32_t rank) const {
    return ranks[static_cast<std::size_t>(rank)];
  }
  // A rank's GPU among the GPUs of its NodeTopology, and the rank of such a GPU of a node.
  [[nodiscard]] std::int32_t gpu_of(std::int32_t rank) const;
  [[nodiscard]] std::int32_t rank_of(std::int32_t node, std::int32_t gpu) const;
};

// Errors: no hosts; a rank whose GPU its host lacks; what a search or make_comm_plan() refuses.
sim::Result<Cluster> plan_cluster(const ClusterRequest& request, const Environment& env);

}  // namespace railyard::algorithms::nccl
