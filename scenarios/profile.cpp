#include "scenarios/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_map>

#include "scenarios/text_fence.h"
#include "sim/parameter_groups.h"

namespace railyard::scenarios {
namespace {

namespace fs = std::filesystem;
using sim::for_each_group;
using sim::Origin;
using sim::Parameters;
using sim::Provenance;

constexpr std::string_view kNotStated = "not stated";
constexpr std::int64_t kMostRows = 1'000'000;  // of one size band
constexpr double kMostError = 1e6;
constexpr std::string_view kDefault = "default of the program; the profile does not state it";

// A map from each name of an enum's table to a struct.
template <typename E, typename Array>
Result<void> decode_by_enum(const Place& place, Array& out) {
  MapReader reader(place);
  for (const auto& entry : sim::EnumTable<E>::entries)
    reader.optional(entry.name, out[static_cast<std::size_t>(entry.value)]);
  return reader.finish();
}

void read_groups(MapReader& reader, Parameters& out) {
  reader.optional("gpu", out.gpu);
  reader.optional("host", out.host);
  reader.optional("network", out.network);
  reader.optional("nvls", out.nvls);
  reader.optional("send_recv", out.send_recv);
  reader.optional("gloo", out.gloo);
  if (const auto links = reader.find("links"))
    reader.take(decode_by_enum<sim::LinkClass>(*links, out.links));
  if (const auto protocols = reader.find("protocols"))
    reader.take(decode_by_enum<sim::Protocol>(*protocols, out.protocols));
}

const Node* locate(const Node& root, std::string_view path) {
  const Node* at = &root;
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    at = at->find(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return at;
}

// sim::validate, its error placed at the value that `root` states, or at `root`.
Result<void> validate_at(const Place& root, const Parameters& parameters) {
  const auto valid = sim::validate(parameters);
  if (valid.ok()) return {};
  const std::string& path = valid.error().where;
  const Node* found = locate(*root.node, path);
  return Place{found != nullptr ? found : root.node,
               root.path.empty() ? path : root.path + "." + path}
      .error(valid.error().message);
}

// Origins by parameter, to be filled from several sources and checked for doubles.
class Origins {
 public:
  // `below`: those of the parameters that the file stands over, or none.
  explicit Origins(std::vector<Provenance> below)
      : paths_(parameter_paths()), entries_(std::move(below)), given_(paths_.size()) {
    inherited_ = !entries_.empty();
    entries_.resize(paths_.size());
    for (std::size_t i = 0; i < paths_.size(); ++i) index_.emplace(paths_[i], i);
  }

  // A parameter or a group of them; false if there is no such name.
  bool give(const std::string& name, Origin origin, const std::string& source, bool& twice) {
    std::vector<std::size_t> named = members(name);
    for (const std::size_t i : named) {
      twice = twice || given_[i];
      given_[i] = true;
      entries_[i] = {paths_[i], origin, source};
    }
    return !named.empty();
  }

  // What nobody gave: `profile` where the file states a value, else what was there, else `class`.
  std::vector<Provenance> complete(const Node& root) && {
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      if (given_[i]) continue;
      const bool stated = locate(root, paths_[i]) != nullptr;
      if (!stated && inherited_) continue;
      entries_[i] = {paths_[i], stated ? Origin::profile : Origin::device_class,
                     std::string(stated ? kNotStated : kDefault)};
    }
    return std::move(entries_);
  }

  [[nodiscard]] std::string hint(std::string_view name) const {
    std::vector<std::string_view> names(paths_.begin(), paths_.end());
    return sim::did_you_mean(name, names);
  }

 private:
  [[nodiscard]] std::vector<std::size_t> members(const std::string& name) const {
    if (const auto found = index_.find(name); found != index_.end()) return {found->second};
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < paths_.size(); ++i)
      if (paths_[i].starts_with(name + ".")) indices.push_back(i);
    return indices;
  }

  std::vector<std::string> paths_;
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<Provenance> entries_;
  std::vector<bool> given_;
  bool inherited_ = false;
};

Result<void> decode_origins(const Place& place, Origins& origins) {
  MapReader reader(place);
  std::vector<std::string> names;
  Origin origin = Origin::profile;
  std::string source;
  reader.required("parameters", names);
  reader.required("origin", origin);
  reader.required("source", source);
  RAILYARD_TRY(reader.finish());
  if (origin == Origin::scenario)
    return place.error("a profile's origin is profile, class or datasheet");
  const Place list = *reader.find("parameters");
  for (std::size_t i = 0; i < names.size(); ++i) {
    bool twice = false;
    if (!origins.give(names[i], origin, source, twice))
      return list.item(i).error(
          fmt::format("no parameter '{}'{}", printable(names[i], 60), origins.hint(names[i])));
    if (twice)
      return list.item(i).error(fmt::format("the origin of '{}' is stated twice", names[i]));
  }
  return {};
}

// Reads files over one another, bases first.
class Stack {
 public:
  Stack(Parameters below, bool read_files) : out_(std::move(below)), read_files_(read_files) {}

  Result<void> add_file(const std::string& path) {
    RAILYARD_ASSIGN(const std::string text, read_text_file(path));
    files_.push_back({path, fnv1a(text), text.size()});
    return add_text(text, path);
  }

  Result<void> add_text(std::string_view text, const std::string& name) {
    RAILYARD_ASSIGN(const Node root, parse_yaml(text, name));
    std::error_code failed;
    open_.push_back(fs::weakly_canonical(name, failed).string());
    RAILYARD_TRY(add(root));
    open_.pop_back();
    return {};
  }

  [[nodiscard]] const std::vector<SourceFile>& files() const { return files_; }
  Parameters take() && { return std::move(out_); }

 private:
  Result<void> add(const Node& root) {
    MapReader reader(Place{&root, ""});
    std::int64_t version = 0;
    bool partial = false;
    reader.required("railyard_profile", version, kProfileVersion, kProfileVersion);
    if (const auto base = reader.find("base")) RAILYARD_TRY(add_base(*base));
    const bool complete = complete_;
    reader.required("name", out_.name);
    reader.optional("partial", partial);
    std::vector<std::string> fitted;
    reader.optional("fitted_runs", fitted);
    out_.fitted_runs.insert(out_.fitted_runs.end(), fitted.begin(), fitted.end());
    read_validated(reader);
    read_groups(reader, out_);
    Origins origins(std::move(out_.provenance));
    if (const auto list = reader.find("provenance");
        list && reader.take(expect(*list, Node::Kind::list)))
      for (std::size_t i = 0; i < list->node->items.size(); ++i)
        if (!reader.take(decode_origins(list->item(i), origins))) break;
    RAILYARD_TRY(reader.finish());
    out_.provenance = std::move(origins).complete(root);
    complete_ = complete || !partial;
    return check(root);
  }

  // What was found for one platform does not hold for what is based on it: the last file counts.
  void read_validated(MapReader& reader) {
    out_.validated.clear();
    const auto list = reader.find("validated");
    if (!list || !reader.take(expect(*list, Node::Kind::list))) return;
    for (std::size_t i = 0; i < list->node->items.size(); ++i) {
      MapReader item(list->item(i));
      sim::ErrorBand band;
      item.required("collective", band.collective);
      item.required("band", band.band);
      item.required("count", band.count, 1, kMostRows);
      item.required("median", band.median, 0.0, kMostError);
      item.required("p90", band.p90, 0.0, kMostError);
      if (!reader.take(item.finish())) return;
      out_.validated.push_back(std::move(band));
    }
  }

  // Parameters that a part does not state may be missing still.
  Result<void> check(const Node& root) const {
    const auto valid = sim::validate(out_);
    const bool missing = !valid.ok() && locate(root, valid.error().where) == nullptr;
    return missing && !complete_ ? Result<void>() : validate_at(Place{&root, ""}, out_);
  }

  Result<void> add_base(const Place& place) {
    if (!read_files_) return place.error("'base' is not allowed where no files may be read");
    std::string name;
    RAILYARD_TRY(decode(place, name));
    RAILYARD_ASSIGN(const std::string path, find_profile(place, name));
    std::error_code failed;
    const std::string canonical = fs::weakly_canonical(path, failed).string();
    if (const auto again = std::find(open_.begin(), open_.end(), canonical); again != open_.end())
      return place.error(
          fmt::format("the profile is based on itself: {} -> {}",
                      fmt::join(std::vector<std::string>(again, open_.end()), " -> "), canonical));
    const auto added = add_file(path);
    if (!added.ok() && added.error().code == sim::ErrorCode::io) return at(place, added.error());
    return added;
  }

  Parameters out_;
  bool read_files_;
  bool complete_ = !out_.provenance.empty();
  std::vector<SourceFile> files_;
  std::vector<std::string> open_;  // the files that are being read, outermost first
};

bool is_partial(const std::string& path) {
  const auto text = read_text_file(path);
  const auto root = text.ok() ? parse_yaml(text.value(), path) : Result<Node>(text.error());
  const Node* partial = root.ok() ? root.value().find("partial") : nullptr;
  return partial != nullptr && partial->scalar == "true";
}

fs::path profiles_directory() { return fs::path(data_directory()) / "scenarios" / "profiles"; }

void collect_leaves(const Node& node, const std::string& path, std::vector<std::string>& out) {
  if (node.kind != Node::Kind::map) out.push_back(path);
  for (const Entry& entry : node.entries)
    collect_leaves(entry.value, path.empty() ? entry.key : path + "." + entry.key, out);
}

std::string field_text(int value) { return fmt::format("{}", value); }
std::string field_text(double value) { return fmt::format("{}", value); }
std::string field_text(sim::Bytes value) { return sim::to_text(value); }
std::string field_text(sim::Bandwidth value) { return sim::to_text(value); }
std::string field_text(sim::Duration value) { return sim::to_text(value); }
std::string field_text(sim::FlopsRate value) {
  const double tera = value.per_second / 1e12;
  return tera * 1e12 == value.per_second && tera >= 0.001
             ? fmt::format("{}TFLOP/s", tera)
             : fmt::format("{}FLOP/s", value.per_second);
}

Node scalar(std::string text, bool quoted = false) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.quoted = quoted;
  node.scalar = std::move(text);
  return node;
}

Node provenance_node(const std::vector<Provenance>& provenance) {
  Node list;
  list.kind = Node::Kind::list;
  const Provenance* previous = nullptr;
  for (const Provenance& entry : provenance) {
    // What was never stated is not to look like a statement after a round trip.
    if (entry.source == kNotStated || entry.source == kDefault) continue;
    const bool same =
        previous != nullptr && previous->origin == entry.origin && previous->source == entry.source;
    previous = &entry;
    if (!same) {
      Node item;
      item.kind = Node::Kind::map;
      item.entries.push_back({"parameters", {}, {}});
      item.entries.back().value.kind = Node::Kind::list;
      item.entries.push_back({"origin", {}, scalar(std::string(to_text(entry.origin)))});
      item.entries.push_back({"source", {}, scalar(entry.source, true)});
      list.items.push_back(std::move(item));
    }
    list.items.back().entries.front().value.items.push_back(scalar(entry.parameter));
  }
  return list;
}

// Which measurements stand behind the numbers.
void add_record(const Parameters& parameters, Node& root) {
  Node runs;
  runs.kind = Node::Kind::list;
  for (const std::string& run : parameters.fitted_runs) runs.items.push_back(scalar(run));
  if (!runs.items.empty()) root.entries.push_back({"fitted_runs", {}, std::move(runs)});
  Node bands;
  bands.kind = Node::Kind::list;
  for (const sim::ErrorBand& band : parameters.validated) {
    Node item;
    item.kind = Node::Kind::map;
    item.entries.push_back({"collective", {}, scalar(std::string(to_text(band.collective)))});
    item.entries.push_back({"band", {}, scalar(std::string(to_text(band.band)))});
    item.entries.push_back({"count", {}, scalar(fmt::format("{}", band.count))});
    item.entries.push_back({"median", {}, scalar(fmt::format("{:.4f}", band.median))});
    item.entries.push_back({"p90", {}, scalar(fmt::format("{:.4f}", band.p90))});
    bands.items.push_back(std::move(item));
  }
  if (!bands.items.empty()) root.entries.push_back({"validated", {}, std::move(bands)});
}

}  // namespace

std::vector<std::string> parameter_paths() {
  std::vector<std::string> paths;
  const Parameters none;
  for_each_group(none, [&](const std::string& prefix, const auto& group) {
    sim::for_each_field<std::decay_t<decltype(group)>>(
        [&](const auto& field) { paths.push_back(fmt::format("{}.{}", prefix, field.name)); });
  });
  return paths;
}

Result<Profile> read_profile(const std::string& path) { return read_profile_over(path, {}); }

Result<Profile> read_profile_over(const std::string& path, Parameters below) {
  const bool alone = below.provenance.empty();
  Stack stack(std::move(below), true);
  RAILYARD_TRY(stack.add_file(path));
  Profile out;
  out.file = stack.files().front();
  out.bases.assign(stack.files().begin() + 1, stack.files().end());
  out.parameters = std::move(stack).take();
  const auto valid = sim::validate(out.parameters);
  if (alone && !valid.ok())
    return sim::bad_input(fmt::format(
        "{}: the profile states only some parameters ({} is missing); name it behind another one",
        path, valid.error().where));
  return out;
}

Result<Parameters> profile_from_text(std::string_view text, const std::string& name,
                                     bool read_files) {
  Stack stack({}, read_files);
  RAILYARD_TRY(stack.add_text(text, name));
  return std::move(stack).take();
}

std::string write_profile(const Parameters& parameters) {
  Node root;
  root.kind = Node::Kind::map;
  root.entries.push_back({"railyard_profile", {}, scalar(fmt::format("{}", kProfileVersion))});
  root.entries.push_back({"name", {}, scalar(parameters.name)});
  std::vector<std::string> unstated;
  for (const Provenance& entry : parameters.provenance)
    if (entry.source == kDefault) unstated.push_back(entry.parameter);
  for_each_group(parameters, [&](const std::string& prefix, const auto& group) {
    sim::for_each_field<std::decay_t<decltype(group)>>([&](const auto& field) {
      const std::string path = fmt::format("{}.{}", prefix, field.name);
      if (std::find(unstated.begin(), unstated.end(), path) != unstated.end()) return;
      const auto set = set_value(root, path, scalar(field_text(group.*field.member)), {});
      RAILYARD_CHECK(set.ok(), "a parameter's path has names between its dots");
    });
  });
  add_record(parameters, root);
  root.entries.push_back({"provenance", {}, provenance_node(parameters.provenance)});
  return to_yaml(root);
}

std::string write_profile_part(const Parameters& parameters, const std::vector<std::string>& paths,
                               const std::string& base) {
  Node root;
  root.kind = Node::Kind::map;
  root.entries.push_back({"railyard_profile", {}, scalar(fmt::format("{}", kProfileVersion))});
  root.entries.push_back({"name", {}, scalar(parameters.name)});
  if (base.empty())
    root.entries.push_back({"partial", {}, scalar("true")});
  else
    root.entries.push_back({"base", {}, scalar(base)});
  const auto stated = [&](const std::string& path) {
    return std::find(paths.begin(), paths.end(), path) != paths.end();
  };
  for_each_group(parameters, [&](const std::string& prefix, const auto& group) {
    sim::for_each_field<std::decay_t<decltype(group)>>([&](const auto& field) {
      const std::string path = fmt::format("{}.{}", prefix, field.name);
      if (!stated(path)) return;
      const auto set = set_value(root, path, scalar(field_text(group.*field.member)), {});
      RAILYARD_CHECK(set.ok(), "a parameter's path has names between its dots");
    });
  });
  add_record(parameters, root);
  std::vector<Provenance> kept;
  for (const Provenance& entry : parameters.provenance)
    if (stated(entry.parameter)) kept.push_back(entry);
  root.entries.push_back({"provenance", {}, provenance_node(kept)});
  return to_yaml(root);
}

std::vector<std::string> shipped_profiles() {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(profiles_directory(), failed))
    if (entry.path().extension() == ".yaml" && !is_partial(entry.path().string()))
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> find_profile(const Place& place, const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".yaml")) {
    return beside(place, name);
  }
  const fs::path path = profiles_directory() / (name + ".yaml");
  std::error_code failed;
  if (fs::is_regular_file(path, failed)) return path.string();
  const std::vector<std::string> shipped = shipped_profiles();
  std::vector<std::string_view> names(shipped.begin(), shipped.end());
  return place.error(fmt::format("no shipped profile '{}'{} (shipped: {}; a path contains '/')",
                                 printable(name, 60), sim::did_you_mean(name, names),
                                 fmt::join(shipped, ", ")));
}

bool is_shipped_profile(const std::string& name) {
  std::error_code failed;
  return name.find('/') == std::string::npos &&
         fs::is_regular_file(profiles_directory() / (name + ".yaml"), failed);
}

Result<void> override_parameters(const Place& place, bool complete, Parameters& parameters) {
  MapReader reader(place);
  read_groups(reader, parameters);
  RAILYARD_TRY(reader.finish());
  if (complete) RAILYARD_TRY(validate_at(place, parameters));
  std::vector<std::string> changed;
  collect_leaves(*place.node, "", changed);
  if (!changed.empty()) parameters.validated.clear();  // found for other numbers
  for (const std::string& path : changed) {
    const Node* node = locate(*place.node, path);
    for (Provenance& entry : parameters.provenance)
      if (entry.parameter == path) entry = {path, Origin::scenario, node->mark.text()};
  }
  return {};
}

}  // namespace railyard::scenarios
