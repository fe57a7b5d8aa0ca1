#include "calibrate/validation/measured_run.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace railyard::calibrate {
namespace {

namespace fs = std::filesystem;
using sim::Error;
using sim::Result;

constexpr std::size_t kMostRows = 10'000;
constexpr double kLongestMicroseconds = 1e12;

// Reads the fields of one map; the first error stays.
class Fields {
 public:
  Fields(const YAML::Node& map, std::string file, std::string path)
      : map_(map), file_(std::move(file)), path_(std::move(path)) {}

  [[nodiscard]] Error error(const YAML::Node& at, const std::string& key,
                            const std::string& message) const {
    return sim::bad_input(message,
                          fmt::format("{}:{}: {}{}", file_, at.Mark().line + 1, path_, key));
  }

  [[nodiscard]] YAML::Node find(const char* key) const {
    const YAML::Node value = map_[key];
    return value.IsDefined() && !value.IsNull() ? value : YAML::Node(YAML::NodeType::Undefined);
  }

  void text(const char* key, std::string& out, bool required = false) {
    const YAML::Node value = find(key);
    if (!value.IsDefined()) {
      if (required) fail(map_, key, "missing");
    } else if (!value.IsScalar()) {
      fail(value, key, "expected a text");
    } else {
      out = value.Scalar();
    }
  }

  void number(const char* key, std::optional<std::int64_t>& out) {
    const YAML::Node value = find(key);
    if (!value.IsDefined()) return;
    std::int64_t read = 0;
    if (!value.IsScalar() || !YAML::convert<std::int64_t>::decode(value, read) || read < 0 ||
        read > 1'000'000)
      return fail(value, key, "expected a count up to 1,000,000");
    out = read;
  }

  void flag(const char* key, bool& out) {
    const YAML::Node value = find(key);
    if (value.IsDefined() && !YAML::convert<bool>::decode(value, out))
      fail(value, key, "expected true or false");
  }

  void list(const char* key, std::vector<std::string>& out) {
    const YAML::Node value = find(key);
    if (!value.IsDefined()) return;
    if (!value.IsSequence()) return fail(value, key, "expected a list");
    for (const YAML::Node& item : value) {
      if (!item.IsScalar()) return fail(item, key, "expected words");
      out.push_back(item.Scalar());
    }
  }

  void fail(const YAML::Node& at, const std::string& key, const std::string& message) {
    if (!error_) error_ = error(at, key, message);
  }
  [[nodiscard]] Result<void> finish() const {
    if (error_) return *error_;
    return {};
  }

 private:
  YAML::Node map_;
  std::string file_;
  std::string path_;
  std::optional<Error> error_;
};

Result<MeasuredPlatform> read_platform(const YAML::Node& node, const std::string& file) {
  MeasuredPlatform out;
  Fields fields(node, file, "platform.");
  if (!node.IsMap()) return fields.error(node, "", "expected a map");
  fields.text("name", out.name, true);
  fields.text("machine", out.machine, true);
  fields.number("nodes", out.nodes);
  fields.number("gpus_per_node", out.gpus_per_node);
  fields.text("processes", out.processes);
  fields.text("threads", out.threads);
  fields.text("intra", out.intra);
  fields.number("nics_per_node", out.nics_per_node);
  fields.text("nic_rate", out.nic_rate);
  fields.text("nic_measured", out.nic_measured);
  fields.text("fabric", out.fabric);
  fields.text("transport", out.transport);
  fields.text("nccl_used", out.nccl_used);
  fields.text("library", out.library);
  fields.flag("predictable", out.predictable);
  fields.text("why_not", out.why_not);
  fields.list("spread", out.spread);
  fields.list("assumed", out.assumed);
  fields.number("nvlink_domain_gpus", out.nvlink_domain_gpus);
  RAILYARD_TRY(fields.finish());
  return out;
}

// What nccl-tests computes busbw from algbw with; 0 where the ranks are not known.
double bus_factor(const MeasuredRun& run) {
  const double ranks = static_cast<double>(run.platform.nodes.value_or(0)) *
                       static_cast<double>(run.platform.gpus_per_node.value_or(0));
  if (run.collective == "Broadcast" || run.collective == "Reduce" || run.collective == "SendRecv")
    return 1;
  if (ranks < 2) return 0;
  return (run.collective == "AllReduce" ? 2 : 1) * (ranks - 1) / ranks;
}

// Sources that state a bandwidth only: algbw, or busbw. 0 where there is neither.
double time_from_bandwidth(const YAML::Node& row, std::int64_t size, const MeasuredRun& run) {
  double rate = 0;  // GB/s
  if (row.size() > 2 && !row[2].IsNull() && YAML::convert<double>::decode(row[2], rate) && rate > 0)
    return static_cast<double>(size) / rate * 1e-3;
  if (row.size() > 3 && !row[3].IsNull() && YAML::convert<double>::decode(row[3], rate) && rate > 0)
    return static_cast<double>(size) * bus_factor(run) / rate * 1e-3;
  return 0;
}

// [bytes, time_us, algbw, busbw]; a row with none of the three says nothing.
Result<std::vector<MeasuredRow>> read_rows(const YAML::Node& rows, const char* key,
                                           MeasuredRun& run) {
  std::vector<MeasuredRow> out;
  Fields fields(rows, run.path, "");
  if (!rows.IsDefined() || rows.IsNull()) return out;
  if (!rows.IsSequence()) return fields.error(rows, key, "expected a list of rows");
  if (rows.size() > kMostRows) return fields.error(rows, key, "more than 10,000 rows");
  for (const YAML::Node& row : rows) {
    std::int64_t size = 0;
    double time = 0;
    if (!row.IsSequence() || row.size() < 2 || !YAML::convert<std::int64_t>::decode(row[0], size) ||
        size < 0)
      return fields.error(row, key, "expected [bytes, time_us, ...]");
    if (!row[1].IsNull() && (!YAML::convert<double>::decode(row[1], time) || !std::isfinite(time)))
      return fields.error(row, key, "expected a time in microseconds, or null");
    if (row[1].IsNull()) time = time_from_bandwidth(row, size, run);
    if (!(time > 0) || size == 0 || time > kLongestMicroseconds) {
      run.notes.push_back(
          fmt::format("{}:{}: {} B has no time that counts", run.path, row.Mark().line + 1, size));
      continue;
    }
    out.push_back({sim::bytes(size), time});
  }
  const auto less = [](const MeasuredRow& a, const MeasuredRow& b) { return a.size < b.size; };
  if (!std::ranges::is_sorted(out, less)) {
    run.notes.push_back(fmt::format("{}:{}: sizes that go down in {}; sorted", run.path,
                                    rows.Mark().line + 1, key));
    std::ranges::stable_sort(out, less);
  }
  return out;
}

Result<MeasuredRun> read_run(const YAML::Node& root, const std::string& name) {
  MeasuredRun run;
  run.path = name;
  Fields fields(root, name, "");
  if (!root.IsMap()) return fields.error(root, "", "expected a map: id, platform, rows, ...");
  fields.text("id", run.id, true);
  fields.text("nccl", run.nccl);
  fields.text("collective", run.collective, true);
  fields.text("datatype", run.datatype);
  fields.text("status", run.status);
  if (const YAML::Node env = fields.find("env"); env.IsDefined()) {
    if (!env.IsMap()) return fields.error(env, "env", "expected a map");
    for (const auto& entry : env)
      if (entry.first.IsScalar() && entry.second.IsScalar())
        run.env.emplace_back(entry.first.Scalar(), entry.second.Scalar());
  }
  RAILYARD_TRY(fields.finish());
  const YAML::Node platform = fields.find("platform");
  if (!platform.IsDefined()) return fields.error(root, "platform", "missing");
  RAILYARD_ASSIGN(run.platform, read_platform(platform, name));
  RAILYARD_ASSIGN(run.rows, read_rows(root["rows"], "rows", run));
  RAILYARD_ASSIGN(run.rows_in_place, read_rows(root["rows_in_place"], "rows_in_place", run));
  return run;
}

}  // namespace

Result<MeasuredRun> measured_run_from_text(std::string_view text, const std::string& name) {
  try {
    return read_run(YAML::Load(std::string(text)), name);
  } catch (const YAML::Exception& problem) {
    return sim::bad_input(problem.msg, fmt::format("{}:{}", name, problem.mark.line + 1));
  }
}

Result<MeasuredRun> read_measured_run(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return sim::bad_input("cannot be read", path);
  return measured_run_from_text(text.str(), path);
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

}  // namespace railyard::calibrate
