#include "tools/cli/validation_journal.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace railyard::cli {
namespace {

using nlohmann::json;

json row_json(const JournalRow& row) {
  return {row.size.raw(), row.time.count(), std::string(to_text(row.algorithm)),
          std::string(to_text(row.protocol)), row.channels};
}

std::optional<JournalRow> parse_row(const json& value) {
  if (!value.is_array() || value.size() != 5 || !value[0].is_number_integer() ||
      !value[1].is_number_integer() || !value[2].is_string() || !value[3].is_string() ||
      !value[4].is_number_unsigned())
    return std::nullopt;
  const auto algorithm = sim::parse_enum<sim::Algorithm>(value[2].get<std::string>());
  const auto protocol = sim::parse_enum<sim::Protocol>(value[3].get<std::string>());
  if (!algorithm.ok() || !protocol.ok()) return std::nullopt;
  return JournalRow{sim::bytes(value[0].get<std::int64_t>()),
                    sim::Duration(value[1].get<std::int64_t>()), algorithm.value(),
                    protocol.value(), value[4].get<std::uint32_t>()};
}

// Nothing for a torn line or one of another kind.
std::optional<std::pair<std::string, std::vector<JournalRow>>> parse_line(const std::string& text) {
  const json line = json::parse(text, nullptr, false);
  if (!line.is_object() || !line.contains("railyard_validation") || !line.contains("key") ||
      !line["key"].is_string() || !line.contains("rows") || !line["rows"].is_array())
    return std::nullopt;
  std::vector<JournalRow> rows;
  for (const json& value : line["rows"]) {
    const auto row = parse_row(value);
    if (!row) return std::nullopt;
    rows.push_back(*row);
  }
  return std::pair{line["key"].get<std::string>(), std::move(rows)};
}

}  // namespace

ValidationJournal::~ValidationJournal() {
  if (file_ != nullptr) std::fclose(file_);
}

sim::Result<void> ValidationJournal::open(const std::string& path) {
  path_ = path;
  bool torn = false;
  {
    std::ifstream in(path, std::ios::binary);
    for (std::string line; std::getline(in, line);) {
      torn = in.eof();
      if (auto known = parse_line(line)) known_.insert_or_assign(known->first, known->second);
    }
  }
  file_ = std::fopen(path.c_str(), "ab");
  if (file_ == nullptr) return sim::bad_input(std::strerror(errno), path);
  if (torn && (std::fputc('\n', file_) == EOF || std::fflush(file_) != 0))
    return sim::bad_input(std::strerror(errno), path_);
  return {};
}

std::optional<std::vector<JournalRow>> ValidationJournal::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(key);
  if (known == known_.end()) return std::nullopt;
  return known->second;
}

sim::Result<void> ValidationJournal::append(const std::string& key,
                                            const std::vector<JournalRow>& rows) {
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr) return {};
  json line{{"railyard_validation", 1}, {"key", key}, {"rows", json::array()}};
  for (const JournalRow& row : rows) line["rows"].push_back(row_json(row));
  const std::string text = line.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0)
    return sim::bad_input(std::strerror(errno), path_);
  return {};
}

}  // namespace railyard::cli
