#include "calibrate/readers/log_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "calibrate/readers/log_text.h"

namespace railyard::calibrate {
namespace {

constexpr std::size_t kExcerpt = 60;
constexpr std::string_view kBlanks = " \t\r\n";

struct Sign {
  LogKind kind;
  std::string_view first, second;  // a line that contains both; the second may be empty
};

// In the order of trust: NCCL's own lines stand in the logs of all others.
constexpr std::array kLineSigns{
    Sign{LogKind::nccom_test, "size(B)", "busbw(GB/s)"},
    Sign{LogKind::nccom_test, "nccom-test", ""},
    Sign{LogKind::nccl_tests, "size", "busbw"},
    Sign{LogKind::nccl_tests, "# nThread ", "nGpus"},
    Sign{LogKind::nccl_tests, "Collective test starting:", ""},
    Sign{LogKind::osu, "# OSU ", ""},
    Sign{LogKind::osu, "# Size ", "Latency"},
    Sign{LogKind::osu, "# Size ", "Bandwidth (MB/s)"},
    Sign{LogKind::p2p_bandwidth, "P2P (Peer-to-Peer) GPU Bandwidth", ""},
    Sign{LogKind::p2p_bandwidth, "P2P Connectivity Matrix", ""},
    Sign{LogKind::p2p_bandwidth, "directional P2P=", "Matrix"},
    Sign{LogKind::nvbandwidth, "nvbandwidth Version", ""},
    Sign{LogKind::nvbandwidth, "(row)", "(column)"},
    Sign{LogKind::nvbandwidth, "Running ", "memcpy_"},
    Sign{LogKind::perftest, "#bytes", "#iterations"},
    Sign{LogKind::perftest, "RDMA_", " Test"},
    Sign{LogKind::perftest, "Send ", "BW Test"},
    Sign{LogKind::perftest, "Send ", "Latency Test"}};

constexpr std::array kJsonSigns{Sign{LogKind::kineto, "\"traceEvents\"", ""},
                                Sign{LogKind::nvbandwidth_json, "\"nvbandwidth\"", ""},
                                Sign{LogKind::nccl_tests_json, "\"bus_bw\"", ""},
                                Sign{LogKind::nccl_tests_json, "\"nccl_version\"", "\"args\""},
                                Sign{LogKind::perftest_json, "MsgSize", ""},
                                Sign{LogKind::perftest_json, "test_info", ""},
                                Sign{LogKind::execution_trace, "\"nodes\"", "\"schema\""}};

bool holds(std::string_view text, const Sign& sign) {
  return text.find(sign.first) != text.npos &&
         (sign.second.empty() || text.find(sign.second) != text.npos);
}

std::size_t line_at(std::string_view text, std::size_t at) {
  return 1 + static_cast<std::size_t>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

Identified identify_json(std::string_view text) {
  for (const Sign& sign : kJsonSigns) {
    if (!holds(text, sign)) continue;
    const std::size_t line = line_at(text, text.find(sign.first));
    std::string key(sign.first);
    std::erase(key, '"');
    return {sign.kind, line, std::move(key)};
  }
  return {};
}

bool is_nccl_message(std::string_view line) {
  return line.find(" NCCL INFO ") != line.npos || line.find(" NCCL WARN ") != line.npos;
}

}  // namespace

Identified identify(std::string_view text) {
  if (text.starts_with("\x1f\x8b")) return {LogKind::gzip, 1, "1f 8b"};
  const std::size_t start = text.find_first_not_of(kBlanks);
  if (start == text.npos) return {LogKind::empty, 0, {}};
  if (text[start] == '{' || text.substr(start).starts_with("[{"))
    if (Identified json = identify_json(text); json.kind != LogKind::unknown) return json;

  Identified debug;
  LineReader lines(text);
  for (std::string_view line; lines.next(line);) {
    if (is_nccl_message(line)) {
      if (debug.kind == LogKind::unknown)
        debug = {LogKind::nccl_log, lines.number(), excerpt(trim(line), kExcerpt)};
      continue;
    }
    for (const Sign& sign : kLineSigns)
      if (holds(line, sign)) return {sign.kind, lines.number(), excerpt(trim(line), kExcerpt)};
  }
  return debug;
}

std::string_view describe(LogKind kind) {
  switch (kind) {
    case LogKind::unknown: return "a log of no tool known here";
    case LogKind::empty: return "an empty file";
    case LogKind::gzip: return "a file compressed by gzip; unpack it first";
    case LogKind::nccl_tests: return "an nccl-tests log";
    case LogKind::nccl_tests_json: return "a JSON file of nccl-tests";
    case LogKind::nccom_test: return "a log of AWS nccom-test, for which there is no reader";
    case LogKind::perftest: return "a perftest (ib_write_bw, ...) log";
    case LogKind::perftest_json: return "a JSON file of perftest";
    case LogKind::nvbandwidth: return "an nvbandwidth log";
    case LogKind::nvbandwidth_json: return "a JSON file of nvbandwidth";
    case LogKind::p2p_bandwidth: return "a log of p2pBandwidthLatencyTest";
    case LogKind::osu: return "an OSU log";
    case LogKind::kineto: return "a trace of the PyTorch profiler";
    case LogKind::execution_trace:
      return "an execution trace (PyTorch, Chakra), which holds no times";
    case LogKind::nccl_log: return "a log of NCCL_DEBUG=INFO without measurements";
  }
  return "";
}

sim::Error other_log(std::string_view text, const std::string& name, LogKind expected) {
  const Identified what = identify(text);
  std::string message = "this is " + std::string(describe(what.kind));
  if (what.kind == expected) message = "this looks like " + std::string(describe(what.kind));
  if (what.line != 0) message += fmt::format(" (\"{}\")", what.text);
  if (what.kind == expected)
    message += ", but it holds no results";
  else
    message += fmt::format(", expected {}", describe(expected));
  return what.line == 0 ? sim::bad_input(message, name) : error_at(name, what.line, message);
}

}  // namespace railyard::calibrate
