// cluster: and ranks:.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/machine_yaml.h"
#include "scenarios/sections.h"
#include "scenarios/text_fence.h"
#include "topologies/import/importer.h"
#include "topologies/machine.h"

namespace railyard::scenarios {
namespace {

constexpr std::uint32_t kMaxCount = 1'000'000;  // of anything in a cluster

// A PCIe link that trained low: its generation and lanes.
Result<void> decode_trained(const Place& place, topologies::LinkChange& out) {
  constexpr std::array kGigatransfers{2.5, 5.0, 8.0, 16.0, 32.0, 64.0};
  MapReader reader(place);
  std::size_t generation = 0;
  std::uint32_t lanes = 0;
  reader.required("generation", generation, std::size_t{1}, kGigatransfers.size());
  reader.required("lanes", lanes, 1U, 16U);
  RAILYARD_TRY(reader.finish());
  out.pcie_rate = topologies::pcie_rate(kGigatransfers[generation - 1], lanes);
  return {};
}

Result<void> decode_slow(const Place& place, topologies::LinkChange& out) {
  MapReader reader(place);
  reader.required("link", out.pattern);
  const bool slower = reader.optional("speed", out.speed, 1e-6, 1.0);
  const bool farther = reader.optional("extra_latency", out.extra_latency);
  const auto trained = reader.find("pcie");
  if (trained) reader.take(decode_trained(*trained, out));
  RAILYARD_TRY(reader.finish());
  if (!slower && !farther && !trained)
    return place.error("'speed', 'extra_latency' or 'pcie' is expected");
  return {};
}

void read_changes(MapReader& reader, std::vector<topologies::LinkChange>& out) {
  std::vector<std::string> disabled;
  reader.optional("disable", disabled);
  for (std::string& pattern : disabled)
    out.push_back({.pattern = std::move(pattern), .disable = true});
  const auto slow = reader.find("slow");
  if (!slow || !reader.take(expect(*slow, Node::Kind::list))) return;
  for (std::size_t i = 0; i < slow->node->items.size(); ++i) {
    topologies::LinkChange change;
    if (!reader.take(decode_slow(slow->item(i), change))) return;
    out.push_back(std::move(change));
  }
}

// The machine exists, the overrides fit it, and the cluster is not absurdly large.
Result<void> check_cluster(const Place& place, const topologies::ClusterSpec& spec) {
  auto machine = topologies::cluster_machine(spec);
  if (!machine.ok()) {
    const Node* node = place.node->find("machine");
    return at(node != nullptr ? Place{node, place.path + ".machine"} : place, machine.error());
  }
  const auto fitted = topologies::apply_overrides(std::move(machine).value(), spec.overrides);
  if (!fitted.ok()) return at(place, fitted.error());
  const std::uint64_t gpus = std::uint64_t{spec.nodes} * fitted.value().gpus.size();
  if (gpus > topologies::kMaxGpus)
    return place.error(fmt::format("{} nodes of {} GPUs are {} GPUs; at most {} can be simulated",
                                   spec.nodes, fitted.value().gpus.size(), gpus,
                                   topologies::kMaxGpus));
  return {};
}

Result<void> decode_group(const Place& place, NamedGroup& out) {
  if (place.node->kind == Node::Kind::list) {
    RAILYARD_TRY(decode(place, out.ranks));
    if (out.ranks.empty()) return place.error("a group has at least one rank");
    std::vector<std::uint32_t> sorted = out.ranks;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) return place.error(fmt::format("rank {} is listed twice", *twice));
    return {};
  }
  if (place.node->kind != Node::Kind::map)
    return place.error("a list of ranks or {size: ..., stride: ...} is expected");
  MapReader reader(place);
  topologies::SubGroupSpec division;
  division.name = out.name;
  reader.required("size", division.size, 1, kMaxCount);
  reader.optional("stride", division.stride, 1, kMaxCount);
  RAILYARD_TRY(reader.finish());
  out.division = division;
  return {};
}

Result<void> decode_groups(const Place& place, std::vector<NamedGroup>& out) {
  RAILYARD_TRY(expect(place, Node::Kind::map));
  for (const Entry& entry : place.node->entries) {
    const Place value{&entry.value, place.path + "." + entry.key};
    if (entry.key == kWorld) return value.error("'world' is the group of all ranks already");
    NamedGroup group;
    group.name = printable(entry.key, 60);
    RAILYARD_TRY(decode_group(value, group));
    out.push_back(std::move(group));
  }
  return {};
}

}  // namespace

Result<void> decode(const Place& place, topologies::FabricSpec& out) {
  MapReader reader(place);
  read_fabric_kind(reader, out);
  reader.optional("routing", out.routing);
  reader.optional("link_rate", out.link_rate);
  reader.optional("trunk_rate", out.trunk_rate);
  reader.optional("link_latency", out.link_latency);
  reader.optional("trunk_latency", out.trunk_latency);
  reader.optional("rails", out.rails, 1, kMaxCount);
  reader.optional("levels", out.levels, 1, 3);
  reader.optional("hosts_per_leaf", out.hosts_per_leaf, 1, kMaxCount);
  reader.optional("spines", out.spines, 1, kMaxCount);
  reader.optional("trunks", out.trunks, 1, kMaxCount);
  constexpr double kLeast = 0.01;
  constexpr double kMost = 1000;
  double ratio = 1;
  if (reader.optional("oversubscription", ratio, kLeast, kMost)) out.oversubscription = ratio;
  reader.optional("hosts_per_pod", out.hosts_per_pod, 1, kMaxCount);
  reader.optional("cores_per_spine", out.cores_per_spine, 1, kMaxCount);
  reader.optional("core_trunks", out.core_trunks, 1, kMaxCount);
  if (reader.optional("core_oversubscription", ratio, kLeast, kMost))
    out.core_oversubscription = ratio;
  reader.optional("leaves_per_group", out.leaves_per_group, 1, kMaxCount);
  reader.optional("global_links", out.global_links, 1, kMaxCount);
  reader.optional("switch_ports", out.switch_ports, 1, kMaxCount);
  return reader.finish();
}

namespace {

// A name of the catalogue or a mapping.
Result<void> decode_machine(const Place& place, topologies::ClusterSpec& out) {
  if (place.node->kind != Node::Kind::map) return decode(place, out.machine);
  topologies::MachineSpec machine;
  RAILYARD_TRY(decode(place, machine));
  out.machine = machine.name;
  out.custom = std::move(machine);
  return {};
}

// The node that a file describes (`topology_file`); the catalogue's `machine`, if named, supplies
// what the file does not say.
Result<void> import_machine(const Place& place, bool likened, ClusterInput& out) {
  std::string name;
  RAILYARD_TRY(decode(place, name));
  const std::string path = beside(place, name);
  auto text = read_text_file(path);
  if (!text.ok()) return at(place, text.error());
  topologies::ImportOptions options;
  options.name = "imported";
  if (likened) options.like = out.spec.machine;
  auto file = topologies::import_text(text.value(), path, options);
  if (!file.ok()) return at(place, sim::bad_input(file.error().text()));
  if (!file.value().machine)
    return place.error(file.value().no_machine.empty() ? "the file describes no machine"
                                                       : file.value().no_machine);
  topologies::ImportedMachine imported = std::move(*file.value().machine);
  if (imported.hosts > 1 && !out.spec.overrides.nodes_per_nvlink_domain)
    out.spec.overrides.nodes_per_nvlink_domain = imported.hosts;
  out.spec.machine = imported.machine.name;
  out.spec.custom = std::move(imported.machine);
  out.files.push_back({path, fnv1a(text.value()), text.value().size()});
  return {};
}

// Without reading files, a catalogue machine stands for the one in the file.
void read_machine(MapReader& reader, bool read_files, ClusterInput& out) {
  const auto file = reader.find("topology_file");
  const auto machine = file ? reader.find("machine") : reader.find_required("machine");
  if (machine) {
    reader.take(decode_machine(*machine, out.spec));
    if (file && out.spec.custom) {
      reader.take(machine->error("beside topology_file, a name of the catalogue is expected"));
      return;
    }
  }
  if (file && read_files) reader.take(import_machine(*file, machine.has_value(), out));
}

}  // namespace

Result<void> decode_cluster(const Place& place, bool read_files, ClusterInput& input) {
  topologies::ClusterSpec& out = input.spec;
  MapReader reader(place);
  const auto count = [&](std::string_view key, std::optional<std::uint32_t>& target,
                         std::uint32_t least = 1) {
    std::uint32_t value = 0;
    if (reader.optional(key, value, least, kMaxCount)) target = value;
  };
  read_machine(reader, read_files, input);
  reader.required("nodes", out.nodes, 1, kMaxCount);
  count("gpus_per_node", out.overrides.gpus_per_node);
  count("nics_per_node", out.overrides.nics_per_node, 0);
  count("nodes_per_nvlink_domain", out.overrides.nodes_per_nvlink_domain);
  reader.optional("nic_rate", out.overrides.nic_rate);
  reader.optional("nvlink", out.overrides.nvlink);
  reader.optional("acs", out.overrides.acs);
  reader.optional("fabric", out.fabric);
  read_changes(reader, out.changes);
  RAILYARD_TRY(reader.finish());
  if (reader.has("topology_file") && !read_files) return {};
  return check_cluster(place, out);
}

Result<void> decode_ranks(const Place& place, topologies::PlacementSpec& out,
                          std::vector<NamedGroup>& groups) {
  MapReader reader(place);
  reader.optional("order", out.order);
  reader.optional("count", out.ranks, 1, kMaxCount);
  reader.optional("gpus_per_node", out.gpus_per_node, 1, kMaxCount);
  reader.optional("gpus", out.gpus);
  reader.optional("nodes", out.nodes);
  reader.optional("gpus_per_process", out.gpus_per_process, 1, kMaxCount);
  reader.optional("thread_per_gpu", out.thread_per_gpu);
  if (const auto named = reader.find("groups")) reader.take(decode_groups(*named, groups));
  RAILYARD_TRY(reader.finish());
  if (reader.has("gpus") && reader.has("gpus_per_node"))
    return place.error("'gpus' and 'gpus_per_node' exclude each other");
  return {};
}

}  // namespace railyard::scenarios
