#include "calibrate/readers/perftest_parts.h"

#include <fmt/format.h>

#include <cmath>

#include "calibrate/readers/json_text.h"

namespace railyard::calibrate {
namespace {

constexpr double kMiB = 1048576;
constexpr double kAgree = 0.02;  // average against size x rate, both printed with few digits

std::string verb_of(std::string_view test) {
  if (test.find("Write") != test.npos) return "write";
  if (test.find("Read") != test.npos) return "read";
  if (test.find("Atomic") != test.npos || test.find("Fetch") != test.npos ||
      test.find("Compare") != test.npos)
    return "atomic";
  return test.find("Send") != test.npos ? "send" : "";
}

// GB/s that size and message rate give; 0 if the rate has too few digits to compare.
double by_rate(const PerftestRow& row) {
  constexpr double kLeastRate = 1e-4;  // printed with six decimals
  if (row.message_rate.value_or(0) < kLeastRate || row.bytes <= 0) return 0;
  return *row.message_rate * 1e6 * static_cast<double>(row.bytes) / 1e9;
}

void check_row(const PerftestTable& table, const PerftestRow& row, Notes& notes) {
  const auto figure = table.latency ? (row.typical ? row.typical : row.mean) : row.average;
  if (figure.value_or(0) <= 0) {
    notes.add(row.line, fmt::format("{} of 0 at {} bytes: not used",
                                    table.latency ? "latency" : "bandwidth", row.bytes));
    return;
  }
  const double rate = table.latency ? 0 : by_rate(row);
  // Half of the last digit printed, in Gb/s or MiB/s.
  const double rounding = 0.005 * perftest_unit(table.unit.empty() ? "Gb/sec" : table.unit);
  if (rate != 0 && std::abs(rate - *row.average) > kAgree * rate + rounding)
    notes.add(row.line, fmt::format("{} bytes at {} million a second are {:.3f} GB/s, the average "
                                    "is {:.3f}: other units?",
                                    row.bytes, *row.message_rate, rate, *row.average));
}

void check_sizes(const PerftestTable& table, Notes& notes) {
  for (std::size_t i = 1; i < table.rows.size(); ++i)
    if (table.rows[i].bytes < table.rows[i - 1].bytes)
      notes.add(table.rows[i].line, fmt::format("sizes go down, from {} to {}: another run's rows?",
                                                table.rows[i - 1].bytes, table.rows[i].bytes));
}

// JSON: the unit that makes average and message rate agree.
std::string unit_of(const std::vector<PerftestRow>& rows) {
  for (const PerftestRow& row : rows) {
    const double rate = by_rate(row);
    if (rate == 0 || !row.average) continue;
    for (const char* unit : {"Gb/sec", "MiB/sec"})
      if (std::abs(*row.average * perftest_unit(unit) / rate - 1) < kAgree) return unit;
  }
  return {};
}

PerftestRow row_of(const Json& object) {
  PerftestRow row;
  row.bytes = json_integer(object, "MsgSize").value_or(-1);
  row.iterations = json_integer(object, "n_iterations").value_or(-1);
  row.service_level = json_integer(object, "sl");
  row.peak = json_real(object, "BW_peak");
  if (row.peak == 0.0) row.peak.reset();
  row.average = json_real(object, "BW_average");
  row.message_rate = json_real(object, "MsgRate");
  row.cpu_percent = json_real(object, "CPU_util");
  row.least = json_real(object, "t_min");
  row.most = json_real(object, "t_max");
  row.typical = json_real(object, "t_typical");
  row.mean = json_real(object, "t_avg");
  row.deviation = json_real(object, "t_stdev");
  row.p99 = json_real(object, "99_percentile");
  row.p999 = json_real(object, "99.9_percentile");
  row.transactions = json_real(object, "tps_average");
  return row;
}

// All objects with "MsgSize", wherever they stand, in order; and the test's description.
void collect(const Json& value, PerftestTable& table) {
  if (!value.is_structured()) return;
  if (value.is_object() && value.contains("MsgSize")) table.rows.push_back(row_of(value));
  for (const auto& [key, child] : value.items()) {
    if (child.is_primitive() && !child.is_null() && value.is_object() && !value.contains("MsgSize"))
      table.settings.emplace_back(key, json_string(value, key));
    collect(child, table);
  }
}

void scale_bandwidths(PerftestTable& table) {
  const double scale = perftest_unit(table.unit);
  for (PerftestRow& row : table.rows) {
    if (row.peak) *row.peak *= scale;
    if (row.average) *row.average *= scale;
  }
}

}  // namespace

double perftest_unit(std::string_view unit) {
  if (unit == "Gb/sec") return 1.0 / 8;
  if (unit == "MB/sec" || unit == "MiB/sec") return kMiB / 1e9;
  return 0;
}

void classify_perftest(PerftestTable& table) {
  const std::string_view test = table.test;
  table.bidirectional = test.find("Bidirectional") != test.npos;
  const std::string verb = verb_of(test);
  table.round_trip = table.latency && (verb == "read" || verb == "atomic");
  if (!verb.empty()) table.program = "ib_" + verb + (table.latency ? "_lat" : "_bw");
}

void check_perftest(std::vector<PerftestTable>& tables, Notes& notes) {
  for (std::size_t i = 0; i < tables.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      tables[i].other_end =
          tables[i].other_end || (!tables[i].local.empty() && tables[i].local == tables[j].remote &&
                                  tables[i].remote == tables[j].local);
    if (tables[i].other_end) {
      notes.add(tables[i].line, "the same run from its other end: measured once");
      continue;
    }
    for (const PerftestRow& row : tables[i].rows) check_row(tables[i], row, notes);
    check_sizes(tables[i], notes);
    if (tables[i].cycles)
      notes.add(tables[i].line, "latencies in CPU cycles, not in time: not used");
    if (tables[i].test.empty()) notes.add(tables[i].line, "no banner says which test this is");
  }
}

sim::Result<PerftestLog> read_perftest_json(std::string_view text, std::string_view name) {
  const std::string file(name);
  RAILYARD_ASSIGN(const Json document, parse_json(text, file));
  PerftestTable table;
  collect(document, table);
  Notes notes;
  std::erase_if(table.rows, [&](const PerftestRow& row) {
    const bool bad = row.bytes < 0 || (!row.average && !row.mean && !row.typical);
    if (bad) notes.add(0, "a result without size or figure: left out");
    return bad;
  });
  if (table.rows.empty()) return sim::bad_input("perftest's JSON without results", file);
  for (const char* key : {"test", "Test", "test_name"})
    if (table.test.empty()) table.test = table.setting(key);
  table.latency = !table.rows.front().average.has_value();
  classify_perftest(table);
  if (!table.latency) {
    table.unit = unit_of(table.rows);
    if (table.unit.empty())
      return sim::bad_input(
          "average and message rate agree neither as Gb/s nor as MiB/s, and "
          "perftest's JSON names no unit",
          file);
    scale_bandwidths(table);
  }
  std::vector<PerftestTable> tables{std::move(table)};
  check_perftest(tables, notes);
  return PerftestLog{file, std::move(tables), notes.take()};
}

std::vector<Measurement> measurements(const PerftestLog& log) {
  std::vector<Measurement> all;
  for (const PerftestTable& table : log.tables) {
    if (table.other_end || table.cycles) continue;
    for (const PerftestRow& row : table.rows) {
      Measurement m;
      m.kind = MeasurementKind::message;
      m.test = table.program;
      m.pattern = table.round_trip      ? MessagePattern::round_trip
                  : table.latency       ? MessagePattern::ping_pong
                  : table.bidirectional ? MessagePattern::bidirectional
                                        : MessagePattern::stream;
      m.bytes = row.bytes;
      m.us = table.latency ? (row.typical ? row.typical : row.mean) : std::nullopt;
      if (!table.latency) m.gb_per_s = row.average;
      const double figure = table.latency ? m.us.value_or(0) : m.gb_per_s.value_or(0);
      if (figure <= 0 || row.bytes <= 0) continue;
      m.ranks = 2;
      add_distinct(m.devices, table.setting("Device"));
      add_distinct(m.devices, table.gpu);
      m.file = log.source;
      m.line = row.line;
      all.push_back(std::move(m));
    }
  }
  return all;
}

}  // namespace railyard::calibrate
