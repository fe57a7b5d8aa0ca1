// A matrix of copies between devices, as nvbandwidth and p2pBandwidthLatencyTest print it: a line
// of column numbers, then one line per row, its number first. "N/A" cells are absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "calibrate/readers/log_text.h"

namespace railyard::calibrate {

struct CopyMatrix {
  std::vector<std::int64_t> columns, rows;  // device numbers
  std::vector<std::vector<std::optional<double>>> cells;
  std::size_t line = 0;            // of the column numbers
  std::vector<std::size_t> lines;  // of the rows; 0 in JSON

  [[nodiscard]] std::size_t measured() const;  // cells with a figure
};

// The numbers of a line that holds nothing else; empty if it is no such line. `corner` words
// ("D\D", "GPU") before them are skipped.
std::vector<std::int64_t> device_numbers(std::string_view line, std::string_view corner = {});

// Calls use(row, column, value) for every cell that holds a figure above 0.
template <typename Use>
void for_each_figure(const CopyMatrix& matrix, Use use) {
  for (std::size_t row = 0; row < matrix.cells.size(); ++row)
    for (std::size_t column = 0; column < matrix.columns.size(); ++column)
      if (const double value = matrix.cells[row][column].value_or(0); value > 0)
        use(row, column, value);
}

// Takes a line as the next row. False: the line is no row, the matrix has ended.
// A row with too few or too many cells is left out, with a note.
bool add_row(CopyMatrix& matrix, std::string_view line, std::size_t number, Notes& notes);

}  // namespace railyard::calibrate
