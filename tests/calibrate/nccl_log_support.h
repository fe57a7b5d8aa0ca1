// What the tests of the NCCL log reader share.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "calibrate/readers/nccl_log.h"
#include "tests/paths.h"
#include "tests/skip.h"

namespace railyard::tests::nccl_log {

namespace log = calibrate::nccl_log;

inline std::string sample_path(std::string_view name) {
  return std::string(RAILYARD_SHARED_DIR) + "/samples/nccl-logs/" + std::string(name);
}

inline bool has_samples() {
  return std::filesystem::exists(std::string(RAILYARD_SHARED_DIR) + "/samples/nccl-logs");
}

inline log::Log read_sample(std::string_view name) {
  auto read = log::read_file(sample_path(name));
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? std::string() : read.error().text()));
  return std::move(read).value();
}

inline log::Log read(std::string_view text) {
  auto read = log::read_text(text, "test.log");
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? std::string() : read.error().text()));
  return std::move(read).value();
}

// The member of communicator 0 that has this number.
inline const log::Rank& rank_of(const log::Log& log, std::int64_t number) {
  for (const std::size_t member : log.communicators.at(0).members)
    if (log.ranks[member].rank == number) return log.ranks[member];
  FAIL("no such rank in the log");
  return log.ranks[0];
}

inline const log::Edge* edge_at(const log::Rank& rank, log::Line line) {
  for (const log::Edge& edge : rank.edges)
    if (edge.line == line) return &edge;
  return nullptr;
}

using Numbers = std::vector<std::int64_t>;

}  // namespace railyard::tests::nccl_log
