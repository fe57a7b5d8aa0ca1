#include "calibrate/readers/perftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "calibrate/readers/log_kind.h"
#include "calibrate/readers/perftest_parts.h"

namespace railyard::calibrate {
namespace {

enum class Kind { integer, bandwidth, plain, time };
// A column: how its label begins (a '[' announces the unit), and where its value goes.
struct Column {
  std::string_view label;
  Kind kind;
  std::optional<double> PerftestRow::*value;
};
constexpr std::array kColumns{Column{"#bytes", Kind::integer, nullptr},
                              Column{"#iterations", Kind::integer, nullptr},
                              Column{"#sl", Kind::integer, nullptr},
                              Column{"BW peak[", Kind::bandwidth, &PerftestRow::peak},
                              Column{"BW average[", Kind::bandwidth, &PerftestRow::average},
                              Column{"MsgRate[", Kind::plain, &PerftestRow::message_rate},
                              Column{"BW Port1[", Kind::bandwidth, &PerftestRow::port1},
                              Column{"MsgRate Port1[", Kind::plain, nullptr},
                              Column{"BW Port2[", Kind::bandwidth, &PerftestRow::port2},
                              Column{"MsgRate Port2[", Kind::plain, nullptr},
                              Column{"CPU_Util[", Kind::plain, &PerftestRow::cpu_percent},
                              Column{"t_min[", Kind::time, &PerftestRow::least},
                              Column{"t_max[", Kind::time, &PerftestRow::most},
                              Column{"t_typical[", Kind::time, &PerftestRow::typical},
                              Column{"t_avg[", Kind::time, &PerftestRow::mean},
                              Column{"t_stdev[", Kind::time, &PerftestRow::deviation},
                              Column{"99% percentile[", Kind::time, &PerftestRow::p99},
                              Column{"99.9% percentile[", Kind::time, &PerftestRow::p999},
                              Column{"tps average", Kind::plain, &PerftestRow::transactions}};

struct Placed {
  std::size_t at = 0;
  const Column* column = nullptr;
  std::string_view unit;
};

// The columns of a header line, in its order.
std::vector<Placed> columns_of(std::string_view line) {
  std::vector<Placed> placed;
  for (const Column& column : kColumns) {
    const std::size_t at = line.find(column.label);
    if (at == line.npos) continue;
    Placed one{at, &column, {}};
    if (column.label.ends_with('[')) {
      const std::size_t open = at + column.label.size();
      one.unit = line.substr(open, line.find(']', open) - open);
    }
    placed.push_back(one);
  }
  std::sort(placed.begin(), placed.end(),
            [](const Placed& a, const Placed& b) { return a.at < b.at; });
  return placed;
}

// Every "[unit]" of the header belongs to a known column.
bool all_known(std::string_view header, const std::vector<Placed>& columns) {
  const auto units = [](const Placed& placed) { return placed.column->label.ends_with('['); };
  return header.find("#iterations") != header.npos &&
         std::count(header.begin(), header.end(), '[') ==
             std::count_if(columns.begin(), columns.end(), units);
}

bool is_dashes(std::string_view line) {
  return line.size() >= 20 && line.find_first_not_of('-') == line.npos;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view name) : lines_(text), file_(name) {}

  sim::Result<PerftestLog> read(std::string_view text) {
    for (std::string_view line; lines_.next(line);) this->line(trim(without_tag(line)));
    end_table();
    if (tables_.empty() && unknown_ != 0)
      return error_at(file_, unknown_, "perftest's results, but with columns that are not known");
    if (tables_.empty() && banner_ != 0)
      return error_at(file_, banner_,
                      "perftest's banner, but no results after it: the other end "
                      "never came, or prints them");
    if (tables_.empty()) return other_log(text, file_, LogKind::perftest);
    check_perftest(tables_, notes_);
    return PerftestLog{file_, std::move(tables_), notes_.take()};
  }

 private:
  void line(std::string_view text) {
    if (text.starts_with("#bytes")) return begin_table(text);
    if (text.ends_with(" Test") &&
        (text.find(" BW ") != text.npos || text.find(" Latency ") != text.npos)) {
      end_table();
      table_.test = text;
      banner_ = lines_.number();
    } else if (text.starts_with("local address:")) {
      address(text, table_.local);
    } else if (text.starts_with("remote address:")) {
      address(text, table_.remote);
    } else if (!text.empty() && topologies::is_digit(text.front()) && !columns_.empty()) {
      row(text);
    } else if (!is_dashes(text)) {
      other(text);
    }
  }

  void begin_table(std::string_view text) {
    // The columns again with no row and no banner between: the other end's, in one file.
    if (!columns_.empty() && !table_.rows.empty()) end_table();
    columns_ = columns_of(text);
    table_.line = lines_.number();
    if (!all_known(text, columns_)) {  // a figure in the wrong column would be worse than none
      notes_.add(table_.line, "columns that are not known here: the rows are left out");
      unknown_ = table_.line;
      columns_.clear();
      return;
    }
    for (const Placed& placed : columns_) {
      if (placed.column->kind == Kind::bandwidth) table_.unit = placed.unit;
      if (placed.column->kind == Kind::time) {
        table_.latency = true;
        table_.cycles = placed.unit == "cycles";
      }
    }
    if (!table_.latency && perftest_unit(table_.unit) == 0)
      notes_.add(lines_.number(), fmt::format("unknown unit of bandwidth \"{}\": rows are left out",
                                              excerpt(table_.unit)));
  }

  // "local address: LID 0000 QPN 0x0129 PSN 0x57279d RKey ..."
  static void address(std::string_view text, std::vector<std::string>& into) {
    const std::vector<std::string_view> words = words_of(text.substr(text.find(':') + 1), 7);
    std::string key;
    for (std::size_t i = 0; i + 1 < words.size() && i < 6; i += 2)
      key += (i == 0 ? "" : " ") + std::string(words[i]) + " " + std::string(words[i + 1]);
    into.push_back(std::move(key));
  }

  // "Dual-port       : OFF\t\tDevice         : mlx5_0"; with --use_cuda "device name = [NVIDIA
  // A30]"
  void other(std::string_view text) {
    if (const std::size_t gpu = text.find("device name = ["); gpu != text.npos) {
      const std::size_t open = gpu + 15;
      next_gpu_ = text.substr(open, text.find(']', open) - open);
    } else if (text.starts_with("Couldn't ") || text.starts_with("Unable to ") ||
               text.starts_with("Failed ") || text.find("Completion with error") != text.npos) {
      notes_.add(lines_.number(), fmt::format("perftest reports: {}", excerpt(text, 100)));
    } else if (columns_.empty() && !table_.test.empty()) {
      settings(text);
    }
  }

  void settings(std::string_view text) {
    std::size_t colon = text.find(':');
    while (colon != text.npos && colon + 1 < text.size()) {
      const std::string key(trim(text.substr(0, colon)));
      std::string_view rest = trim(text.substr(colon + 1));
      const std::size_t next = rest.find(" :");
      std::string_view value = rest;
      if (next != rest.npos) {
        // "OFF\t\tDevice         ": the value, blanks, the next key
        const std::string_view both = trim(rest.substr(0, next));
        std::size_t gap = both.find_first_of('\t');
        gap = std::min(gap, both.find("  "));
        value = both.substr(0, gap);
        rest = gap == both.npos ? std::string_view{} : rest.substr(gap);
      } else {
        rest = {};
      }
      table_.settings.emplace_back(key, trim(value));
      text = rest;
      colon = text.find(':');
    }
  }

  void row(std::string_view text) {
    const std::vector<std::string_view> words = words_of(text);
    PerftestRow row;
    row.line = lines_.number();
    if (words.size() < columns_.size() || columns_.size() < 3) {
      notes_.add(row.line, fmt::format("row of {} fields where {} are expected: left out",
                                       words.size(), columns_.size()));
      return;
    }
    if (words.size() > columns_.size())
      notes_.add(row.line, fmt::format("row of {} fields, {} columns: the last are not used",
                                       words.size(), columns_.size()));
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!field(words[i], columns_[i], row)) {
        notes_.add(row.line, fmt::format("\"{}\" is no number: row left out", excerpt(words[i])));
        return;
      }
    }
    if (!table_.latency && perftest_unit(table_.unit) == 0) return;
    if (row.peak == 0.0) row.peak.reset();
    table_.rows.push_back(row);
  }

  static bool field(std::string_view word, const Placed& placed, PerftestRow& row) {
    const std::string_view label = placed.column->label;
    if (placed.column->kind == Kind::integer) {
      const auto value = to_integer(word);
      if (!value) return false;
      if (label == "#bytes") row.bytes = *value;
      if (label == "#iterations") row.iterations = *value;
      if (label == "#sl") row.service_level = value;
      return true;
    }
    const auto value = to_real(word);
    if (!value) return false;
    const double scale = placed.column->kind == Kind::bandwidth ? perftest_unit(placed.unit) : 1;
    if (placed.column->value != nullptr) row.*placed.column->value = *value * scale;
    return true;
  }

  void end_table() {
    if (!columns_.empty() && table_.rows.empty())
      notes_.add(table_.line, "columns without a row: cut off, or the other end prints them");
    if (!table_.rows.empty()) {
      table_.gpu = gpu_;
      classify_perftest(table_);
      tables_.push_back(std::move(table_));
    }
    table_ = {};
    columns_.clear();
    gpu_ = std::exchange(next_gpu_, {});
  }

  LineReader lines_;
  std::string file_;
  Notes notes_;
  PerftestTable table_;
  std::vector<Placed> columns_;  // empty until the table's header
  std::string gpu_, next_gpu_;   // of this run; announced before the next banner
  std::vector<PerftestTable> tables_;
  std::size_t banner_ = 0, unknown_ = 0;
};

}  // namespace

std::string_view PerftestTable::setting(std::string_view key) const {
  for (const auto& [name, value] : settings)
    if (name == key) return value;
  return {};
}

sim::Result<PerftestLog> read_perftest(std::string_view text, std::string_view name) {
  if (identify(text).kind == LogKind::perftest_json) return read_perftest_json(text, name);
  return Reader(text, name).read(text);
}

}  // namespace railyard::calibrate
