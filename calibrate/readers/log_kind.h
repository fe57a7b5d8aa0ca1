// Which tool wrote a measurement log, told by its content.
//
//   const Identified what = identify(text);     // {LogKind::osu, 3, "# OSU MPI Bandwidth Test
//   v7.5"} describe(LogKind::osu)                      // "an OSU micro-benchmark"
//
// A log may hold output of several tools: NCCL's debug lines among nccl-tests' are the rule. The
// first line that only a measuring tool prints decides; debug lines alone make it an NCCL log.
// Cost: O(bytes), stopping at the line that decides.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "sim/enum_table.h"
#include "sim/result.h"

namespace railyard::calibrate {

enum class LogKind {
  unknown,
  empty,
  gzip,  // compressed: nothing here unpacks
  nccl_tests,
  nccl_tests_json,
  nccom_test,  // of AWS Neuron: resembles nccl-tests, no reader
  perftest,
  perftest_json,
  nvbandwidth,
  nvbandwidth_json,
  p2p_bandwidth,
  osu,
  kineto,
  execution_trace,  // PyTorch's or Chakra's: no times, so nothing measured
  nccl_log          // NCCL_DEBUG=INFO only
};

struct Identified {
  LogKind kind = LogKind::unknown;
  std::size_t line = 0;  // what gave it away; 0 for unknown and empty
  std::string text;      // that line, shortened
};

Identified identify(std::string_view text);

// "an nccl-tests log": for sentences.
std::string_view describe(LogKind kind);

// The error of a reader that found nothing of its own in a text:
// "x.log:3: this is an OSU log ("# OSU MPI Bandwidth Test v7.5"), expected an nccl-tests log".
sim::Error other_log(std::string_view text, const std::string& name, LogKind expected);

}  // namespace railyard::calibrate

namespace railyard::sim {

template <>
struct EnumTable<calibrate::LogKind> {
  using Kind = calibrate::LogKind;
  static constexpr std::string_view kind = "kind of log";
  static constexpr std::array entries{EnumEntry{Kind::unknown, "unknown"},
                                      EnumEntry{Kind::empty, "empty"},
                                      EnumEntry{Kind::gzip, "gzip"},
                                      EnumEntry{Kind::nccl_tests, "nccl-tests"},
                                      EnumEntry{Kind::nccl_tests_json, "nccl-tests-json"},
                                      EnumEntry{Kind::nccom_test, "nccom-test"},
                                      EnumEntry{Kind::perftest, "perftest"},
                                      EnumEntry{Kind::perftest_json, "perftest-json"},
                                      EnumEntry{Kind::nvbandwidth, "nvbandwidth"},
                                      EnumEntry{Kind::nvbandwidth_json, "nvbandwidth-json"},
                                      EnumEntry{Kind::p2p_bandwidth, "p2pBandwidthLatencyTest"},
                                      EnumEntry{Kind::osu, "osu"},
                                      EnumEntry{Kind::kineto, "kineto"},
                                      EnumEntry{Kind::execution_trace, "execution-trace"},
                                      EnumEntry{Kind::nccl_log, "nccl-log"}};
};

}  // namespace railyard::sim
