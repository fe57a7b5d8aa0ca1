// What a probe found, and its two forms: a table for people and JSON for calibrate/readers/probe.h.
//
// The JSON, one schema for every probe:
//
//   {"schema": "railyard-probe", "schema_version": 1,
//    "tool": "probe_tcp", "version": "0.1.0", "host": "node07", "started": "2026-01-31T12:00:00Z",
//    "command": ["probe_tcp", "--connect", "10.0.0.2"],
//    "software": {"nccl": "2.28.9"},                     what it ran on, name -> version
//    "devices": [{"kind": "gpu", "name": "NVIDIA H200", "facts": {"bus_id": "0000:0f:00.0"}}],
//    "notes": ["P2P is off between 0 and 1"],            what was left out, and why
//    "rows": [
//      {"kind": "tcp.stream",                            which measurement
//       "labels": {"sockets": "4", "threads": "2"},      what else tells rows of a kind apart
//       "bytes": 65536,                                  the size that was varied
//       "moved_bytes": 65536,                            bytes moved in that time; 0: a latency
//       "time_us": {"median": 5.7, "p10": 5.5, "p90": 6.4, "min": 5.4, "max": 9.0, "count": 40}},
//      {"kind": "cuda.p2p_access", "labels": {"from": "0", "to": "1"}, "value": 1, "unit": "bool"}
//    ],
//    "fits": [{"kind": "tcp.stream", "labels": {...}, "latency_us": 0.3,
//              "bytes_per_second": 1.19e8, "worst_error": 0.02, "points": 8}]}
//
// A row has either time_us (with bytes and moved_bytes) or value and unit. Times are microseconds
// of one operation; the rate is moved_bytes / median. Which kinds and labels a probe writes stands
// in the header of that probe. Keys are only ever added; a changed meaning is a new schema_version.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/probes/common/stats.h"

namespace railyard::probe {

inline constexpr int kSchemaVersion = 1;

using Labels = std::map<std::string, std::string>;

struct Row {
  std::string kind;
  Labels labels;
  std::int64_t bytes = 0;
  std::int64_t moved_bytes = 0;
  Summary time_us;              // when value is empty
  std::optional<double> value;  // a finding that is not a time
  std::string unit;
};

struct Device {
  std::string kind, name;
  Labels facts;
};

struct Fit {
  std::string kind;
  Labels labels;
  LineFit line;
};

struct Report {
  std::string tool, host, started;
  std::vector<std::string> command;
  Labels software;
  std::vector<Device> devices;
  std::vector<std::string> notes;
  std::vector<Row> rows;
  std::vector<Fit> fits;
};

// With host, start time, command and the host itself as the first device.
Report new_report(const std::string& tool, int argc, char** argv);

// One line per group of rows that differ in `bytes` alone, for those of `kind` that move bytes.
void add_fits(Report& report, const std::string& kind);

std::string to_json(const Report& report);
void print_table(const Report& report, std::FILE* out);

// The table on stdout; the JSON in `path` unless that is empty. Throws ProbeError if not writable.
void publish(const Report& report, const std::string& path);

}  // namespace railyard::probe
