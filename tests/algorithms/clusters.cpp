#include "tests/algorithms/clusters.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace railyard::test {
namespace {

using sim::DeviceId;
using sim::DeviceKind;
using sim::LinkClass;
using sim::Topology;

class Builder {
 public:
  DeviceId add(DeviceKind kind, std::uint32_t node, std::uint32_t local, const std::string& name) {
    topology_.devices.push_back({kind, node, local, name});
    const DeviceId id(topology_.devices.size() - 1);
    if (kind == DeviceKind::gpu) topology_.nodes[node].gpus.push_back(id);
    if (kind == DeviceKind::nic) topology_.nodes[node].nics.push_back(id);
    return id;
  }
  void join(DeviceId a, DeviceId b, LinkClass link_class) {
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      sim::Link link;
      link.from = from;
      link.to = to;
      link.link_class = link_class;
      link.capacity = sim::gigabytes_per_second(50);
      topology_.links.push_back(link);
    }
  }
  std::uint32_t add_node(std::uint32_t domain) {
    sim::Node node;
    node.name = "node" + std::to_string(topology_.nodes.size());
    node.nvlink_domain = domain;
    topology_.nodes.push_back(node);
    return static_cast<std::uint32_t>(topology_.nodes.size() - 1);
  }
  Topology take() { return std::move(topology_); }

 private:
  Topology topology_;
};

void add_node(const ClusterSpec& spec, const std::vector<DeviceId>& rail_switches,
              DeviceId nvswitch, std::uint32_t domain, Builder& builder) {
  const std::uint32_t node = builder.add_node(domain);
  const std::string prefix = "node" + std::to_string(node) + "/";
  const DeviceId cpu = builder.add(DeviceKind::cpu, node, 0, prefix + "cpu0");
  std::vector<DeviceId> switches;
  for (std::uint32_t i = 0; i * spec.gpus_per_pcie_switch < spec.gpus; ++i) {
    switches.push_back(
        builder.add(DeviceKind::pcie_switch, node, i, prefix + "plx" + std::to_string(i)));
    builder.join(switches.back(), cpu, LinkClass::pcie);
  }
  for (std::uint32_t i = 0; i < spec.gpus; ++i) {
    const DeviceId gpu = builder.add(DeviceKind::gpu, node, i, prefix + "gpu" + std::to_string(i));
    builder.join(gpu, switches[i / spec.gpus_per_pcie_switch], LinkClass::pcie);
    if (nvswitch.valid()) builder.join(gpu, nvswitch, LinkClass::nvlink);
  }
  for (std::uint32_t i = 0; i < spec.nics; ++i) {
    const DeviceId nic = builder.add(DeviceKind::nic, node, i, prefix + "nic" + std::to_string(i));
    builder.join(nic, switches[i * spec.gpus / spec.nics / spec.gpus_per_pcie_switch],
                 LinkClass::pcie);
    builder.join(nic, rail_switches[i], LinkClass::nic);
  }
}

}  // namespace

Topology cluster(const ClusterSpec& spec) {
  Builder builder;
  std::vector<DeviceId> rails;
  for (std::uint32_t i = 0; i < spec.nics; ++i)
    rails.push_back(
        builder.add(DeviceKind::fabric_switch, sim::kNoNode, i, "rail/" + std::to_string(i)));
  DeviceId nvswitch;
  for (std::uint32_t node = 0; node < spec.nodes; ++node) {
    const std::uint32_t domain = node / spec.nodes_per_domain;
    if (spec.nvswitch && node % spec.nodes_per_domain == 0)
      nvswitch = builder.add(DeviceKind::nvswitch, sim::kNoNode, domain,
                             "nvswitch/" + std::to_string(domain));
    add_node(spec, rails, nvswitch, domain, builder);
  }
  return builder.take();
}

Topology gpus_on_a_switch(std::uint32_t gpus) {
  Builder builder;
  const DeviceId hub = builder.add(DeviceKind::fabric_switch, sim::kNoNode, 0, "switch/0");
  for (std::uint32_t i = 0; i < gpus; ++i) {
    builder.add_node(i);
    const DeviceId gpu = builder.add(DeviceKind::gpu, i, 0, "node" + std::to_string(i) + "/gpu0");
    builder.join(gpu, hub, LinkClass::fabric);
  }
  return builder.take();
}

sim::Group everyone(const Topology& topology) {
  sim::Group group;
  for (std::uint32_t node = 0; node < topology.nodes.size(); ++node) {
    const auto& gpus = topology.nodes[node].gpus;
    for (std::uint32_t i = 0; i < gpus.size(); ++i)
      group.push_back({sim::Rank(group.size()), gpus[i], node, i});
  }
  return group;
}

sim::Channels random_channels(std::uint32_t ranks, std::uint32_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  sim::Channels channels(count);
  for (sim::Channel& channel : channels) {
    channel.ring.resize(ranks);
    std::iota(channel.ring.begin(), channel.ring.end(), 0u);
    for (std::size_t i = ranks; i > 1; --i) std::swap(channel.ring[i - 1], channel.ring[below(i)]);
    channel.tree.resize(ranks);
    for (std::size_t i = 1; i < ranks; ++i) {
      std::size_t parent = channel.ring[below(i)];
      while (channel.tree[parent].down[2] >= 0) parent = channel.ring[below(i)];
      auto& down = channel.tree[parent].down;
      *std::find(down.begin(), down.end(), -1) = static_cast<std::int32_t>(channel.ring[i]);
      channel.tree[channel.ring[i]].up = static_cast<std::int32_t>(parent);
    }
  }
  return channels;
}

}  // namespace railyard::test
