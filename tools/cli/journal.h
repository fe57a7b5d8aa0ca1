// The journal of an exploration: what has been run, so that an interrupted one goes on where it
// was.
//
// One line of JSON per finished point, on the disk before the point counts as done:
//
//   {"railyard_journal": 1, "program_version": "0.1.0"}
//   {"key": "00c0ffee...", "time_ps": 123456, ...}
//
// The key hashes the point's resolved scenario and the program's version, so a line is used only
// where it means exactly the same simulation. A line that a crash tore is ignored and ended with a
// newline before more is appended; its point is run again.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/run.h"
#include "scenarios/scenario.h"
#include "sim/result.h"

namespace railyard::cli {

inline constexpr std::string_view kJournalMarker = "{\"railyard_journal\":";

// What a study keeps of a run. Exact, so that a resumed study gives the same bytes.
struct PointResult {
  std::string error;  // why there is no result; the rest is then unset
  sim::Duration time{};
  std::optional<sim::Duration> exposed;
  std::optional<sim::Duration> compute;
  std::optional<sim::Duration> communication;
  double busbw = 0;  // GB/s: mean of the collectives, or of the buckets weighted by their size
  std::string bound_by;
  std::uint64_t trace_hash = 0;
  std::vector<scenarios::SensitivityRow> sensitivity;  // only where it was asked for
};

PointResult point_result(const scenarios::RunResult& result);

// Hash of everything that the point's numbers depend on.
std::string point_key(const scenarios::Scenario& scenario);

class Journal {
 public:
  // Reads what is there and opens it for more. A file that is no journal is refused.
  static sim::Result<std::unique_ptr<Journal>> open(const std::string& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  [[nodiscard]] const PointResult* find(const std::string& key) const;
  // May be called by several threads.
  sim::Result<void> append(const std::string& key, const PointResult& result);
  [[nodiscard]] std::size_t size() const { return known_.size(); }

 private:
  Journal() = default;
  sim::Result<void> read(std::string text);
  sim::Result<void> put(const std::string& line);

  std::string path_;
  std::FILE* file_ = nullptr;
  std::map<std::string, PointResult> known_;
  std::mutex mutex_;
};

// One line without its newline, and back; nothing for a line that is torn or of another kind.
std::string journal_line(const std::string& key, const PointResult& result);
std::optional<std::pair<std::string, PointResult>> parse_journal_line(std::string_view line);

}  // namespace railyard::cli
