// Aligned columns of text.
//
//   Table table({{"link", Align::left}, {"bytes", Align::right}});
//   table.add({"node0/gpu0->node0/nvswitch0", "1.2 GiB"});
//   table.text("  ") == "  link                          bytes\n  node0/..."
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace railyard::cli {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::right;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> row);  // as many cells as there are columns
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  // Two spaces between columns, no trailing ones. The title line is left out if no column has one.
  [[nodiscard]] std::string text(std::string_view indent = "  ") const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Breaks at spaces so that no line is longer than `width`; lines after the first get `indent`.
std::string wrap(std::string_view text, std::size_t width, std::string_view indent);

}  // namespace railyard::cli
