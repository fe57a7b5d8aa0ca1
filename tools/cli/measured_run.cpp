#include "tools/cli/measured_run.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "scenarios/document.h"

namespace railyard::cli {

namespace fs = std::filesystem;
using calibrate::MeasuredRow;
using scenarios::Node;
using scenarios::Place;
using scenarios::Scenario;
using sim::Result;

namespace {

constexpr std::size_t kMostRows = 10'000;
constexpr double kLongestMicroseconds = 1e12;

bool is_null(const Node* node) { return node == nullptr || node->kind == Node::Kind::null; }

Result<void> read_text(const Node& root, const char* key, bool required, std::string& out) {
  const Node* node = root.find(key);
  if (is_null(node)) {
    if (required) return Place{&root, key}.error("missing");
    return {};
  }
  if (node->kind != Node::Kind::scalar) return Place{node, key}.error("expected a text");
  out = node->scalar;
  return {};
}

// What nccl-tests computes busbw from algbw with; 0 where the ranks or the collective are unknown.
double bus_factor(const MeasuredRun& run) {
  const auto collective = sim::parse_enum<sim::Collective>(run.collective);
  const std::size_t ranks =
      std::size_t{run.platform.nodes.value_or(0)} * run.platform.gpus_per_node.value_or(0);
  if (!collective.ok() || ranks < 2) return 0;
  return sim::bus_bandwidth_factor(collective.value(), ranks);
}

// A figure of a row; 0 where the source has none.
Result<double> figure(const Place& row, std::size_t index) {
  double value = 0;
  if (index >= row.node->items.size() || is_null(&row.node->items[index])) return value;
  RAILYARD_TRY(scenarios::decode(row.item(index), value));
  return value;
}

// The stated time, or the one that follows from algbw or busbw; 0 where there is none of them.
Result<double> time_of(const Place& row, std::int64_t size, const MeasuredRun& run) {
  RAILYARD_ASSIGN(const double time, figure(row, 1));
  RAILYARD_ASSIGN(const double algbw, figure(row, 2));
  RAILYARD_ASSIGN(const double busbw, figure(row, 3));
  const auto bytes = static_cast<double>(size);
  if (row.node->items.size() > 1 && !is_null(&row.node->items[1])) return time;
  if (algbw > 0) return bytes / algbw * 1e-3;
  return busbw > 0 ? bytes * bus_factor(run) / busbw * 1e-3 : 0;
}

Result<std::vector<MeasuredRow>> read_rows(const Node& root, const char* key, MeasuredRun& run) {
  std::vector<MeasuredRow> out;
  const Node* rows = root.find(key);
  if (is_null(rows)) return out;
  const Place place{rows, key};
  if (rows->kind != Node::Kind::list || rows->items.size() > kMostRows)
    return place.error("expected a list of at most 10,000 rows");
  for (std::size_t i = 0; i < rows->items.size(); ++i) {
    const Place row = place.item(i);
    std::int64_t size = 0;
    if (row.node->kind != Node::Kind::list || row.node->items.size() < 2)
      return row.error("expected [bytes, time_us, ...]");
    RAILYARD_TRY(scenarios::decode(row.item(0), size));
    RAILYARD_ASSIGN(const double time, time_of(row, size, run));
    if (size > 0 && time > 0 && time <= kLongestMicroseconds)
      out.push_back({sim::bytes(size), time});
    else
      run.notes.push_back(
          fmt::format("{}: {} B has no time that counts", row.node->mark.text(), size));
  }
  if (!std::ranges::is_sorted(out, {}, &MeasuredRow::size)) {
    run.notes.push_back(fmt::format("{}: sizes that go down; sorted", rows->mark.text()));
    std::ranges::stable_sort(out, {}, &MeasuredRow::size);
  }
  return out;
}

// The NCCL_NAME=VALUE words of a command line or a list of settings; variables of their own win.
void read_settings(std::string_view text, std::map<std::string, std::string>& env) {
  constexpr std::string_view kBetween = " \t\n\"'()[]{};";
  constexpr std::string_view kInName = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find_first_not_of(kBetween), text.size());
    text.remove_prefix(begin);
    std::string_view word = text.substr(0, text.find_first_of(kBetween));
    text.remove_prefix(word.size());
    while (word.ends_with(',')) word.remove_suffix(1);
    const std::size_t equals = word.find('=');
    if (!word.starts_with("NCCL_") || equals == std::string_view::npos ||
        equals + 1 == word.size() || word.find_first_not_of(kInName) != equals)
      continue;
    env.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
}

Result<void> read_env(const Node& root, MeasuredRun& run) {
  const Node* env = root.find("env");
  if (is_null(env)) return {};
  if (env->kind != Node::Kind::map) return Place{env, "env"}.error("expected a map");
  for (const scenarios::Entry& entry : env->entries)
    if (entry.value.kind == Node::Kind::scalar)
      run.env.insert_or_assign(entry.key, entry.value.scalar);
  for (const scenarios::Entry& entry : env->entries)  // a note is prose
    if (entry.value.kind == Node::Kind::scalar && !entry.key.starts_with("NCCL_") &&
        entry.key != "note")
      read_settings(entry.value.scalar, run.env);
  return {};
}

models::Dtype dtype_of(const MeasuredRun& run) {
  if (run.datatype.starts_with("half")) return models::Dtype::fp16;
  if (run.datatype.starts_with("double")) return models::Dtype::fp64;
  if (run.datatype.starts_with("bfloat")) return models::Dtype::bf16;
  return models::Dtype::fp32;  // nccl-tests' default
}

}  // namespace

Result<MeasuredRun> measured_run_from_text(std::string_view text, const std::string& name) {
  RAILYARD_ASSIGN(const Node root, scenarios::parse_yaml(text, name));
  RAILYARD_TRY(expect(Place{&root, ""}, Node::Kind::map));
  MeasuredRun run;
  run.path = name;
  RAILYARD_TRY(read_text(root, "id", true, run.id));
  RAILYARD_TRY(read_text(root, "collective", true, run.collective));
  RAILYARD_TRY(read_text(root, "datatype", false, run.datatype));
  RAILYARD_TRY(read_text(root, "status", false, run.status));
  const Node* platform = root.find("platform");
  if (is_null(platform)) return Place{&root, "platform"}.error("missing");
  RAILYARD_ASSIGN(run.platform, scenarios::read_platform(Place{platform, "platform"}));
  RAILYARD_TRY(read_env(root, run));
  RAILYARD_ASSIGN(run.rows, read_rows(root, "rows", run));
  RAILYARD_ASSIGN(run.rows_in_place, read_rows(root, "rows_in_place", run));
  return run;
}

Result<MeasuredRun> read_measured_run(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return sim::bad_input("cannot be read", path);
  return measured_run_from_text(std::string(std::istreambuf_iterator<char>(in), {}), path);
}

Result<std::vector<std::string>> measured_run_files(const std::string& folder,
                                                    std::string_view pattern) {
  std::error_code problem;
  std::vector<std::string> files;
  const std::string wanted = pattern.empty() ? "*" : std::string(pattern);
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    const fs::path& path = entry->path();
    if (path.extension() != ".yaml") continue;
    if (fnmatch(wanted.c_str(), path.stem().c_str(), 0) == 0) files.push_back(path.string());
  }
  if (problem) return sim::bad_input(problem.message(), folder);
  std::ranges::sort(files);
  return files;
}

const std::vector<MeasuredRow>& scored_rows(const MeasuredRun& run) {
  return run.rows.empty() ? run.rows_in_place : run.rows;
}

std::vector<std::size_t> spike_rows(const MeasuredRun& run) {
  return run.rows.empty() ? calibrate::spikes(run.rows_in_place, run.rows)
                          : calibrate::spikes(run.rows, run.rows_in_place);
}

std::string set_apart(const MeasuredRun& run) {
  if (!run.platform.predictable)
    return "not predictable: " + (run.platform.why_not.empty() ? "?" : run.platform.why_not);
  if (run.status != "healthy") return "status " + run.status;
  if (run.platform.nccl_used.empty()) return "version not stated";
  return {};
}

Result<Scenario> scenario_of(const MeasuredRun& run, const std::vector<std::string>& sets) {
  scenarios::PlatformCall call;
  const auto collective = sim::parse_enum<sim::Collective>(run.collective);
  if (!collective.ok())
    return sim::bad_input("no such collective: " + run.collective, run.path + ": collective");
  call.collective = collective.value();
  call.dtype = dtype_of(run);
  call.env = run.env;
  for (const MeasuredRow& row : scored_rows(run)) call.sizes.push_back(row.size);
  if (call.sizes.empty()) return sim::bad_input("no row has a time or a bandwidth", run.path);
  RAILYARD_ASSIGN(scenarios::PlatformScenario made, scenarios::scenario_of(run.platform, call));
  if (sets.empty()) return std::move(made.scenario);
  return scenarios::scenario_from_text(made.text, run.id, {.sets = sets});
}

}  // namespace railyard::cli
