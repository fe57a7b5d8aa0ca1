#include "algorithms/nccl/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "algorithms/nccl/node_kind.h"
#include "algorithms/nccl/search.h"

namespace railyard::algorithms::nccl {
namespace {

// A member of a set of hosts that share a topology, before NCCL takes it apart.
struct Member {
  std::int32_t rank = 0;
  std::int32_t host = 0;  // index into ClusterRequest::hosts
  std::int32_t dev = 0;
};

// The hosts of one NVLink domain, or one host.
struct HostSet {
  std::vector<std::int32_t> hosts;
  std::vector<Member> members;  // by rank
};

std::vector<HostSet> host_sets(const ClusterRequest& request, bool join_domains) {
  std::vector<HostSet> sets;
  std::map<std::int32_t, std::size_t> of_domain;
  for (std::size_t h = 0; h < request.hosts.size(); ++h) {
    const ClusterHost& host = request.hosts[h];
    std::size_t at = sets.size();
    if (join_domains && host.domain >= 0) at = of_domain.try_emplace(host.domain, at).first->second;
    if (at == sets.size()) sets.emplace_back();
    const auto index = static_cast<std::int32_t>(h);
    sets[at].hosts.push_back(index);
    for (const HostRank& rank : host.ranks)
      sets[at].members.push_back({rank.rank, index, rank.dev});
  }
  for (HostSet& set : sets) std::ranges::sort(set.members, {}, &Member::rank);
  return sets;
}

// What makes two sets of hosts the same to NCCL: equal hardware, and equal devices in rank order.
using Signature = std::vector<std::int64_t>;

Signature signature_of(const ClusterRequest& request, const HostSet& set) {
  Signature signature;
  for (const std::int32_t host : set.hosts)
    signature.push_back(
        static_cast<std::int64_t>(request.hosts[static_cast<std::size_t>(host)].hardware));
  signature.push_back(-1);
  for (const Member& member : set.members) {
    signature.push_back(std::ranges::find(set.hosts, member.host) - set.hosts.begin());
    signature.push_back(member.dev);
  }
  return signature;
}

// The set with its ranks numbered from 0, as the search of a node is run.
NodeInputs local_inputs(const ClusterRequest& request, const HostSet& set) {
  NodeInputs inputs;
  for (const std::int32_t host : set.hosts)
    inputs.hosts.push_back(
        &request.hardware[request.hosts[static_cast<std::size_t>(host)].hardware]);
  for (std::size_t i = 0; i < set.members.size(); ++i)
    inputs.ranks.push_back(
        {static_cast<std::int32_t>(i),
         static_cast<std::int32_t>(std::ranges::find(set.hosts, set.members[i].host) -
                                   set.hosts.begin()),
         set.members[i].dev});
  return inputs;
}

class Planner {
 public:
  Planner(const ClusterRequest& request, const Environment& env) : request_(request), env_(env) {}

  sim::Result<Cluster> plan() {
    for (const ClusterHost& host : request_.hosts) ranks_ += host.ranks.size();
    cluster_.ranks.resize(ranks_);
    const bool join = env_.integer("NCCL_MNNVL_ENABLE", 2) != 0;
    for (const HostSet& set : host_sets(request_, join)) {
      inputs_.mnnvl = inputs_.mnnvl || set.hosts.size() > 1;
      RAILYARD_TRY(add_set(set));
    }
    std::ranges::sort(nodes_, {}, [](const PlacedNode& node) { return node.comm.ranks.front(); });
    number_nodes();
    set_communicator();
    RAILYARD_ASSIGN(cluster_.comm, make_comm_plan(inputs_, env_));
    return std::move(cluster_);
  }

 private:
  // The nodes that NCCL makes of a set of hosts, by positions in the set.
  struct SetKinds {
    std::vector<std::vector<std::int32_t>> parts;
    std::vector<std::size_t> kinds;  // of each part
  };
  struct PlacedNode {
    CommNode comm;
    const HostSet* set = nullptr;
    std::vector<Member> members;
    std::vector<std::int32_t> hosts;
    std::vector<std::int32_t> positions;  // in the set, of `members`
  };

  sim::Result<void> add_set(const HostSet& set) {
    const Signature signature = signature_of(request_, set);
    auto known = kinds_.find(signature);
    if (known == kinds_.end()) {
      RAILYARD_ASSIGN(SetKinds searched, search_set(set));
      known = kinds_.emplace(signature, std::move(searched)).first;
    }
    const SetKinds& found = known->second;
    for (std::size_t p = 0; p < found.parts.size(); ++p) {
      PlacedNode node;
      node.comm.kind = found.kinds[p];
      node.hosts = set.hosts;
      node.positions = found.parts[p];
      for (const std::int32_t position : found.parts[p]) {
        const Member& member = set.members[static_cast<std::size_t>(position)];
        node.comm.ranks.push_back(member.rank);
        node.members.push_back(member);
      }
      nodes_.push_back(std::move(node));
    }
    return {};
  }

  sim::Result<SetKinds> search_set(const HostSet& set) {
    SetKinds out;
    const NodeInputs inputs = local_inputs(request_, set);
    RAILYARD_ASSIGN(out.parts, node_parts(inputs, env_, request_.capabilities));
    for (const std::vector<std::int32_t>& part : out.parts) {
      RAILYARD_ASSIGN(NodeTopology node,
                      NodeTopology::build({inputs, part.front(), static_cast<std::int32_t>(ranks_)},
                                          env_, request_.capabilities));
      RAILYARD_TRY(search_node(node));
      out.kinds.push_back(cluster_.topologies.size());
      cluster_.topologies.push_back(std::move(node));
    }
    return out;
  }

  sim::Result<void> search_node(const NodeTopology& node) {
    GraphOptions options;
    options.collnet = request_.collnet.present;
    options.nvls = nvls_available(node, env_);
    if (!request_.forced_graphs.empty()) options.file = &request_.forced_graphs;
    options.file_has_ranks = request_.forced_have_ranks;
    RAILYARD_ASSIGN(const std::vector<sim::ChannelGraph> graphs, find_graphs(node, options));
    inputs_.kinds.push_back(node_kind(node, graphs));
    return {};
  }

  void set_communicator() {
    inputs_.multicast = request_.capabilities.multicast;
    inputs_.collnet = request_.collnet;
    inputs_.version = request_.version;
    inputs_.tuner = request_.tuner;
  }

  void number_nodes() {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      for (std::size_t i = 0; i < nodes_[n].members.size(); ++i) {
        const Member& member = nodes_[n].members[i];
        cluster_.ranks[static_cast<std::size_t>(member.rank)] = {
            member.host, member.dev, static_cast<std::int32_t>(n), static_cast<std::int32_t>(i)};
      }
      cluster_.hosts.push_back(std::move(nodes_[n].hosts));
      cluster_.search_ranks.push_back(std::move(nodes_[n].positions));
      inputs_.nodes.push_back(std::move(nodes_[n].comm));
    }
  }

  const ClusterRequest& request_;
  const Environment& env_;
  std::size_t ranks_ = 0;
  std::map<Signature, SetKinds> kinds_;
  std::vector<PlacedNode> nodes_;
  CommInputs inputs_;
  Cluster cluster_;
};

sim::Result<void> check_ranks(const ClusterRequest& request) {
  std::size_t total = 0;
  for (const ClusterHost& host : request.hosts) total += host.ranks.size();
  std::vector<bool> seen(total);
  for (const ClusterHost& host : request.hosts) {
    RAILYARD_CHECK(host.hardware < request.hardware.size(), "a host's hardware is in the list");
    for (const HostRank& rank : host.ranks) {
      if (rank.rank < 0 || static_cast<std::size_t>(rank.rank) >= total ||
          seen[static_cast<std::size_t>(rank.rank)])
        return sim::bad_input(
            fmt::format("rank {} is not one of 0 to {}, each once", rank.rank, total - 1));
      seen[static_cast<std::size_t>(rank.rank)] = true;
    }
  }
  if (total == 0) return sim::bad_input("a communicator without ranks");
  return {};
}

}  // namespace

std::int32_t Cluster::gpu_of(std::int32_t rank) const {
  const RankPlace& at = place(rank);
  const std::int32_t label =
      search_ranks[static_cast<std::size_t>(at.node)][static_cast<std::size_t>(at.local)];
  return topology_of(rank).system().gpu_of_rank(label);
}

std::int32_t Cluster::rank_of(std::int32_t node, std::int32_t gpu) const {
  const CommNode& members = comm.inputs.nodes[static_cast<std::size_t>(node)];
  const std::vector<std::int32_t>& labels = search_ranks[static_cast<std::size_t>(node)];
  const auto found = std::ranges::lower_bound(labels, topologies[members.kind].gpu(gpu).rank);
  return members.ranks[static_cast<std::size_t>(found - labels.begin())];
}

sim::Result<Cluster> plan_cluster(const ClusterRequest& request, const Environment& env) {
  RAILYARD_TRY(check_ranks(request));
  return Planner(request, env).plan();
}

}  // namespace railyard::algorithms::nccl
