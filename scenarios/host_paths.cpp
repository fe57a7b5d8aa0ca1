#include "scenarios/host_paths.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "algorithms/nccl/transport.h"

namespace railyard::scenarios {
namespace {

namespace nccl = algorithms::nccl;
using sim::DeviceId;

// Breadth first from all CPUs at once.
std::vector<DeviceId> nearest_cpus(const sim::Topology& topology) {
  std::vector<std::vector<DeviceId>> neighbours(topology.devices.size());
  for (const sim::Link& link : topology.links)
    if (link.link_class == sim::LinkClass::pcie || link.link_class == sim::LinkClass::c2c)
      neighbours[link.to.index()].push_back(link.from);
  std::vector<DeviceId> cpu(topology.devices.size());
  std::deque<DeviceId> open;
  for (std::size_t d = 0; d < topology.devices.size(); ++d) {
    if (topology.devices[d].kind != sim::DeviceKind::cpu) continue;
    cpu[d] = DeviceId(d);
    open.push_back(cpu[d]);
  }
  for (; !open.empty(); open.pop_front())
    for (const DeviceId next : neighbours[open.front().index()]) {
      if (cpu[next.index()].valid()) continue;
      cpu[next.index()] = cpu[open.front().index()];
      open.push_back(next);
    }
  return cpu;
}

bool shares_memory(const nccl::NodeTopology& node) {
  for (std::int32_t a = 0; a < node.gpus(); ++a)
    for (std::int32_t b = 0; b < node.gpus(); ++b)
      if (a != b && nccl::connection(node, a, b).transport == nccl::TransportKind::shm) return true;
  return false;
}

std::int32_t signed_rank(std::uint32_t rank) { return static_cast<std::int32_t>(rank); }

}  // namespace

HostPaths::HostPaths(std::shared_ptr<const GroupPlan> plan, const sim::Topology& topology,
                     const sim::Group& group)
    : plan_(std::move(plan)), cpu_(nearest_cpus(topology)) {
  for (const sim::Device& device : topology.devices) {
    node_of_.push_back(device.node);
    local_.push_back(device.local_index);
  }
  for (const sim::Member& member : group) {
    gpu_.push_back(member.gpu);
    const bool same = !host_node_.empty() && host_node_.back() == member.node;
    if (!same && std::ranges::find(host_node_, member.node) == host_node_.end())
      host_node_.push_back(member.node);
  }
  for (const sim::Node& node : topology.nodes) nics_.push_back(node.nics);
  any_shared_ = std::ranges::any_of(plan_->cluster.topologies, shares_memory);
}

sim::HostStops HostPaths::in_node(std::uint32_t from, std::uint32_t to) const {
  const nccl::Cluster& cluster = plan_->cluster;
  const std::int32_t a = signed_rank(from);
  const std::int32_t b = signed_rank(to);
  if (!any_shared_ || cluster.place(a).node != cluster.place(b).node) return {};
  const nccl::Connection made =
      nccl::connection(cluster.topology_of(a), cluster.gpu_of(a), cluster.gpu_of(b));
  if (made.transport != nccl::TransportKind::shm) return {};
  const DeviceId memory = cpu_[gpu_[to].index()];
  return {.out = memory, .out_ll = memory, .in = memory};
}

std::int32_t HostPaths::net_of(std::uint32_t rank, DeviceId nic) const {
  const nccl::Cluster& cluster = plan_->cluster;
  const nccl::NodeTopology& node = cluster.topology_of(signed_rank(rank));
  const auto& hosts =
      cluster.hosts[static_cast<std::size_t>(cluster.place(signed_rank(rank)).node)];
  if (local_[nic.index()] >= plan_->net_numbers.size()) return -1;
  const std::int32_t dev = plan_->net_numbers[local_[nic.index()]];
  for (std::int32_t n = 0; n < node.nets(); ++n) {
    const std::int32_t host = hosts[static_cast<std::size_t>(node.net(n).host)];
    if (node.net(n).dev == dev &&
        host_node_[static_cast<std::size_t>(host)] == node_of_[nic.index()])
      return n;
  }
  return -1;
}

DeviceId HostPaths::nic(std::uint32_t rank, std::int32_t net) const {
  const nccl::Cluster& cluster = plan_->cluster;
  const nccl::Vertex& device = cluster.topology_of(signed_rank(rank)).net(net);
  const auto& hosts =
      cluster.hosts[static_cast<std::size_t>(cluster.place(signed_rank(rank)).node)];
  const std::int32_t host = hosts[static_cast<std::size_t>(device.host)];
  const auto number = std::ranges::lower_bound(plan_->net_numbers, device.dev);
  return nics_[host_node_[static_cast<std::size_t>(host)]]
              [static_cast<std::size_t>(number - plan_->net_numbers.begin())];
}

DeviceId HostPaths::gpu(std::uint32_t rank, std::int32_t index) const {
  const nccl::Cluster& cluster = plan_->cluster;
  const std::int32_t node = cluster.place(signed_rank(rank)).node;
  return gpu_[static_cast<std::size_t>(cluster.rank_of(node, index))];
}

algorithms::NicPair HostPaths::hop(std::uint32_t from, std::uint32_t to,
                                   std::uint32_t channel) const {
  algorithms::NicPair nics = nics_of_send(from, to, channel);
  nics.host = stops(from, to, nics);
  const bool direct = nics.out.valid() && !nics.host.out.valid() && !nics.host.in.valid();
  nics.host.gpu_initiated = plan_->gpu_initiated && direct;
  return nics;
}

algorithms::NicPair HostPaths::nics_of_send(std::uint32_t from, std::uint32_t to,
                                            std::uint32_t channel) const {
  const nccl::Cluster& cluster = plan_->cluster;
  const std::int32_t a = signed_rank(from);
  const std::int32_t b = signed_rank(to);
  if (cluster.place(a).node == cluster.place(b).node) return {};
  const auto number = static_cast<std::int32_t>(channel);
  const std::int32_t receiver = cluster.gpu_of(b);
  const nccl::NetEndpoint in = nccl::p2p_receive(cluster.topology_of(b), receiver, number);
  const nccl::NodeTopology& sender = cluster.topology_of(a);
  const nccl::NetEndpoint out =
      plan_->gpu_initiated ? nccl::p2p_receive(sender, cluster.gpu_of(a), number)
                           : nccl::p2p_send(sender, cluster.gpu_of(a),
                                            cluster.topology_of(b).gpu(receiver).dev, number);
  if (in.net < 0 || out.net < 0) return {};
  algorithms::NicPair nics;
  nics.out = nic(from, out.net);
  nics.in = nic(to, in.net);
  if (out.proxy != cluster.gpu_of(a)) nics.relay = gpu(from, out.proxy);
  return nics;
}

sim::HostStops HostPaths::stops(std::uint32_t from, std::uint32_t to,
                                const algorithms::NicPair& nics) const {
  if (!nics.out.valid() || !nics.in.valid()) return in_node(from, to);
  const nccl::Cluster& cluster = plan_->cluster;
  const nccl::NodeTopology& sender = cluster.topology_of(signed_rank(from));
  const nccl::NodeTopology& receiver = cluster.topology_of(signed_rank(to));
  const std::int32_t net_out = net_of(from, nics.out);
  const std::int32_t net_in = net_of(to, nics.in);
  if (net_out < 0 || net_in < 0) return {};
  sim::HostStops stops;
  const DeviceId proxy = nics.relay.valid() ? nics.relay : gpu_[from];
  stops.out_ll = cpu_[proxy.index()];
  if (sender.check_gdr(cluster.gpu_of(signed_rank(from)), net_out, true) == nccl::GdrMode::off)
    stops.out = stops.out_ll;
  if (receiver.check_gdr(cluster.gpu_of(signed_rank(to)), net_in, false) == nccl::GdrMode::off)
    stops.in = cpu_[gpu_[to].index()];
  stops.sockets = sender.sockets();
  if (stops.sockets) {
    stops.streams = static_cast<std::uint16_t>(nccl::socket_streams(sender.settings()));
  } else {
    stops.queue_pairs = sender.settings().queue_pairs;
    stops.split = sender.settings().split_on_queue_pairs;
  }
  return stops;
}

}  // namespace railyard::scenarios
