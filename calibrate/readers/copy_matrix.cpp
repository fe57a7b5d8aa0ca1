#include "calibrate/readers/copy_matrix.h"

#include <fmt/format.h>

#include <utility>

namespace railyard::calibrate {

std::size_t CopyMatrix::measured() const {
  std::size_t count = 0;
  for (const auto& row : cells)
    for (const std::optional<double>& cell : row) count += cell ? 1 : 0;
  return count;
}

std::vector<std::int64_t> device_numbers(std::string_view line, std::string_view corner) {
  line = trim(line);
  if (!corner.empty()) {
    if (!line.starts_with(corner)) return {};
    line.remove_prefix(corner.size());
  }
  std::vector<std::int64_t> numbers;
  for (const std::string_view word : words_of(line)) {
    const auto number = to_integer(word);
    if (!number || *number < 0) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

bool add_row(CopyMatrix& matrix, std::string_view line, std::size_t number, Notes& notes) {
  const std::vector<std::string_view> words = words_of(line);
  const auto label = words.empty() ? std::nullopt : to_integer(words[0]);
  if (!label || *label < 0) return false;
  std::vector<std::optional<double>> cells;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto value = to_real(words[i]);
    if (!value && words[i] != "N/A") return false;
    cells.push_back(value);
  }
  if (cells.size() != matrix.columns.size()) {
    notes.add(number, fmt::format("row {} has {} cells of {}: left out", *label, cells.size(),
                                  matrix.columns.size()));
    return true;
  }
  matrix.rows.push_back(*label);
  matrix.lines.push_back(number);
  matrix.cells.push_back(std::move(cells));
  return true;
}

}  // namespace railyard::calibrate
