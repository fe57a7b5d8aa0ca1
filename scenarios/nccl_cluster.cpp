#include "scenarios/nccl_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "algorithms/heads.h"
#include "algorithms/nccl/chunks.h"
#include "algorithms/nccl/connect.h"
#include "algorithms/nccl/constants.h"
#include "algorithms/nccl/transport.h"
#include "algorithms/nccl/tuner_file.h"
#include "algorithms/places.h"
#include "scenarios/host_paths.h"
#include "topologies/cluster.h"
#include "topologies/import/graph_xml.h"
#include "topologies/import/nccl_xml.h"
#include "topologies/machine_hardware.h"
#include "topologies/placement.h"

namespace railyard::scenarios {
namespace {

namespace nccl = algorithms::nccl;
using nccl::Cluster;
using nccl::ClusterHost;
using nccl::ClusterRequest;
using nccl::Environment;

// Device numbers of a hardware's GPUs, or of its network devices, ascending: position = the index
// that the topology gives the GPU or NIC.
struct DeviceNumbers {
  std::vector<std::int32_t> gpus;
  std::vector<std::int32_t> nets;
};

void collect(const std::vector<sim::HardwareNic>& nics, DeviceNumbers& out) {
  for (const sim::HardwareNic& nic : nics)
    for (const sim::HardwareNet& net : nic.nets) out.nets.push_back(net.dev);
}

void collect(const std::vector<sim::HardwarePci>& list, DeviceNumbers& out) {
  for (const sim::HardwarePci& pci : list) {
    if (pci.gpu) out.gpus.push_back(pci.gpu->dev);
    collect(pci.nics, out);
    collect(pci.children, out);
  }
}

DeviceNumbers device_numbers(const sim::Hardware& hardware) {
  DeviceNumbers out;
  for (const sim::HardwareCpu& cpu : hardware.cpus) {
    collect(cpu.pci, out);
    collect(cpu.nics, out);
  }
  std::ranges::sort(out.gpus);
  std::ranges::sort(out.nets);
  return out;
}

std::vector<ClusterHost> hosts_of(const sim::Topology& topology, const sim::Group& group,
                                  const DeviceNumbers& numbers, bool shared_nvlink) {
  std::vector<ClusterHost> hosts;
  std::map<std::uint32_t, std::size_t> of_node;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    const sim::Member& member = group[rank];
    const auto [known, fresh] = of_node.try_emplace(member.node, hosts.size());
    if (fresh) {
      ClusterHost& host = hosts.emplace_back();
      if (shared_nvlink)
        host.domain = static_cast<std::int32_t>(topology.nodes[member.node].nvlink_domain);
    }
    RAILYARD_CHECK(member.local_index < numbers.gpus.size(), "the hardware has the machine's GPUs");
    hosts[known->second].ranks.push_back(
        {static_cast<std::int32_t>(rank), numbers.gpus[member.local_index]});
  }
  return hosts;
}

void set_capabilities(const NcclSetup& setup, ClusterRequest& request) {
  nccl::Capabilities& out = request.capabilities;
  out.peer_access = setup.p2p;
  out.gpu_direct = setup.gpudirect;
  out.multicast = setup.multicast;
  out.collnet = setup.collnet;
  request.collnet = {.present = setup.collnet,
                     .enabled = setup.collnet,
                     .all_gather = setup.collnet,
                     .reduce_scatter = setup.collnet};
}

// Files that variables name, relative to where the program runs, as NCCL's are.
Result<void> read_named_files(const Environment& env, ClusterRequest& request) {
  if (const auto path = env.text("NCCL_TUNER_CONFIG_FILE")) {
    RAILYARD_ASSIGN(const std::string text, read_text_file(*path));
    RAILYARD_ASSIGN(request.tuner, nccl::parse_tuner_file(text, *path));
  }
  if (const auto path = env.text("NCCL_GRAPH_FILE")) {
    RAILYARD_ASSIGN(topologies::GraphFile file, topologies::read_graph_xml(*path));
    request.forced_graphs = std::move(file.graphs);
    request.forced_have_ranks = file.has_ranks;
  }
  return {};
}

// `env` with NCCL_TOPO_FILE replaces the machine's own hardware, as it does in NCCL.
Result<sim::Hardware> hardware_for(const Scenario& scenario, const Environment& env) {
  if (const auto path = env.text("NCCL_TOPO_FILE"); path && scenario.read_files)
    return topologies::read_nccl_xml(*path);
  RAILYARD_ASSIGN(const topologies::MachineSpec machine,
                  topologies::resolve_machine(scenario.cluster));
  return topologies::hardware_of(machine);
}

// Whether any two nodes share an NVLink domain.
bool shares_nvlink(const sim::Topology& topology) {
  for (std::size_t n = 1; n < topology.nodes.size(); ++n)
    if (topology.nodes[n].nvlink_domain == topology.nodes[n - 1].nvlink_domain) return true;
  return false;
}

class ChannelBuilder {
 public:
  ChannelBuilder(const GroupPlan& plan, const HostPaths& paths, const sim::Topology& topology,
                 const sim::Group& group)
      : cluster_(plan.cluster), paths_(paths), topology_(topology), group_(group) {
    nvswitches_.resize(topology.devices.size());
    for (const sim::Link& link : topology.links)
      if (topology.devices[link.to.index()].kind == sim::DeviceKind::nvswitch)
        nvswitches_[link.from.index()] = link.to;
  }

  // As many as the larger of NCCL's two counts, for collectives and for NVLS; a call is limited to
  // its own.
  sim::Channels build() {
    sim::Channels channels = nccl::to_channels(cluster_.comm.info, cluster_.comm.connections);
    const std::size_t searched = channels.size();
    for (std::size_t c = searched; c < index(cluster_.comm.info.nvls_channels); ++c)
      channels.push_back(channels[c % searched]);
    for (std::size_t c = 0; c < channels.size(); ++c)
      for (const nccl::Algorithm algorithm :
           {nccl::Algorithm::ring, nccl::Algorithm::tree, nccl::Algorithm::nvls_tree})
        add_hops(algorithm, static_cast<std::int32_t>(c), channels[c]);
    if (paths_.any_shared())
      for (sim::Channel& channel : channels) add_shared(channel);
    add_heads(channels);
    return channels;
  }

 private:
  // Who sums for its node, and over which tree or in which switches the heads meet.
  void add_heads(sim::Channels& channels) const {
    const nccl::CommInfo& info = cluster_.comm.info;
    if (!info.nvls_support && !info.collnet) return;
    sim::Heads heads;
    for (std::size_t n = 0; n < cluster_.comm.inputs.nodes.size(); ++n)
      heads.nodes.push_back(head_node(n));
    const std::vector<std::vector<sim::DeviceId>> switches = meeting_switches(heads, channels);
    for (std::size_t c = 0; c < channels.size(); ++c) {
      channels[c].heads = heads;
      if (info.nodes > 1 && info.nvls_support)
        channels[c].heads.tree = head_tree(heads, static_cast<std::int32_t>(c));
      if (c < switches.size()) channels[c].heads.switches = switches[c];
    }
  }

  [[nodiscard]] sim::HeadNode head_node(std::size_t node) const {
    const nccl::CommNode& members = cluster_.comm.inputs.nodes[node];
    const nccl::NodeKind& kind = cluster_.comm.inputs.kinds[members.kind];
    sim::HeadNode out;
    const auto& chains = kind.collnet_chain.channels;
    for (std::size_t i = 0; i < members.ranks.size(); ++i)
      out.ranks.push_back(static_cast<std::uint32_t>(
          members.ranks[chains.empty() ? i : index(chains.front().gpus[i])]));
    for (const std::vector<std::int32_t>& head : cluster_.comm.connections.nvls_heads)
      out.heads.push_back(static_cast<std::uint32_t>(head[node]));
    if (out.heads.empty()) out.heads.push_back(out.ranks.front());
    out.nvswitch = nvswitch_of(out.ranks);
    return out;
  }

  // The NVSwitch in which all of these GPUs meet; invalid = there is none.
  [[nodiscard]] sim::DeviceId nvswitch_of(const std::vector<std::uint32_t>& ranks) const {
    sim::DeviceId common;
    for (const std::uint32_t rank : ranks) {
      const sim::DeviceId own = nvswitches_[group_[rank].gpu.index()];
      if (!own.valid() || (common.valid() && own != common)) return {};
      common = own;
    }
    return common;
  }

  // NVLSTree over the nodes: the same for all heads.
  [[nodiscard]] std::vector<sim::TreeEdges> head_tree(const sim::Heads& heads,
                                                      std::int32_t channel) const {
    std::vector<sim::TreeEdges> tree;
    for (const sim::HeadNode& node : heads.nodes) {
      const nccl::NvlsEdges edges =
          nccl::nvls_edges(cluster_.comm.info, cluster_.comm.connections,
                           static_cast<std::int32_t>(node.heads.front()), channel);
      const auto node_of = [&](std::int32_t rank) {
        return rank < 0 ? -1 : cluster_.place(rank).node;
      };
      tree.push_back({node_of(edges.up), {node_of(edges.down[0]), node_of(edges.down[1]), -1}});
    }
    return tree;
  }

  // By channel and head, with CollNet: the fabric switches that sum.
  [[nodiscard]] std::vector<std::vector<sim::DeviceId>> meeting_switches(
      const sim::Heads& heads, const sim::Channels& channels) const {
    if (!cluster_.comm.info.collnet) return {};
    const auto places = algorithms::find_places(topology_, group_);
    if (!places.ok()) return {};
    sim::Channels by_rule(channels.size());
    algorithms::add_default_heads(topology_, places.value(), group_,
                                  static_cast<std::uint32_t>(heads.nodes.front().heads.size()),
                                  by_rule);
    std::vector<std::vector<sim::DeviceId>> switches;
    for (sim::Channel& channel : by_rule) switches.push_back(std::move(channel.heads.switches));
    return switches;
  }

  void add_hops(nccl::Algorithm algorithm, std::int32_t index, sim::Channel& channel) {
    for (const nccl::NetHop& hop : nccl::net_hops(cluster_.comm.inputs, cluster_.comm.info,
                                                  cluster_.comm.connections, algorithm, index)) {
      if (hop.net_out < 0 || hop.net_in < 0) continue;
      sim::NetEdge edge;
      edge.from = static_cast<std::uint32_t>(hop.from);
      edge.to = static_cast<std::uint32_t>(hop.to);
      edge.nic_out = nic(hop.from, hop.net_out);
      edge.nic_in = nic(hop.to, hop.net_in);
      edge.relay = relay(hop.from, hop.net_out);
      edge.host = paths_.stops(edge.from, edge.to, {edge.nic_out, edge.nic_in, edge.relay});
      add_edge(edge, channel);
    }
  }

  static void add_edge(const sim::NetEdge& edge, sim::Channel& channel) {
    const bool known = std::ranges::any_of(channel.net_edges, [&](const sim::NetEdge& other) {
      return other.from == edge.from && other.to == edge.to;
    });
    if (!known) channel.net_edges.push_back(edge);
  }

  // Edges inside nodes that go through shared memory.
  void add_shared(sim::Channel& channel) const {
    const auto add = [&](std::uint32_t from, std::uint32_t to) {
      sim::NetEdge edge;
      edge.from = from;
      edge.to = to;
      edge.host = paths_.stops(from, to, {});
      if (edge.host.in.valid()) add_edge(edge, channel);
    };
    for (std::size_t i = 0; i < channel.ring.size(); ++i)
      add(channel.ring[i], channel.ring[(i + 1) % channel.ring.size()]);
    for (std::uint32_t rank = 0; rank < channel.tree.size(); ++rank) {
      if (channel.tree[rank].up < 0) continue;
      const auto up = static_cast<std::uint32_t>(channel.tree[rank].up);
      add(rank, up);
      add(up, rank);
    }
  }

  // The topology's device for a net id of a rank's node.
  [[nodiscard]] sim::DeviceId nic(std::int32_t rank, std::int64_t id) const {
    return paths_.nic(static_cast<std::uint32_t>(rank),
                      cluster_.topology_of(rank).system().net_of_id(id));
  }

  // The GPU of the rank's node that passes data on to the NIC; invalid = the rank's own.
  [[nodiscard]] sim::DeviceId relay(std::int32_t rank, std::int64_t id) const {
    const nccl::NodeTopology& node = cluster_.topology_of(rank);
    const std::int32_t own = cluster_.gpu_of(rank);
    const std::int32_t by = node.relay_gpu(own, node.system().net_of_id(id));
    return by == own ? sim::DeviceId() : paths_.gpu(static_cast<std::uint32_t>(rank), by);
  }

  template <typename T>
  static std::size_t index(T value) {
    return static_cast<std::size_t>(value);
  }

  const Cluster& cluster_;
  const HostPaths& paths_;
  const sim::Topology& topology_;
  const sim::Group& group_;
  std::vector<sim::DeviceId> nvswitches_;  // by device: the one it is linked to
};

nccl::DataType type_of(std::int64_t element_size) {
  if (element_size == 1) return nccl::DataType::int8;
  if (element_size == 2) return nccl::DataType::bfloat16;
  return element_size == 8 ? nccl::DataType::float64 : nccl::DataType::float32;
}

sim::Algorithm algorithm_of(nccl::Algorithm algorithm) {
  switch (algorithm) {
    case nccl::Algorithm::tree: return sim::Algorithm::tree;
    case nccl::Algorithm::ring: return sim::Algorithm::ring;
    case nccl::Algorithm::collnet_direct: return sim::Algorithm::collnet_direct;
    case nccl::Algorithm::collnet_chain: return sim::Algorithm::collnet_chain;
    case nccl::Algorithm::nvls: return sim::Algorithm::nvls;
    case nccl::Algorithm::nvls_tree: return sim::Algorithm::nvls_tree;
    case nccl::Algorithm::pat: break;
  }
  return sim::Algorithm::pat;
}

// A GPU posts only what the NIC then takes out of its memory.
Result<void> check_gpu_initiated(const Cluster& cluster) {
  for (const nccl::NodeTopology& node : cluster.topologies)
    for (std::int32_t gpu = 0; gpu < node.gpus(); ++gpu) {
      const nccl::NetEndpoint end = nccl::p2p_receive(node, gpu, 0);
      const bool reached = !node.sockets() && end.gdr != nccl::GdrMode::off;
      if (end.net < 0 || reached) continue;
      return sim::bad_input(
          fmt::format("gpu_initiated: GPU {} cannot send without a proxy: {}", node.gpu(gpu).dev,
                      node.sockets() ? "the network is sockets"
                                     : "its NIC does not reach its memory (GPUDirect RDMA)"));
    }
  return {};
}

}  // namespace

Result<std::shared_ptr<const GroupPlan>> plan_group(const Scenario& scenario,
                                                    const sim::Topology& topology,
                                                    const sim::Group& group) {
  auto plan = std::make_shared<GroupPlan>();
  std::map<std::string, std::string> variables = scenario.nccl_setup.env;
  if (!scenario.nccl_setup.infiniband) variables.try_emplace("NCCL_IB_DISABLE", "1");
  RAILYARD_ASSIGN(plan->env, Environment::parse(variables));
  plan->warnings = plan->env.warnings();
  ClusterRequest request;
  RAILYARD_ASSIGN(sim::Hardware hardware, hardware_for(scenario, plan->env));
  const DeviceNumbers numbers = device_numbers(hardware);
  request.hardware.push_back(std::move(hardware));
  request.hosts = hosts_of(topology, group, numbers, shares_nvlink(topology));
  set_capabilities(scenario.nccl_setup, request);
  if (!scenario.nccl_setup.version.empty()) {
    RAILYARD_ASSIGN(request.version, nccl::parse_version(scenario.nccl_setup.version));
  }
  if (scenario.read_files) RAILYARD_TRY(read_named_files(plan->env, request));
  RAILYARD_ASSIGN(plan->cluster, nccl::plan_cluster(request, plan->env));
  plan->net_numbers = numbers.nets;
  plan->gpu_initiated = scenario.nccl_setup.gpu_initiated;
  if (plan->gpu_initiated) RAILYARD_TRY(check_gpu_initiated(plan->cluster));
  for (const nccl::NodeTopology& node : plan->cluster.topologies)
    for (std::string& line : nccl::lost_transports(node)) plan->warnings.push_back(std::move(line));
  for (const std::string& note : plan->cluster.comm.notes) plan->warnings.push_back(note);
  return std::shared_ptr<const GroupPlan>(std::move(plan));
}

Result<sim::Group> group_of(const Scenario& scenario, const sim::Topology& topology,
                            const std::string& name) {
  RAILYARD_ASSIGN(sim::Group world, topologies::place_world(topology, scenario.ranks));
  if (name == kWorld) return world;
  const auto found = std::ranges::find(scenario.groups, name, &NamedGroup::name);
  if (found == scenario.groups.end()) return sim::bad_input("unknown group '" + name + "'");
  if (!found->division) return topologies::pick_ranks(world, found->ranks);
  RAILYARD_ASSIGN(std::vector<sim::Group> parts, topologies::sub_groups(world, *found->division));
  return std::move(parts.front());
}

PlannedCommunicator planned_communicator(const std::shared_ptr<const GroupPlan>& plan,
                                         const sim::Topology& topology, const sim::Group& group) {
  auto paths = std::make_shared<const HostPaths>(plan, topology, group);
  PlannedCommunicator made;
  made.channels = ChannelBuilder(*plan, *paths, topology, group).build();
  const nccl::CommInfo& info = plan->cluster.comm.info;
  algorithms::CommunicatorOptions& options = made.options;
  options.limits.chosen = true;
  options.limits.split = nccl::launch_rules(plan->cluster.comm.inputs.version).split;
  options.nvls_chunks = nccl::nvls_chunks(plan->cluster.comm);
  options.fifos = nccl::fifo_bytes(info);
  options.limits.nvls_channels = static_cast<std::uint32_t>(info.nvls_channels);
  options.p2p.channels = static_cast<std::uint32_t>(info.p2p_channels);
  options.p2p.channels_per_peer = static_cast<std::uint32_t>(info.p2p_channels_per_peer);
  options.p2p.chunk = sim::bytes(info.p2p_chunk);
  options.p2p.plan = std::move(paths);
  return made;
}

Result<sim::CollectiveCall> choose_call(const GroupPlan& plan, sim::CollectiveCall call) {
  const auto function = nccl::function_of(call.collective);
  if (!function.ok()) {  // sends and receives: Simple, as between nodes
    call.max_channels = 0;
    return call;
  }
  nccl::Call asked;
  asked.function = function.value();
  asked.count = call.size.raw() / call.element_size;
  asked.type = type_of(call.element_size);
  asked.root = static_cast<std::int32_t>(call.root);
  RAILYARD_ASSIGN(const nccl::Choice choice, nccl::choose(plan.cluster.comm, asked));
  call.algorithm = algorithm_of(choice.algorithm);
  call.protocol = choice.protocol;
  call.max_channels = static_cast<std::uint32_t>(choice.max_channels);
  return call;
}

}  // namespace railyard::scenarios
