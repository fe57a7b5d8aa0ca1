#include "calibrate/readers/nvbandwidth_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "calibrate/readers/json_text.h"

namespace railyard::calibrate {
namespace {

// A matrix of JSON: rows of cells, which are numbers or strings.
CopyMatrix matrix_of(const Json& rows, const std::string& test, Notes& notes) {
  CopyMatrix matrix;
  for (const Json& row : rows) {
    if (!row.is_array()) continue;
    if (matrix.columns.empty())
      for (std::size_t i = 0; i < row.size(); ++i)
        matrix.columns.push_back(static_cast<std::int64_t>(i));
    if (row.size() != matrix.columns.size()) {
      notes.add(0, fmt::format("{}: a row of {} cells where {} are expected: left out", test,
                               row.size(), matrix.columns.size()));
      continue;
    }
    std::vector<std::optional<double>> cells;
    for (const Json& cell : row)
      cells.push_back(cell.is_number()   ? std::optional(cell.get<double>())
                      : cell.is_string() ? to_real(cell.get_ref<const std::string&>())
                                         : std::nullopt);
    matrix.rows.push_back(static_cast<std::int64_t>(matrix.cells.size()));
    matrix.lines.push_back(0);
    matrix.cells.push_back(std::move(cells));
  }
  return matrix;
}

void read_testcase(const Json& testcase, NvbandwidthLog& log, Notes& notes) {
  NvbandwidthTest test;
  test.name = json_string(testcase, "name");
  const std::string name = excerpt(test.name, 80);
  if (const std::string status = json_string(testcase, "status"); status != "Passed")
    notes.add(0, fmt::format("{}: status {}", name, excerpt(status)));
  for (const char* quantity : {"bandwidth", "latency"}) {
    const Json& matrix = json_at(testcase, std::string(quantity) + "_matrix");
    if (!matrix.is_array()) continue;
    test.description = json_string(testcase, std::string(quantity) + "_description");
    test.matrix = matrix_of(matrix, name, notes);
  }
  test.sum = json_real(testcase, "sum");
  if (const auto bytes = json_integer(testcase, "bufferSize")) log.buffer_bytes = bytes;
  if (test.matrix.cells.empty()) return;
  classify_nvbandwidth(test);
  check_nvbandwidth(test, notes);
  log.tests.push_back(std::move(test));
}

constexpr std::int64_t kSeveral = -2;  // as Measurement::from says

struct Ends {
  std::int64_t from, to;
};
// Devices of a cell; -1 is the host. A matrix without "(row)" has one figure for each column.
Ends ends_of(const NvbandwidthTest& test, std::size_t row, std::size_t column) {
  const bool rows = test.description.find("(row)") != std::string::npos;
  const std::int64_t at_row = test.row_is_host ? -1 : rows ? test.matrix.rows[row] : kSeveral;
  const std::int64_t at_column = test.column_is_host ? -1 : test.matrix.columns[column];
  const bool to_host = test.name.starts_with("device_to_host");
  const bool backwards = test.direction == CopyDirection::column_to_row ||
                         (test.direction == CopyDirection::both && to_host);
  return backwards ? Ends{at_column, at_row} : Ends{at_row, at_column};
}

Measurement copy_of(const NvbandwidthTest& test, Ends ends, double value) {
  Measurement m;
  m.kind = MeasurementKind::copy;
  m.test = test.name;
  m.to = ends.to;
  m.from = test.direction == CopyDirection::unsaid ? ends.to : ends.from;  // inside one device
  m.bidirectional =
      test.direction == CopyDirection::both || test.name.find("bidirectional") != std::string::npos;
  m.shared = test.shared;
  if (test.latency)
    m.us = value / 1e3;
  else
    m.gb_per_s = value;
  return m;
}

std::string_view device_name(const NvbandwidthLog& log, std::int64_t number) {
  for (const NvbandwidthDevice& device : log.devices)
    if (device.number == number) return device.name;
  return {};
}

}  // namespace

void classify_nvbandwidth(NvbandwidthTest& test) {
  const std::string_view text = test.description;
  if (text.find(" <-> ") != text.npos)
    test.direction = CopyDirection::both;
  else if (text.find(" -> ") != text.npos)
    test.direction = CopyDirection::row_to_column;
  else if (text.find(" <- ") != text.npos)
    test.direction = CopyDirection::column_to_row;
  test.row_is_host = text.find("CPU(row)") != text.npos;
  test.column_is_host = text.find("CPU(column)") != text.npos;
  test.latency = text.find("(ns)") != text.npos;
  const std::string_view name = test.name;
  test.shared = name.find("all_to_") != name.npos || name.find("_to_all") != name.npos;
}

void check_nvbandwidth(const NvbandwidthTest& test, Notes& notes) {
  double sum = 0;
  std::size_t zeros = 0;
  for (const auto& row : test.matrix.cells)
    for (const std::optional<double>& cell : row) {
      sum += cell.value_or(0);
      zeros += cell == 0.0 ? 1 : 0;
    }
  const auto cells = static_cast<double>(test.matrix.measured());
  if (test.sum && std::abs(*test.sum - sum) > 0.006 * cells + 0.001 * std::abs(sum))
    notes.add(test.line, fmt::format("{}: the cells add up to {:.2f}, SUM says {}",
                                     excerpt(test.name, 80), sum, *test.sum));
  if (zeros != 0)
    notes.add(test.line,
              fmt::format("{}: {} cells are 0: not used", excerpt(test.name, 80), zeros));
  if (test.direction == CopyDirection::unsaid &&
      test.description.find("(row)") != std::string::npos)
    notes.add(test.line, fmt::format("{}: the description names no direction: not used",
                                     excerpt(test.name, 80)));
}

sim::Result<NvbandwidthLog> read_nvbandwidth_json(std::string_view text, std::string_view name) {
  NvbandwidthLog log;
  log.source = name;
  RAILYARD_ASSIGN(const Json document, parse_json(text, log.source));
  const Json& root = json_at(document, "nvbandwidth");
  log.version = json_string(root, "version");
  log.driver = json_string(root, "Driver Version");
  log.cuda = json_integer(root, "CUDA Runtime Version").value_or(-1);
  if (const auto bytes = json_integer(root, "bufferSize")) log.buffer_bytes = bytes;
  Notes notes;
  for (const char* key : {"error", "warning"})
    if (const std::string said = json_string(root, key); !said.empty())
      notes.add(0, fmt::format("nvbandwidth's {}: {}", key, excerpt(said, 200)));
  for (const Json& testcase : json_at(root, "testcases")) read_testcase(testcase, log, notes);
  if (log.tests.empty())
    return sim::bad_input("nvbandwidth's JSON without a matrix in any test case", log.source);
  log.notes = notes.take();
  return log;
}

std::vector<Measurement> measurements(const NvbandwidthLog& log) {
  std::vector<Measurement> all;
  std::vector<std::string> hosts;
  for (const NvbandwidthDevice& device : log.devices) add_distinct(hosts, device.host);
  for (const NvbandwidthTest& test : log.tests) {
    const bool local = test.direction == CopyDirection::unsaid;
    if (local && test.description.find("(row)") != std::string::npos) continue;
    for_each_figure(test.matrix, [&](std::size_t row, std::size_t column, double value) {
      Measurement m = copy_of(test, ends_of(test, row, column), value);
      m.nodes = hosts.empty() ? 1 : static_cast<std::int64_t>(hosts.size());
      if (!test.latency) m.bytes = log.buffer_bytes;
      for (const std::int64_t end : {m.from, m.to}) add_distinct(m.devices, device_name(log, end));
      m.file = log.source;
      m.line = test.matrix.lines[row];
      all.push_back(std::move(m));
    });
  }
  return all;
}

}  // namespace railyard::calibrate
