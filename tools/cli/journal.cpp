#include "tools/cli/journal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "scenarios/profile.h"
#include "sim/version.h"
#include "tools/cli/format.h"

namespace railyard::cli {
namespace {

using Json = nlohmann::ordered_json;
using scenarios::RunResult;

sim::Error io_error(const std::string& path, std::string_view why) {
  return {sim::ErrorCode::io, fmt::format("cannot use the journal: {}", why), path};
}

void put_time(Json& out, const char* key, const std::optional<sim::Duration>& time) {
  if (time) out[key] = time->count();
}

std::optional<sim::Duration> get_time(const Json& in, const char* key) {
  if (!in.contains(key)) return std::nullopt;
  return sim::Duration(in.at(key).get<std::int64_t>());
}

scenarios::SensitivityRow sensitivity_row(const Json& row) {
  return {row.at(0).get<std::string>(), row.at(1).get<double>(),
          sim::Duration(row.at(2).get<std::int64_t>()),
          sim::Duration(row.at(3).get<std::int64_t>())};
}

PointResult result_of(const Json& line) {
  PointResult result;
  if (line.contains("error")) {
    result.error = line.at("error").get<std::string>();
    return result;
  }
  result.time = sim::Duration(line.at("time_ps").get<std::int64_t>());
  result.exposed = get_time(line, "exposed_ps");
  result.compute = get_time(line, "compute_ps");
  result.communication = get_time(line, "communication_ps");
  result.busbw = line.at("busbw_gb_per_s").get<double>();
  result.bound_by = line.at("bound_by").get<std::string>();
  result.trace_hash = line.at("trace_hash").get<std::uint64_t>();
  if (line.contains("sensitivity"))
    for (const Json& row : line.at("sensitivity"))
      result.sensitivity.push_back(sensitivity_row(row));
  return result;
}

double mean_busbw(const RunResult& result) {
  double sum = 0;
  double weight = 0;
  if (result.ddp) {
    for (const scenarios::BucketRow& bucket : result.ddp->buckets) {
      const auto bytes = static_cast<double>(bucket.size.raw());
      sum += bucket.busbw * bytes;
      weight += bytes;
    }
  } else {
    for (const scenarios::CollectiveRow& row : result.collectives) sum += row.busbw;
    weight = static_cast<double>(result.collectives.size());
  }
  return weight > 0 ? sum / weight : 0;
}

sim::Result<std::string> text_of(std::FILE* file, const std::string& path) {
  std::string text;
  std::array<char, 65'536> part;
  for (std::size_t got = 1; got > 0;) {
    got = std::fread(part.data(), 1, part.size(), file);
    text.append(part.data(), got);
  }
  if (std::ferror(file) != 0) return io_error(path, std::strerror(errno));
  return text;
}

}  // namespace

PointResult point_result(const RunResult& result) {
  PointResult out;
  if (!result.unfinished.empty()) {
    out.error = fmt::format("the job would hang: {}", result.unfinished.front());
    return out;
  }
  out.time = scenarios::objective_time(result);
  out.busbw = mean_busbw(result);
  out.trace_hash = result.trace_hash;
  out.sensitivity = result.sensitivity;
  const scenarios::StepResult* step = scenarios::step_result(result);
  if (step == nullptr) return out;
  out.exposed = step->exposed;
  out.compute = step->compute;
  out.communication = step->communication;
  out.bound_by = step->bound_by;
  return out;
}

std::string point_key(const scenarios::Scenario& scenario) {
  // The resolved text names the profile; the numbers come from what it holds, wherever those come
  // from.
  sim::Parameters numbers = scenario.parameters;
  numbers.provenance.clear();
  numbers.fitted_runs.clear();
  numbers.validated.clear();
  return hex(
      scenarios::fnv1a(fmt::format("{}\n{}\n{}", sim::kVersion, scenarios::write_profile(numbers),
                                   scenarios::resolved_yaml(scenario))));
}

std::string journal_line(const std::string& key, const PointResult& result) {
  Json line{{"key", key}};
  if (!result.error.empty()) {
    line["error"] = result.error;
  } else {
    line["time_ps"] = result.time.count();
    put_time(line, "exposed_ps", result.exposed);
    put_time(line, "compute_ps", result.compute);
    put_time(line, "communication_ps", result.communication);
    line["busbw_gb_per_s"] = result.busbw;
    line["bound_by"] = result.bound_by;
    line["trace_hash"] = result.trace_hash;
    for (const scenarios::SensitivityRow& row : result.sensitivity)
      line["sensitivity"].push_back({row.what, row.change, row.base.count(), row.varied.count()});
  }
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::pair<std::string, PointResult>> parse_journal_line(std::string_view text) {
  const Json line = Json::parse(text, nullptr, false);
  if (!line.is_object() || !line.contains("key")) return std::nullopt;
  try {
    return std::pair(line.at("key").get<std::string>(), result_of(line));
  } catch (const Json::exception&) {
    return std::nullopt;  // not written by this version
  }
}

sim::Result<std::unique_ptr<Journal>> Journal::open(const std::string& path) {
  std::unique_ptr<Journal> journal(new Journal);
  journal->path_ = path;
  journal->file_ = std::fopen(path.c_str(), "a+b");
  if (journal->file_ == nullptr) return io_error(path, std::strerror(errno));
  RAILYARD_ASSIGN(std::string text, text_of(journal->file_, path));
  RAILYARD_TRY(journal->read(std::move(text)));
  return journal;
}

Journal::~Journal() {
  if (file_ != nullptr) std::fclose(file_);
}

sim::Result<void> Journal::read(std::string text) {
  const std::string_view marker = kJournalMarker;
  const std::string_view start = std::string_view(text).substr(0, marker.size());
  if (start != marker.substr(0, start.size())) return io_error(path_, "it is some other file");
  if (text.find('\n') == std::string::npos) {  // nothing, or a torn first line
    if (ftruncate(fileno(file_), 0) != 0) return io_error(path_, std::strerror(errno));
    text.clear();
  }
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (auto parsed = parse_journal_line(rest.substr(0, end)))
      known_.insert_or_assign(std::move(parsed->first), std::move(parsed->second));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!text.empty() && text.back() != '\n') RAILYARD_TRY(put(""));
  const Json first{{"railyard_journal", 1}, {"program_version", sim::kVersion}};
  return text.empty() ? put(first.dump()) : sim::Result<void>();
}

sim::Result<void> Journal::put(const std::string& line) {
  const std::string text = line + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), file_) == text.size() &&
                       std::fflush(file_) == 0 && fdatasync(fileno(file_)) == 0;
  if (!written) return io_error(path_, std::strerror(errno));
  return {};
}

const PointResult* Journal::find(const std::string& key) const {
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : &found->second;
}

sim::Result<void> Journal::append(const std::string& key, const PointResult& result) {
  const std::lock_guard lock(mutex_);
  return put(journal_line(key, result));
}

}  // namespace railyard::cli
