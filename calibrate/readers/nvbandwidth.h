// What nvbandwidth prints, 0.1 to 0.8: text and JSON (-j), one host or several (multinode).
//
// A test is "Running NAME.", a description, a matrix, "SUM NAME x" (JSON: bandwidth_matrix). The
// description says which way the figures go: "CPU(row) -> GPU(column)", "GPU(row) <- GPU(column)",
// "CPU(row) <-> GPU(column)" (both ways at once, of which the one in the test's name is measured;
// the _sm tests between devices and tests named _total sum both). Figures are GB/s (1e9 bytes);
// latency tests ns. Tests all_to_* and *_to_all run many copies at once: Measurement::shared.
// Sizes: what the file says of its buffer, else absent (the default was 64 MiB, later 512).
// In multinode output the device numbers are those of the processes.
// Notes: waived and failed tests, a SUM that is not the sum of the cells, a matrix cut off.
//
//   RAILYARD_ASSIGN(const NvbandwidthLog log, read_nvbandwidth(text, "nvbandwidth.txt"));
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/readers/copy_matrix.h"
#include "calibrate/readers/measurement.h"
#include "sim/result.h"

namespace railyard::calibrate {

struct NvbandwidthDevice {
  std::int64_t number = -1;  // of the matrices: device, or process in multinode output
  std::int64_t device = -1;  // on its host
  std::string host;          // multinode only
  std::string name, bus;     // bus "00000008:01:00", since 0.5
};

enum class CopyDirection { unsaid, row_to_column, column_to_row, both };

struct NvbandwidthTest {
  std::string name;         // "device_to_device_memcpy_read_ce"
  std::string description;  // "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)"
  CopyDirection direction = CopyDirection::unsaid;
  bool row_is_host = false, column_is_host = false;
  bool latency = false;  // cells are nanoseconds
  bool shared = false;   // many copies at once
  CopyMatrix matrix;
  std::optional<double> sum;
  std::size_t line = 0;
};

struct NvbandwidthLog {
  std::string source;
  std::string version, driver;
  std::int64_t cuda = -1;  // 12080
  std::optional<std::int64_t> buffer_bytes;
  std::vector<NvbandwidthDevice> devices;
  std::vector<NvbandwidthTest> tests;  // those with figures, at least one
  std::vector<Note> notes;
};

// Errors: another tool's log (named), a list of tests or waived tests only, broken JSON.
sim::Result<NvbandwidthLog> read_nvbandwidth(std::string_view text, std::string_view name);

std::vector<Measurement> measurements(const NvbandwidthLog& log);

}  // namespace railyard::calibrate

namespace railyard::sim {
template <>
struct EnumTable<calibrate::CopyDirection> {
  using Direction = calibrate::CopyDirection;
  static constexpr std::string_view kind = "direction";
  static constexpr std::array entries{EnumEntry{Direction::unsaid, "unsaid"},
                                      EnumEntry{Direction::row_to_column, "row -> column"},
                                      EnumEntry{Direction::column_to_row, "row <- column"},
                                      EnumEntry{Direction::both, "row <-> column"}};
};
}  // namespace railyard::sim
