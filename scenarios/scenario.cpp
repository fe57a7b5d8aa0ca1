#include "scenarios/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <utility>

#include "scenarios/faults.h"
#include "scenarios/host.h"
#include "scenarios/profile.h"
#include "scenarios/sections.h"
#include "scenarios/text_fence.h"
#include "scenarios/workload.h"
#include "topologies/machine.h"

namespace railyard::scenarios {
namespace {

namespace fs = std::filesystem;

Place top(const Document& document) { return {&document.root, ""}; }

// Gloo leaves nothing to choose.
Result<void> check_backend(const Place& place, const Scenario& scenario) {
  if (!scenario.nccl.empty() || scenario.nccl_setup.choose)
    return place.error(fmt::format(
        "'nccl' and 'backend: {}' exclude each other (an included 'nccl' is removed with "
        "'nccl: ~')",
        sim::to_text(scenario.backend)));
  return {};
}

// At most one of ddp, collectives and the workloads; traffic beside it or alone.
Result<void> check_workload(const Place& place, const Scenario& scenario) {
  std::vector<std::string_view> named;
  if (scenario.ddp) named.emplace_back("ddp");
  if (!scenario.collectives.empty()) named.emplace_back("collectives");
  if (scenario.workload) named.push_back(scenario.workload->key());
  if (named.size() > 1)
    return place.error(
        fmt::format("one workload is expected: '{0}' and '{1}' exclude each other "
                    "(an included one is removed with '{0}: ~')",
                    named[0], named[1]));
  if (named.empty() && scenario.traffic.empty()) {
    std::string keys;
    for (const WorkloadKind& kind : workload_kinds()) keys += fmt::format(", '{}'", kind.key);
    return place.error("a workload is missing: one of 'ddp', 'collectives'" + keys +
                       " and 'traffic'");
  }
  const bool communicates = scenario.workload ? scenario.workload->communicates() : !named.empty();
  if (scenario.backend != Backend::nccl) return check_backend(place, scenario);
  const auto machine = topologies::cluster_machine(scenario.cluster);
  if (communicates && machine.ok() && machine.value().processors_only)
    return place.error(
        fmt::format("machine '{}' has no GPUs for NCCL; 'backend: gloo' runs on processors",
                    machine.value().name));
  if (communicates && scenario.nccl.empty() && !scenario.nccl_setup.choose)
    return place.error(
        "the key 'nccl' is missing: 'nccl: auto' lets NCCL's rules choose, or name algorithm, "
        "protocol and channels");
  return {};
}

template <typename T>
Result<void> assign(T& out, Result<T> decoded) {
  if (!decoded.ok()) return decoded.error();
  out = std::move(decoded).value();
  return {};
}

// A workload by its own key. Two of them exclude each other.
void read_workload(MapReader& reader, Scenario& out) {
  for (const WorkloadKind& kind : workload_kinds()) {
    const std::optional<Place> place = reader.find(kind.key);
    if (!place) continue;
    auto decoded = kind.decode(*place);
    if (!decoded.ok()) {
      reader.take(decoded.error());
    } else if (out.workload) {
      reader.take(place->error(
          fmt::format("'{}' and '{}' exclude each other", out.workload->key(), kind.key)));
    } else {
      out.workload = std::move(decoded).value();
    }
  }
}

// Every group that is named is `world` or one of `ranks.groups`.
Result<void> check_group(const Scenario& scenario, const std::string& wanted, const Place& place) {
  std::vector<std::string_view> names{kWorld};
  for (const NamedGroup& group : scenario.groups) names.push_back(group.name);
  if (std::find(names.begin(), names.end(), wanted) != names.end()) return {};
  return place.error(fmt::format("no group '{}' in ranks.groups{} (groups: {})",
                                 printable(wanted, 60), sim::did_you_mean(wanted, names),
                                 fmt::join(names, ", ")));
}

Result<void> check_groups(const Place& place, const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.collectives.size(); ++i) {
    const Place list{place.node->find("collectives"), "collectives"};
    RAILYARD_TRY(check_group(scenario, scenario.collectives[i].group, list.item(i)));
  }
  if (!scenario.workload) return {};
  const std::string key(scenario.workload->key());
  for (const std::string& group : scenario.workload->groups())
    RAILYARD_TRY(check_group(scenario, group, {place.node->find(key), key}));
  return {};
}

// `profile:` is a name or a list of names.
std::vector<Place> profile_places(const Place& named) {
  if (named.node->kind != Node::Kind::list) return {named};
  std::vector<Place> places;
  for (std::size_t i = 0; i < named.node->items.size(); ++i) places.push_back(named.item(i));
  return places;
}

Result<void> read_profile_at(const Place& place, const std::string& name, Scenario& out) {
  RAILYARD_ASSIGN(const std::string path, find_profile(place, name));
  auto profile = read_profile_over(path, std::move(out.parameters));
  if (!profile.ok()) {
    const Error& error = profile.error();
    return error.code == sim::ErrorCode::io || error.where.empty() ? at(place, error) : error;
  }
  out.parameters = std::move(profile.value().parameters);
  out.inputs.push_back(std::move(profile.value().file));
  for (SourceFile& base : profile.value().bases) out.inputs.push_back(std::move(base));
  return {};
}

Result<void> read_profiles(const Place& named, bool read_files, Scenario& out) {
  const std::vector<Place> places = profile_places(named);
  if (places.empty()) return named.error("the list is empty");
  std::string joined;
  for (const Place& place : places) {
    std::string name;
    RAILYARD_TRY(decode(place, name));
    if (!out.profile.empty()) out.profile += " + ";
    out.profile += name;
    if (!read_files) continue;
    RAILYARD_TRY(read_profile_at(place, name, out));
    if (!joined.empty()) joined += " + ";
    joined += out.parameters.name;
  }
  out.parameters.name = joined;
  return {};
}

// The profile's files, then the scenario's own values over them.
Result<void> read_parameters(MapReader& reader, bool read_files, Scenario& out) {
  const std::optional<Place> named = reader.find("profile");
  const std::optional<Place> overrides = reader.find("parameters");
  if (named) {
    RAILYARD_TRY(read_profiles(*named, read_files, out));
  } else {
    const auto machine = topologies::cluster_machine(out.cluster);
    if (!machine.ok()) return at(reader.place(), machine.error());
    out.profile = machine.value().profile;
    if (read_files) RAILYARD_TRY(read_profile_at(reader.place(), out.profile, out));
  }
  return overrides ? override_parameters(*overrides, read_files, out.parameters) : Result<void>();
}

void read_identity(MapReader& reader, const std::string& file, Scenario& out) {
  out.name = fs::path(file).stem().string();
  reader.optional("name", out.name);
  reader.optional("description", out.description);
  reader.optional("seed", out.seed);
}

void read_cluster(MapReader& reader, bool read_files, Scenario& out) {
  ClusterInput input;
  const auto cluster = reader.find_required("cluster");
  if (!cluster || !reader.take(decode_cluster(*cluster, read_files, input))) return;
  out.cluster = std::move(input.spec);
  out.inputs.insert(out.inputs.end(), input.files.begin(), input.files.end());
}

void read_blocks(MapReader& reader, bool read_files, Scenario& out) {
  read_cluster(reader, read_files, out);
  if (const auto ranks = reader.find("ranks"))
    reader.take(decode_ranks(*ranks, out.ranks, out.groups));
  if (const auto nccl = reader.find("nccl"))
    reader.take(decode_nccl(*nccl, out.nccl, out.nccl_setup));
  reader.optional("backend", out.backend);
  if (const auto env = reader.find("env")) reader.take(decode_env(*env, out.nccl_setup));
  out.cluster.overrides.direct_nic = uses_direct_nic(out.nccl_setup);
  reader.optional("collectives", out.collectives);
  DdpSpec ddp;
  if (reader.optional("ddp", ddp)) out.ddp = std::move(ddp);
  read_workload(reader, out);
  reader.optional("traffic", out.traffic);
  if (const auto faults = reader.find("faults"))
    reader.take(assign(out.faults, decode_faults(*faults)));
  if (const auto host = reader.find("host")) reader.take(assign(out.host, decode_host(*host)));
  reader.optional("engine", out.engine);
  Exploration explore;
  explore.objective = trains(out) ? Objective::step_time : Objective::time;
  if (reader.optional("explore", explore)) out.explore = std::move(explore);
}

Result<Scenario> finish(Result<Document> read, const ReadOptions& options) {
  if (!read.ok()) return read.error();
  auto document = std::make_shared<Document>(std::move(read).value());
  for (const std::string& set : options.sets) RAILYARD_TRY(apply_set(document->root, set));
  RAILYARD_ASSIGN(Scenario scenario, decode_scenario(std::move(document), options.read_files));
  if (scenario.explore) RAILYARD_TRY(check_axes(scenario));
  return scenario;
}

}  // namespace

Result<Scenario> decode_scenario(std::shared_ptr<const Document> document, bool read_files) {
  Scenario out;
  MapReader reader(top(*document));
  std::int64_t version = 0;
  reader.required("railyard", version, kSchemaVersion, kSchemaVersion);
  read_identity(reader, document->name, out);
  out.inputs = document->files;
  read_blocks(reader, read_files, out);
  // Keys of the last block must be known to the reader before it names unknown ones.
  reader.find("profile");
  reader.find("parameters");
  RAILYARD_TRY(reader.finish());
  RAILYARD_TRY(check_workload(reader.place(), out));
  RAILYARD_TRY(check_groups(reader.place(), out));
  if (read_files) RAILYARD_TRY(load_fabric(out, *document));
  RAILYARD_TRY(read_parameters(reader, read_files, out));
  out.document = std::move(document);
  out.read_files = read_files;
  return out;
}

bool trains(const Scenario& scenario) {
  return scenario.ddp || (scenario.workload && scenario.workload->trains());
}

Result<Scenario> read_scenario(const std::string& path, const ReadOptions& options) {
  return finish(load_document(path, {.includes = options.read_files}), options);
}

Result<Scenario> scenario_from_text(std::string_view text, const std::string& name,
                                    const ReadOptions& options) {
  return finish(document_from_text(text, name, {.includes = options.read_files}), options);
}

namespace {

// A path must still lead there when the text is saved elsewhere.
void make_profile_absolute(Node& name) {
  const bool is_path = name.scalar.find('/') != std::string::npos || name.scalar.ends_with(".yaml");
  const auto path = find_profile({&name, "profile"}, name.scalar);
  std::error_code failed;
  if (is_path && path.ok()) name.scalar = fs::absolute(path.value(), failed).string();
}

// A file that is named at `path` must still be found when the text is saved elsewhere.
void make_absolute(Node& root, std::initializer_list<std::string_view> path) {
  Node* file = &root;
  for (const std::string_view key : path)
    if (file != nullptr) file = file->kind == Node::Kind::map ? file->find(key) : nullptr;
  if (file == nullptr || file->kind != Node::Kind::scalar) return;
  std::error_code failed;
  file->scalar = fs::absolute(beside({file, ""}, file->scalar), failed).string();
}

}  // namespace

std::string resolved_yaml(const Scenario& scenario) {
  Node root = scenario.document->root;
  Node* written = root.find("profile");
  if (written == nullptr) {
    Node profile;
    profile.kind = Node::Kind::scalar;
    profile.scalar = scenario.profile;
    const auto set = set_value(root, "profile", std::move(profile), {});
    RAILYARD_CHECK(set.ok(), "a scenario's root is a map");
  } else if (scenario.read_files) {
    make_profile_absolute(*written);
    for (Node& item : written->items) make_profile_absolute(item);
  }
  if (!scenario.read_files) return to_yaml(root);
  make_absolute(root, {"cluster", "topology_file"});
  make_absolute(root, {"kv", "requests", "trace"});
  make_fabric_paths_absolute(root);
  return to_yaml(root);
}

}  // namespace railyard::scenarios
