#include "scenarios/platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "scenarios/profile.h"
#include "sim/text.h"
#include "topologies/machine.h"

namespace railyard::scenarios {
namespace {

using topologies::MachineSpec;

Error no_scenario(std::string_view why) {
  return sim::bad_input(fmt::format("no scenario: {}", why));
}

// Why a platform is none that can be simulated; empty: it is one.
std::string missing(const Platform& platform) {
  if (sim::equal_ignoring_case(platform.machine, "cpu")) return "there are no GPUs";
  if (!platform.library.empty() && !sim::equal_ignoring_case(platform.library, "nccl"))
    return fmt::format("the library is {}", platform.library);
  if (platform.machine.empty() || sim::equal_ignoring_case(platform.machine, "unknown"))
    return "the machine is not stated";
  if (!platform.nodes || *platform.nodes == 0) return "the number of nodes is not stated";
  if (!platform.gpus_per_node || *platform.gpus_per_node == 0)
    return "the number of GPUs per node is not stated";
  if (*platform.nodes == 1)
    return *platform.gpus_per_node > 1 ? "" : "one GPU communicates with nobody";
  if (!platform.fabric) return "what connects the nodes is not stated";
  return platform.fabric == NetworkClass::none ? "nothing connects the nodes" : "";
}

bool has_nvlinks(const MachineSpec& machine) { return machine.nvswitch || !machine.pairs.empty(); }

// GPU and NIC below one PCIe switch, or joined by C2C: NCCL uses GPUDirect without being told.
bool nics_are_near(const MachineSpec& machine) {
  if (machine.gpu_host_class == sim::LinkClass::c2c) return true;
  return std::ranges::all_of(machine.gpus, [](const auto& gpu) { return gpu.is_switch; }) &&
         std::ranges::all_of(machine.nics, [](const auto& nic) { return nic.is_switch; });
}

// aws-ofi-nccl on p5 and later speaks its RDMA protocol, which stripes messages over the NICs of a
// GPU: NCCL sees one network device for them. On p4d and before it has one for each NIC.
bool stripes_nics(const Platform& platform, const MachineSpec& machine) {
  constexpr std::int32_t kFirst = 90;  // compute capability
  return platform.fabric == NetworkClass::efa && platform.nodes.value_or(1) > 1 &&
         machine.compute_capability >= kFirst;
}
std::uint32_t striped_nics(const Platform& platform, const MachineSpec& machine) {
  const auto gpus = static_cast<std::uint32_t>(machine.gpus.size());
  const std::uint32_t nics = platform.nics_per_node.value_or(gpus);
  return stripes_nics(platform, machine) && nics > 0 && nics % gpus == 0 ? nics / gpus : 1;
}

// NICs that a machine's only port in use is: where nothing else is stated, all of its functions.
std::uint32_t port_functions(const Platform& platform, const MachineSpec& machine) {
  const bool one = platform.nics_per_node == 1U && !platform.nic_measured;
  return one ? machine.port_functions : 1;
}

// What that plugin sets where nobody else has.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kEfaVariables{
    {{"NCCL_BUFFSIZE", "8388608"},
     {"NCCL_P2P_NET_CHUNKSIZE", "524288"},
     {"NCCL_NVLS_CHUNKSIZE", "524288"},
     {"NCCL_NVLSTREE_MAX_CHUNKSIZE", "524288"}}};

// Over which network the ranks of different nodes talk.
NetworkClass network_of(const Platform& platform) {
  if (platform.nodes.value_or(1) == 1) return NetworkClass::none;
  const NetworkClass fabric = platform.fabric.value_or(NetworkClass::none);
  const bool plugin = fabric == NetworkClass::tcpx || fabric == NetworkClass::tcpxo;
  return platform.transport == NetworkPath::tcp && !plugin ? NetworkClass::tcp : fabric;
}

Node scalar(std::string text, bool quoted = false) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.quoted = quoted;
  node.scalar = std::move(text);
  return node;
}

Node list(std::vector<Node> items) {
  Node node;
  node.kind = Node::Kind::list;
  node.items = std::move(items);
  return node;
}

// Writes the scenario, block by block.
class Writer {
 public:
  Writer(const Platform& platform, const PlatformCall& call, const MachineSpec& machine)
      : platform_(platform), call_(call), machine_(machine) {
    root_.kind = Node::Kind::map;
  }

  Result<PlatformText> write() {
    out_.notes = platform_.notes;
    put("railyard", "1");
    root_.entries.push_back({"name", {}, scalar(platform_.name, true)});
    cluster();
    if (nodes() > 1) fabric();
    ranks();
    RAILYARD_TRY(profile());
    nccl();
    variables();
    collective();
    out_.yaml = to_yaml(root_);
    return std::move(out_);
  }

 private:
  void put(std::string_view path, Node value) {
    const auto set = set_value(root_, path, std::move(value), {});
    RAILYARD_CHECK(set.ok(), "a path of plain names");
  }
  void put(std::string_view path, std::string text) { put(path, scalar(std::move(text))); }
  void note(std::string text) { out_.notes.push_back(std::move(text)); }
  [[nodiscard]] std::uint32_t nodes() const { return *platform_.nodes; }
  [[nodiscard]] std::uint32_t gpus() const { return *platform_.gpus_per_node; }

  void cluster() {
    put("cluster.machine", machine_.name);
    put("cluster.nodes", fmt::format("{}", nodes()));
    const std::uint32_t striped = striped_nics(platform_, machine_);
    const std::uint32_t functions = port_functions(platform_, machine_);
    if (platform_.nics_per_node && (nodes() == 1 || *platform_.nics_per_node > 0))
      put("cluster.nics_per_node",
          fmt::format("{}", *platform_.nics_per_node * functions / striped));
    if (functions > 1)
      note(fmt::format("a port of {} is {} NICs to NCCL, which share its rate", machine_.name,
                       functions));
    if (striped > 1)
      note(fmt::format("{} NICs per GPU: one network device of NCCL, messages striped over them",
                       striped));
    if (platform_.nic_rate)
      put("cluster.nic_rate",
          sim::to_text(*platform_.nic_rate * std::int64_t{striped} / functions));
    if (nodes() > 1 && platform_.fabric != NetworkClass::nvlink_domain) note_nics();
    nvlinks();
    domain();
  }

  void note_nics() {
    if (!platform_.nics_per_node || *platform_.nics_per_node == 0)
      note(fmt::format("NICs not stated: {} per node, as in {}", machine_.nics.size(),
                       machine_.name));
    if (!platform_.nic_rate)
      note(fmt::format("NIC rate not stated: {}, as in {}", sim::to_text(machine_.nic.value),
                       machine_.name));
  }

  void nvlinks() {
    if (!platform_.intra || gpus() == 1) return;
    const Intra intra = *platform_.intra;
    const bool joined = intra == Intra::nvlink_bridge || intra == Intra::nvlink_direct;
    const bool pcie = intra == Intra::pcie_host || intra == Intra::pcie_switch;
    if (joined && !has_nvlinks(machine_)) put("cluster.nvlink", std::string("bridges"));
    if (pcie && has_nvlinks(machine_)) put("cluster.nvlink", std::string("none"));
    if (intra == Intra::nvswitch && !machine_.nvswitch)
      note(fmt::format("{} has no NVSwitch; wired as it is", machine_.name));
  }

  void domain() {
    if (!platform_.nvlink_domain_gpus) return;
    if (!machine_.nvswitch) return note(fmt::format("{} shares no NVLink", machine_.name));
    put("cluster.nodes_per_nvlink_domain",
        fmt::format("{}", std::max(1U, *platform_.nvlink_domain_gpus / gpus())));
  }

  void fabric() {
    switch (platform_.fabric.value_or(NetworkClass::none)) {
      case NetworkClass::none:
      case NetworkClass::nvlink_domain: return;
      case NetworkClass::infiniband:
      case NetworkClass::roce: put("cluster.fabric.kind", std::string("rail-optimised")); break;
      case NetworkClass::slingshot:  // groups of 64 hosts, as on Alps
        put("cluster.fabric.kind", std::string("dragonfly+"));
        put("cluster.fabric.hosts_per_leaf", std::string("8"));
        put("cluster.fabric.leaves_per_group", std::string("8"));
        break;
      case NetworkClass::efa:
      case NetworkClass::tcp:
      case NetworkClass::tcpx:
      case NetworkClass::tcpxo: put("cluster.fabric.kind", std::string("switch")); break;
    }
    if (platform_.nic_measured)
      put("cluster.fabric.link_rate", sim::to_text(*platform_.nic_measured));
  }

  void ranks() {
    if (gpus() < machine_.gpus.size()) put("ranks.gpus_per_node", fmt::format("{}", gpus()));
    if (platform_.processes != Processes::per_node || gpus() == 1) return;
    put("ranks.gpus_per_process", fmt::format("{}", gpus()));
    if (platform_.thread_per_gpu) put("ranks.thread_per_gpu", std::string("true"));
  }

  Result<void> profile() {
    RAILYARD_ASSIGN(const std::vector<std::string> names, platform_profiles(platform_, call_.env));
    std::vector<Node> items;
    for (const std::string& name : names) items.push_back(scalar(name));
    put("profile", items.size() == 1 ? std::move(items.front()) : list(std::move(items)));
    return {};
  }

  void nccl() {
    put("nccl.choice", std::string("auto"));
    if (!platform_.nccl_used.empty()) put("nccl.version", scalar(platform_.nccl_used, true));
    if (platform_.intra == Intra::shm) put("nccl.p2p", std::string("false"));
    const NetworkClass network = network_of(platform_);
    const bool sockets = network == NetworkClass::tcp;
    if (network == NetworkClass::none) return;
    if (sockets) put("nccl.infiniband", std::string("false"));
    if (platform_.transport == NetworkPath::rdma_host) put("nccl.gpudirect", std::string("false"));
    if (platform_.transport == NetworkPath::rdma_gdr && !machine_.gpudirect)
      note(fmt::format("GPUDirect RDMA is stated, but {} has none", machine_.name));
  }

  void variables() {
    std::map<std::string, std::string> kept = usable_variables(platform_, call_.env, out_.notes);
    const bool far = platform_.transport == NetworkPath::rdma_gdr && !nics_are_near(machine_);
    if (far && nodes() > 1 && kept.emplace("NCCL_NET_GDR_LEVEL", "SYS").second)
      note("GPUDirect RDMA is stated: NCCL_NET_GDR_LEVEL=SYS, whatever lies between");
    if (stripes_nics(platform_, machine_))
      for (const auto& [name, value] : kEfaVariables) kept.emplace(name, value);
    for (const auto& [name, value] : kept) put("env." + name, scalar(value, true));
  }

  void collective() {
    Node run;
    run.kind = Node::Kind::map;
    const auto add = [&](const char* key, Node value) {
      run.entries.push_back({key, {}, std::move(value)});
    };
    std::vector<Node> sizes;
    for (const sim::Bytes size : call_.sizes) sizes.push_back(scalar(sim::to_text(size)));
    add("collective", scalar(std::string(sim::to_text(call_.collective))));
    add("sizes", list(std::move(sizes)));
    add("dtype", scalar(std::string(sim::to_text(call_.dtype))));
    if (sim::is_rooted(call_.collective)) add("root", scalar(fmt::format("{}", call_.root)));
    root_.entries.push_back({"collectives", {}, list({std::move(run)})});
  }

  const Platform& platform_;
  const PlatformCall& call_;
  const MachineSpec& machine_;
  Node root_;
  PlatformText out_;
};

// The network that a shipped profile's own figures are of.
NetworkClass network_of_profile(std::string_view profile) {
  return profile == "gh200" ? NetworkClass::slingshot : NetworkClass::infiniband;
}

std::string_view network_profile(NetworkClass network) {
  switch (network) {
    case NetworkClass::infiniband: return "net-ib";
    case NetworkClass::roce: return "net-roce";
    case NetworkClass::efa: return "net-efa";
    case NetworkClass::slingshot: return "net-slingshot";
    case NetworkClass::tcp: return "net-tcp";
    case NetworkClass::tcpx: return "net-tcpx";
    case NetworkClass::tcpxo: return "net-tcpxo";
    case NetworkClass::none:
    case NetworkClass::nvlink_domain: break;
  }
  return {};
}

// What fi_cxi(7)'s variables make of messages.
void add_slingshot_modes(const std::map<std::string, std::string>& env,
                         std::vector<std::string>& names) {
  const auto is = [&env](const char* name, std::string_view value) {
    const auto entry = env.find(name);
    return entry != env.end() && entry->second == value;
  };
  if (is("FI_CXI_DISABLE_NON_INJECT_MSG_IDC", "1")) names.emplace_back("net-slingshot-no-inline");
  if (!is("FI_CXI_RX_MATCH_MODE", "software")) return;
  names.emplace_back("net-slingshot-software");
  if (is("FI_CXI_RDZV_PROTO", "alt_read")) names.emplace_back("net-slingshot-alt-read");
  if (is("FI_HMEM_CUDA_USE_GDRCOPY", "0")) names.emplace_back("net-slingshot-cuda-copy");
}

}  // namespace

Result<std::vector<std::string>> platform_profiles(const Platform& platform,
                                                   const std::map<std::string, std::string>& env) {
  auto machine = topologies::find_machine(platform.machine);
  if (!machine.ok()) return no_scenario(machine.error().message);
  const std::string own = machine.value().profile;
  const NetworkClass network = network_of(platform);
  std::vector<std::string> names{own};
  const bool same = network == network_of_profile(own);
  if (!same && !network_profile(network).empty()) names.emplace_back(network_profile(network));
  if (network == NetworkClass::slingshot) add_slingshot_modes(env, names);
  // What was fitted to measurements of this very system.
  if (const std::string fitted = "platform-" + platform.name; is_shipped_profile(fitted))
    names.push_back(fitted);
  return names;
}

std::map<std::string, std::string> usable_variables(const Platform& platform,
                                                    const std::map<std::string, std::string>& env,
                                                    std::vector<std::string>& notes) {
  // The platform says what these lead to; their files and names are another host's.
  static constexpr std::array<std::string_view, 9> kOfTheHost{
      "NCCL_TOPO_FILE",     "NCCL_GRAPH_FILE", "NCCL_TUNER_CONFIG_FILE",
      "NCCL_TUNER_PLUGIN",  "NCCL_NET_PLUGIN", "NCCL_IB_HCA",
      "NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE", "NCCL_TESTS_DEVICE"};
  std::map<std::string, std::string> kept;
  for (const auto& [name, written] : env) {
    if (!name.starts_with("NCCL_")) continue;
    if (name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != std::string::npos) {
      notes.push_back(fmt::format("'{}' left out: it is no name of a variable", name));
      continue;
    }
    if (name == "NCCL_IB_DISABLE" ? platform.transport.has_value()
                                  : std::ranges::find(kOfTheHost, name) != kOfTheHost.end()) {
      notes.push_back(fmt::format("{} left out: it names things of the host", name));
      continue;
    }
    const std::string value = written.substr(0, written.find(" ("));
    const bool words = value.find(' ') != std::string::npos && name != "NCCL_NET";
    if (words || value.empty() || sim::equal_ignoring_case(value, "default")) {
      notes.push_back(fmt::format("{} left out: '{}' is no value of it", name, written));
      continue;
    }
    kept.emplace(name, value);
  }
  return kept;
}

Result<PlatformText> platform_yaml(const Platform& platform, const PlatformCall& call) {
  if (const std::string why = missing(platform); !why.empty()) return no_scenario(why);
  auto machine = topologies::find_machine(platform.machine);
  if (!machine.ok()) return no_scenario(machine.error().message);
  if (*platform.gpus_per_node > machine.value().gpus.size())
    return no_scenario(fmt::format("{} GPUs take part, but machine '{}' has {}",
                                   *platform.gpus_per_node, machine.value().name,
                                   machine.value().gpus.size()));
  return Writer(platform, call, machine.value()).write();
}

Result<PlatformScenario> scenario_of(const Platform& platform, const PlatformCall& call) {
  RAILYARD_ASSIGN(PlatformText text, platform_yaml(platform, call));
  PlatformScenario out{std::move(text.yaml), {}, std::move(text.notes)};
  RAILYARD_ASSIGN(out.scenario, scenario_from_text(out.text, platform.name + ".yaml"));
  return out;
}

}  // namespace railyard::scenarios
