#include "calibrate/readers/nccl_tests_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <tuple>

namespace railyard::calibrate {
namespace {

// Half a unit of the last digit of "0.01", and two digits of a time in e-notation.
constexpr double kRoundedGb = 0.006;
constexpr double kRoundedShare = 0.05;
// Below this many bytes a sweep's sizes are rounded to whole elements of every rank.
constexpr std::int64_t kUnrounded = 65536;

// Rows of one sweep: nccl-tests runs one for every type, operation and root that is asked for.
using Sweep = std::tuple<std::string, std::string, std::int64_t>;
Sweep sweep_of(const NcclTestsRow& row) { return {row.datatype, row.redop, row.root.value_or(-1)}; }

void check_half(const NcclTestsTable& table, const NcclTestsRow& row, const NcclTestsHalf& half,
                Notes& notes) {
  if (half.us <= 0) {
    notes.add(row.line, fmt::format("time {} for {} bytes: not used", half.us, row.bytes));
    return;
  }
  const double expected = static_cast<double>(row.bytes) / half.us / 1e3;
  if (std::abs(expected - half.algbw) > kRoundedGb + kRoundedShare * expected)
    notes.add(row.line, fmt::format("{} bytes in {} us are {:.2f} GB/s, not the printed {}: other "
                                    "units, or figures of another row",
                                    row.bytes, half.us, expected, half.algbw));
  if (!table.error_column && half.wrong.value_or(0) > 0)
    notes.add(row.line,
              fmt::format("{} wrong elements at {} bytes: not used", *half.wrong, row.bytes));
}

void check_sizes(const NcclTestsTable& table, Notes& notes) {
  std::map<Sweep, const NcclTestsRow*> before;
  std::size_t empty = 0, first_empty = 0;
  for (const NcclTestsRow& row : table.rows) {
    if (row.bytes == 0 && empty++ == 0) first_empty = row.line;
    const NcclTestsRow*& last = before[sweep_of(row)];
    if (last != nullptr && row.bytes < last->bytes)
      notes.add(row.line, fmt::format("sizes go down, from {} to {}: another run's rows?",
                                      last->bytes, row.bytes));
    if (last != nullptr && table.step_factor > 1 && last->bytes >= kUnrounded &&
        row.bytes / table.step_factor > last->bytes + last->bytes / 100)
      notes.add(row.line,
                fmt::format("sizes between {} and {} are missing", last->bytes, row.bytes));
    last = &row;
  }
  if (empty != 0)
    notes.add(first_empty, fmt::format("{} rows of 0 bytes (sizes too small to share out): not "
                                       "used",
                                       empty));
}

void check_end(const NcclTestsTable& table, Notes& notes) {
  const NcclTestsRow& last = table.rows.back();
  if (!table.out_of_bounds && !table.average_busbw)
    notes.add(last.line, "the table has no closing lines (\"Avg bus bandwidth\"): cut off?");
  const bool more = table.step_factor > 1
                        ? last.bytes <= table.max_bytes / table.step_factor
                        : table.step_bytes > 0 && last.bytes <= table.max_bytes - table.step_bytes;
  if (table.max_bytes > 0 && last.bytes >= kUnrounded && more)
    notes.add(last.line, fmt::format("the last row has {} bytes, maxBytes is {}: cut off",
                                     last.bytes, table.max_bytes));
  if (table.out_of_bounds.value_or(0) > 0)
    notes.add(last.line, fmt::format("nccl-tests itself reports {} values out of bounds",
                                     *table.out_of_bounds));
}

// The average of all busbw that were printed, which the closing line repeats.
void check_average(const NcclTestsTable& table, Notes& notes) {
  double sum = 0, count = 0;
  for (const NcclTestsRow& row : table.rows)
    for (const auto& half : {row.out_of_place, row.in_place})
      if (half) {
        sum += half->busbw;
        ++count;
      }
  if (!table.average_busbw || count == 0) return;
  const double average = sum / count;
  if (std::abs(average - *table.average_busbw) > 0.01 + 0.02 * average)
    notes.add(table.rows.back().line,
              fmt::format("the rows' average busbw is {:.3f}, the closing line says {}: rows are "
                          "missing or changed",
                          average, *table.average_busbw));
}

bool usable(const NcclTestsTable& table, const NcclTestsRow& row, const NcclTestsHalf& half) {
  return row.bytes > 0 && half.us > 0 && !table.host_times &&
         (table.error_column || half.wrong.value_or(0) == 0);
}

Measurement measurement_of(const NcclTestsTable& table, const NcclTestsRow& row) {
  Measurement m;
  m.kind = MeasurementKind::collective;
  m.test = table.program;
  m.collective = table.collective;
  m.bytes = row.bytes;
  m.ranks = table.rank_count;
  m.nodes = table.node_count;
  m.datatype = row.datatype;
  m.redop = row.redop;
  for (const NcclTestsRank& rank : table.ranks) add_distinct(m.devices, rank.gpu);
  m.line = row.line;
  return m;
}

}  // namespace

void check_nccl_tests(const NcclTestsTable& table, Notes& notes) {
  for (const NcclTestsRow& row : table.rows)
    for (const auto& half : {row.out_of_place, row.in_place})
      if (half) check_half(table, row, *half, notes);
  check_sizes(table, notes);
  check_end(table, notes);
  check_average(table, notes);
  if (table.host_times)
    notes.add(table.line, "times are the host's (cputime), until the call returned: not used");
}

std::vector<Measurement> measurements(const NcclTestsLog& log) {
  std::vector<Measurement> all;
  for (const NcclTestsTable& table : log.tables) {
    for (const NcclTestsRow& row : table.rows) {
      Measurement m = measurement_of(table, row);
      m.file = log.source;
      for (const bool in_place : {false, true}) {
        const auto& half = in_place ? row.in_place : row.out_of_place;
        if (!half || !usable(table, row, *half)) continue;
        m.in_place = in_place;
        m.us = half->us;
        all.push_back(m);
      }
    }
  }
  return all;
}

}  // namespace railyard::calibrate
