// Measurement: one figure that somebody measured, whatever tool wrote it down. Readers of single
// formats keep everything their log says; measurements(log) of each gives what a fit can use.
//
// Units: microseconds; GB/s = 1e9 bytes per second; bytes are bytes. A figure the tool did not
// print is absent, never zero: at least one of `us` and `gb_per_s` is there, finite and above 0.
// Rows that a fit must not use (0 bytes, 0 time, wrong results) are left out by measurements() and
// named in the log's notes.
//
//   RAILYARD_ASSIGN(const NcclTestsLog log, read_nccl_tests(text, "all_reduce.log"));
//   for (const Measurement& m : measurements(log)) fit.add(*m.bytes, *m.us);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/collective.h"

namespace railyard::calibrate {

// What a user should know about a log that was read all the same. Line 0: the file as a whole.
struct Note {
  std::string text;
  std::size_t line = 0;
};

enum class MeasurementKind {
  collective,  // by all ranks; bytes as nccl-tests' `size` column counts them
  copy,        // between memories of one host, or of one NVLink domain
  message,     // from one process to another: MPI, verbs
};

// What `bytes` and `us` mean for a message.
enum class MessagePattern {
  none,          // not a message
  ping_pong,     // us: half a round trip
  round_trip,    // us: there and back (RDMA read, atomics)
  stream,        // many messages under way; only gb_per_s is the link's
  bidirectional  // stream both ways; gb_per_s is the sum of both
};

struct Measurement {
  MeasurementKind kind = MeasurementKind::collective;
  std::string test;  // the tool's name of it: "all_reduce_perf", "ib_write_bw", "osu_latency"
  std::optional<sim::Collective> collective;
  MessagePattern pattern = MessagePattern::none;

  std::optional<std::int64_t> bytes;
  std::optional<double> us;        // of one operation
  std::optional<double> gb_per_s;  // copies and messages; a collective's follows from us

  std::int64_t ranks = -1, nodes = -1;  // -1: the log does not say
  bool in_place = false;                // collectives
  bool bidirectional = false;           // copies: both directions were busy
  bool shared = false;                  // others ran at the same time; the figure may be of all
  std::string datatype, redop;          // as printed
  // Devices of a copy; -1: the host, -2: several at once.
  std::int64_t from = -1, to = -1;
  std::vector<std::string> devices;  // distinct models or adapters, in order of appearance

  std::string file;
  std::size_t line = 0;  // 1-based; 0: a JSON file's, which has no lines to point to
};

}  // namespace railyard::calibrate

namespace railyard::sim {

template <>
struct EnumTable<calibrate::MeasurementKind> {
  using Kind = calibrate::MeasurementKind;
  static constexpr std::string_view kind = "kind of measurement";
  static constexpr std::array entries{EnumEntry{Kind::collective, "collective"},
                                      EnumEntry{Kind::copy, "copy"},
                                      EnumEntry{Kind::message, "message"}};
};

template <>
struct EnumTable<calibrate::MessagePattern> {
  using Pattern = calibrate::MessagePattern;
  static constexpr std::string_view kind = "message pattern";
  static constexpr std::array entries{
      EnumEntry{Pattern::none, "none"}, EnumEntry{Pattern::ping_pong, "ping-pong"},
      EnumEntry{Pattern::round_trip, "round trip"}, EnumEntry{Pattern::stream, "stream"},
      EnumEntry{Pattern::bidirectional, "bidirectional"}};
};

}  // namespace railyard::sim
