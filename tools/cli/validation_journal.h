// What `railyard validate` has predicted already, so that an interrupted validation goes on where
// it was. One line of JSON per run, on the disk before the run counts as done:
//
//   {"railyard_validation": 1, "key": "00c0ffee...", "rows": [[bytes, picoseconds, "Ring", "LL",
//   2], ...]}
//
// The key hashes the run's resolved scenario, its parameters and the program's version. A torn line
// is ignored.
#pragma once

#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/run.h"
#include "scenarios/scenario.h"
#include "sim/result.h"

namespace railyard::cli {

struct JournalRow {
  sim::Bytes size{};
  sim::Duration time{};
  sim::Algorithm algorithm = sim::Algorithm::ring;
  sim::Protocol protocol = sim::Protocol::simple;
  std::uint32_t channels = 0;
};

class ValidationJournal {
 public:
  ~ValidationJournal();
  ValidationJournal() = default;  // keeps nothing
  ValidationJournal(const ValidationJournal&) = delete;
  ValidationJournal& operator=(const ValidationJournal&) = delete;

  // Reads what is there and opens it for more.
  sim::Result<void> open(const std::string& path);
  // May be called by several threads.
  [[nodiscard]] std::optional<std::vector<JournalRow>> find(const std::string& key) const;
  sim::Result<void> append(const std::string& key, const std::vector<JournalRow>& rows);

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
  std::map<std::string, std::vector<JournalRow>> known_;
  mutable std::mutex mutex_;
};

}  // namespace railyard::cli
