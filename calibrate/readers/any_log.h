// Any measurement log that this folder reads, told by its content, and what it holds in short.
//
//   RAILYARD_ASSIGN(const AnyLog log, read_any_log(text, "x.log"));
//   for (const LogSection& section : sections_of(log)) ...   // one for each table
//   for (const Measurement& m : measurements(log)) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "calibrate/readers/kineto.h"
#include "calibrate/readers/log_kind.h"
#include "calibrate/readers/nccl_tests.h"
#include "calibrate/readers/nvbandwidth.h"
#include "calibrate/readers/osu.h"
#include "calibrate/readers/p2p_bandwidth.h"
#include "calibrate/readers/perftest.h"

namespace railyard::calibrate {

using AnyLog =
    std::variant<NcclTestsLog, PerftestLog, NvbandwidthLog, P2pBandwidthLog, OsuLog, KinetoTrace>;

// Errors: no reader for what the file is (which it names), and those of the reader.
sim::Result<AnyLog> read_any_log(std::string_view text, std::string_view name);

const std::vector<Note>& notes_of(const AnyLog& log);

// One table of a log: one run of a program. A trace is one section.
struct LogSection {
  std::string test;                           // "all_reduce_perf"; the title where no name is known
  std::optional<sim::Collective> collective;  // one collective only
  std::string collective_from;                // what told it; empty where nothing had to
  std::int64_t ranks = -1, nodes = -1;        // -1: not said
  std::vector<std::string> devices;           // distinct
  std::uint64_t rows = 0;                     // or figures of a matrix, or collectives of a trace
  std::optional<std::int64_t> least_bytes, most_bytes;
  std::vector<std::string> details;  // "NCCL 2.27.3", "4 QPs", "1 thread x 8 GPUs"
  std::size_t line = 0;
};
std::vector<LogSection> sections_of(const AnyLog& log);

// Of a single trace: as merged with no other.
std::vector<Measurement> measurements(const AnyLog& log);

}  // namespace railyard::calibrate
