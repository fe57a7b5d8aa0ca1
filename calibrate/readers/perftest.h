// What perftest's programs print (ib_write_bw, ib_read_lat, ib_send_bw, ...): text and JSON.
//
// A run prints a banner between dashes ("RDMA_Write BW Test", "key : value" pairs), addresses, the
// columns and the rows. Server and client of one run may share a file: two banners whose addresses
// mirror each other are one run, and are measured once.
//
// Units: the header names them. MB/sec and MiB/sec are both 2^20 bytes per second (the label was
// corrected in 2024, the figures never changed); Gb/sec is 1e9 bits. Here: GB/s (1e9 bytes).
// JSON carries no unit; average and message rate together tell it.
// Latencies, in microseconds, are half a round trip for send and write, a whole one for read and
// atomic. A peak of 0 means "not measured" (-D, --run_infinitely). Both directions of a
// bidirectional test are summed by perftest itself.
// Notes: figures that disagree (average against rate x size), rows cut off, errors of the tool.
// Cost: O(bytes of text).
//
//   RAILYARD_ASSIGN(const PerftestLog log, read_perftest(text, "ib_write_bw.log"));
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/readers/measurement.h"
#include "sim/result.h"

namespace railyard::calibrate {

struct PerftestRow {
  std::int64_t bytes = 0, iterations = -1;
  std::optional<std::int64_t> service_level;  // QoS runs
  // Bandwidth tests: GB/s; million messages per second; percent.
  std::optional<double> peak, average, message_rate, port1, port2, cpu_percent;
  // Latency tests: microseconds; transactions per second.
  std::optional<double> least, most, typical, mean, deviation, p99, p999, transactions;
  std::size_t line = 0;
};

struct PerftestTable {
  std::string test;     // as printed: "RDMA_Write Bidirectional BW Test"; empty if not there
  std::string program;  // "ib_write_bw"; empty if unknown
  bool latency = false, bidirectional = false, round_trip = false;
  bool cycles = false;  // latencies in CPU cycles (-C): kept as printed, not measured
  std::string unit;     // of bandwidths: "Gb/sec"
  std::vector<std::pair<std::string, std::string>> settings;  // the banner's pairs, in order
  std::vector<std::string> local, remote;                     // "LID 0000 QPN 0x0129 PSN 0x57279d"
  std::string gpu;                                            // with --use_cuda
  std::vector<PerftestRow> rows;
  bool other_end = false;  // the same run as an earlier table, seen from its other end
  std::size_t line = 0;    // of the columns

  // A setting's value ("Device", "Mtu", "Link type"); empty if it is not there.
  [[nodiscard]] std::string_view setting(std::string_view key) const;
};

struct PerftestLog {
  std::string source;
  std::vector<PerftestTable> tables;  // at least one, none without rows
  std::vector<Note> notes;
};

// Errors: another tool's log (named), a banner without results, broken JSON.
sim::Result<PerftestLog> read_perftest(std::string_view text, std::string_view name);

std::vector<Measurement> measurements(const PerftestLog& log);

}  // namespace railyard::calibrate
