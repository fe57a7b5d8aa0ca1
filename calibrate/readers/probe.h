// What calibrate/probes measured, read from the JSON they write (the schema stands in
// calibrate/probes/common/report.h).
//
// Everything read has been checked: times are finite, above 0 and in order (min <= p10 <= median
// <= p90 <= max), sizes and counts are not negative. Keys this reader does not know are skipped,
// since later probes may add some; a newer schema_version is an error. Several reports, one after
// the other or from several files, are read one by one.
//
// Units: microseconds, bytes, bytes per second. Cost: time and memory O(text).
//
//   RAILYARD_ASSIGN(const ProbeReport report, read_probe(text, "tcp.json"));
//   for (const ProbeRow& row : report.rows)
//     if (row.kind == "tcp.stream") use(row.bytes, row.time_us->median);
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"

namespace railyard::calibrate {

using ProbeLabels = std::map<std::string, std::string>;

struct ProbeTime {
  double median = 0, p10 = 0, p90 = 0, min = 0, max = 0;
  std::int64_t count = 0;  // 1 or more
};

// One measurement: either a time (with its bytes) or a value.
struct ProbeRow {
  std::string kind;  // "tcp.stream"
  ProbeLabels labels;
  std::int64_t bytes = 0;
  std::int64_t moved_bytes = 0;  // in that time; 0: a latency
  std::optional<ProbeTime> time_us;
  std::optional<double> value;
  std::string unit;  // of the value

  // moved_bytes over the median; 0 for a latency or a value.
  [[nodiscard]] double bytes_per_second() const;
};

struct ProbeFit {  // time = latency + bytes / bandwidth, as the probe itself fitted it
  std::string kind;
  ProbeLabels labels;
  double latency_us = 0, bytes_per_second = 0, worst_error = 0;
  std::int64_t points = 0;
};

struct ProbeDevice {
  std::string kind, name;
  ProbeLabels facts;
};

struct ProbeReport {
  std::string source;  // the name given to read_probe
  std::string tool, version, host, started;
  std::vector<std::string> command;
  ProbeLabels software;
  std::vector<ProbeDevice> devices;
  std::vector<std::string> notes;  // the probe's: what it left out and why
  std::vector<ProbeRow> rows;
  std::vector<ProbeFit> fits;
};

sim::Result<ProbeReport> read_probe(std::string_view text, std::string_view name);
sim::Result<ProbeReport> read_probe_file(const std::string& path);

}  // namespace railyard::calibrate
