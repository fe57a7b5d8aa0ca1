#include "tools/cli/table.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard::cli {
namespace {

std::string line(const std::vector<std::string>& cells, const std::vector<Column>& columns,
                 const std::vector<std::size_t>& widths) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - cells[i].size(), ' ');
    if (i > 0) text += "  ";
    text += columns[i].align == Align::left ? cells[i] + padding : padding + cells[i];
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  RAILYARD_CHECK(row.size() == columns_.size(), "a row has a cell for every column");
  rows_.push_back(std::move(row));
}

std::string Table::text(std::string_view indent) const {
  std::vector<std::size_t> widths;
  std::vector<std::string> titles;
  for (const Column& column : columns_) {
    widths.push_back(column.title.size());
    titles.push_back(column.title);
  }
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  const bool titled = std::any_of(titles.begin(), titles.end(),
                                  [](const std::string& title) { return !title.empty(); });
  if (titled) text.append(indent).append(line(titles, columns_, widths)).append("\n");
  for (const auto& row : rows_)
    text.append(indent).append(line(row, columns_, widths)).append("\n");
  return text;
}

std::string wrap(std::string_view text, std::size_t width, std::string_view indent) {
  std::string out(text.substr(0, std::min(text.find_first_not_of(' '), text.size())));
  text.remove_prefix(out.size());
  std::size_t column = out.size();
  bool first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (!first && column + 1 + word.size() > width) {
      out.append("\n").append(indent);
      column = indent.size();
    } else if (!first) {
      out += ' ';
      ++column;
    }
    first = false;
    out.append(word);
    column += word.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace railyard::cli
