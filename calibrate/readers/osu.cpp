#include "calibrate/readers/osu.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "calibrate/readers/log_kind.h"
#include "calibrate/readers/log_text.h"
#include "calibrate/readers/osu_command.h"

namespace railyard::calibrate {
namespace {

using sim::Collective;

struct Title {
  std::string_view part;  // of the title, in the order of trust
  Collective collective;
};
constexpr std::array kTitles{Title{"Allreduce", Collective::all_reduce},
                             Title{"Allgather", Collective::all_gather},
                             Title{"Reduce_scatter", Collective::reduce_scatter},
                             Title{"All-to-All", Collective::all_to_all},
                             Title{"Alltoall", Collective::all_to_all},
                             Title{"Broadcast", Collective::broadcast},
                             Title{"Reduce", Collective::reduce},
                             Title{"Gather", Collective::gather},
                             Title{"Scatter", Collective::scatter}};

bool holds(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Column labels are two blanks apart at least: "Avg Latency(us)   Min Latency(us)".
std::vector<std::string> labels_of(std::string_view text) {
  std::vector<std::string> labels;
  while (!(text = trim(text)).empty()) {
    const std::size_t gap = std::min(text.find("  "), text.find('\t'));
    labels.emplace_back(trim(text.substr(0, gap)));
    text = gap == text.npos ? std::string_view{} : text.substr(gap);
  }
  return labels;
}

OsuFigure figure_of(const OsuTable& table) {
  if (holds(table.title, "Non-blocking") || table.columns.empty()) return OsuFigure::other;
  const std::string_view first = table.columns.front();
  if (holds(first, "atency") && holds(first, "us")) return OsuFigure::latency;
  if (!holds(first, "MB/s")) return OsuFigure::other;
  if (holds(table.title, "Bi-Directional") || holds(table.title, "Bibw"))
    return OsuFigure::both_ways;
  if (holds(table.title, "Multi")) return OsuFigure::message_rate;
  return OsuFigure::bandwidth;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view name) : lines_(text), file_(name) {}

  sim::Result<OsuLog> read(std::string_view text) {
    for (std::string_view line; lines_.next(line);) this->line(trim(without_tag(line)));
    end_table();
    if (tables_.empty() && empty_ != 0)
      return error_at(file_, empty_,
                      "an OSU table without a row: the program crashed, or the log "
                      "is cut off");
    if (tables_.empty()) return other_log(text, file_, LogKind::osu);
    return OsuLog{file_, std::move(tables_), notes_.take()};
  }

 private:
  void line(std::string_view text) {
    if (!text.starts_with('#')) {
      if (!text.empty() && topologies::is_digit(text.front()) && in_table_) return row(text);
      if (const OsuCommand command = osu_command(text); !command.program.empty())
        command_ = command;
      else
        trouble(text);
      return;
    }
    text = trim(text.substr(1));
    if (text.starts_with("OSU ")) return title(text.substr(4));
    if (text.starts_with("Datatype:")) table_.datatype = word_after(text, "Datatype:");
    if (text.starts_with("Send Buffer on")) buffers(text);
    if (text == "Size" || text.starts_with("Size ") || text.starts_with("Size\t"))
      columns(text.substr(4));
  }

  void title(std::string_view text) {
    end_table();
    const std::size_t version = text.rfind(" v");
    table_.title = trim(text.substr(0, version));
    if (version != text.npos) table_.version = trim(text.substr(version + 2));
    if (const std::size_t dash = table_.title.find("MPI-"); dash != std::string::npos)
      table_.accelerator = word_after(table_.title, "MPI-");
    table_.program = command_.program;
    table_.placement = command_.placement;
    table_.ranks = command_.ranks;
    table_.nodes = command_.nodes;
  }

  // "Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)"
  void buffers(std::string_view text) {
    std::string placement;
    for (std::size_t open = text.find('('); open != text.npos; open = text.find('(', open + 1))
      placement += (placement.empty() ? "" : " ") + std::string(text.substr(open + 1, 1));
    table_.placement = placement;
  }

  void columns(std::string_view labels) {
    if (!table_.rows.empty()) {  // the same program's columns again, without a title
      OsuTable next = table_;
      next.rows.clear();
      end_table();
      table_ = std::move(next);
    }
    in_table_ = true;
    table_.line = lines_.number();
    table_.columns = labels_of(labels);
    validates_ = !table_.columns.empty() && table_.columns.back() == "Validation";
    if (validates_) table_.columns.pop_back();
    table_.figure = figure_of(table_);
    for (const Title& each : kTitles)
      if (!table_.collective && holds(table_.title, each.part)) table_.collective = each.collective;
  }

  void row(std::string_view text) {
    const std::vector<std::string_view> words = words_of(text);
    const std::size_t expected = 1 + table_.columns.size() + (validates_ ? 1 : 0);
    const auto bytes = to_integer(words[0]);
    if (!bytes || words.size() != expected) {
      notes_.add(lines_.number(),
                 fmt::format("not a row of this table, left out: \"{}\"", excerpt(text, 60)));
      return;
    }
    OsuRow row;
    row.bytes = *bytes;
    row.line = lines_.number();
    for (std::size_t i = 0; i < table_.columns.size(); ++i)
      row.values.push_back(to_real(words[1 + i]));
    if (validates_) row.valid = words.back() == "Pass";
    check(row);
    table_.rows.push_back(std::move(row));
  }

  void check(const OsuRow& row) {
    if (row.valid == false)
      notes_.add(row.line, fmt::format("validation failed at {} bytes: not used", row.bytes));
    if (!row.values.empty() && row.values[0].value_or(0) <= 0)
      notes_.add(row.line, fmt::format("no figure above 0 at {} bytes: not used", row.bytes));
    if (!table_.rows.empty() && row.bytes < table_.rows.back().bytes)
      notes_.add(row.line, fmt::format("sizes go down, from {} to {}: another run's rows?",
                                       table_.rows.back().bytes, row.bytes));
  }

  void trouble(std::string_view text) {
    for (const char* sign : {"Segmentation fault", "error:", "Abort", "ABORT", "Terminated"})
      if (holds(text, sign)) {
        notes_.add(lines_.number(), fmt::format("trouble: {}", excerpt(text, 100)));
        return;
      }
  }

  void end_table() {
    if (in_table_ && table_.rows.empty()) {
      notes_.add(table_.line, fmt::format("{}: no row", excerpt(table_.title, 80)));
      if (empty_ == 0) empty_ = table_.line;
    }
    if (!table_.rows.empty()) {
      if (table_.figure == OsuFigure::other)
        notes_.add(table_.line, fmt::format("{}: columns that are kept, but not measured",
                                            excerpt(table_.title, 80)));
      if (whole_is_unknown())
        notes_.add(table_.line, fmt::format("{}: the log does not say how many ranks took part, so "
                                            "the whole buffer's size is unknown: not used",
                                            excerpt(table_.title, 80)));
      tables_.push_back(std::move(table_));
    }
    table_ = {};
    in_table_ = validates_ = false;
  }

  [[nodiscard]] bool whole_is_unknown() const {
    return table_.ranks <= 0 && table_.figure == OsuFigure::latency &&
           (table_.collective == Collective::all_gather ||
            table_.collective == Collective::all_to_all ||
            table_.collective == Collective::gather || table_.collective == Collective::scatter);
  }

  LineReader lines_;
  std::string file_;
  Notes notes_;
  OsuCommand command_;  // the last one seen
  OsuTable table_;
  bool in_table_ = false, validates_ = false;
  std::vector<OsuTable> tables_;
  std::size_t empty_ = 0;
};

// The whole buffer's size of a collective; absent if it cannot be told.
std::optional<std::int64_t> whole_bytes(const OsuTable& table, std::int64_t bytes) {
  switch (*table.collective) {
    case Collective::all_gather:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
      if (table.ranks <= 0 || bytes > INT64_MAX / table.ranks) return std::nullopt;
      return bytes * table.ranks;
    default: return bytes;
  }
}

std::optional<Measurement> measurement_of(const OsuTable& table, const OsuRow& row) {
  if (table.figure == OsuFigure::other || row.valid == false || row.bytes <= 0 ||
      row.values[0].value_or(0) <= 0)
    return std::nullopt;
  Measurement m;
  m.test = table.program.empty() ? table.title : table.program;
  m.ranks = table.ranks;
  m.nodes = table.nodes;
  m.datatype = table.datatype;
  m.line = row.line;
  m.bytes = row.bytes;
  const double value = *row.values[0];
  if (table.figure == OsuFigure::latency)
    m.us = value;
  else
    m.gb_per_s = value / 1e3;
  if (table.collective) {
    m.kind = MeasurementKind::collective;
    m.collective = table.collective;
    m.bytes = whole_bytes(table, row.bytes);
    return m.bytes ? std::optional(m) : std::nullopt;
  }
  m.kind = MeasurementKind::message;
  m.shared = table.figure == OsuFigure::message_rate;
  m.pattern = table.figure == OsuFigure::latency     ? MessagePattern::ping_pong
              : table.figure == OsuFigure::both_ways ? MessagePattern::bidirectional
                                                     : MessagePattern::stream;
  return m;
}

}  // namespace

sim::Result<OsuLog> read_osu(std::string_view text, std::string_view name) {
  return Reader(text, name).read(text);
}

std::vector<Measurement> measurements(const OsuLog& log) {
  std::vector<Measurement> all;
  for (const OsuTable& table : log.tables)
    for (const OsuRow& row : table.rows)
      if (auto m = measurement_of(table, row)) {
        m->file = log.source;
        all.push_back(std::move(*m));
      }
  return all;
}

}  // namespace railyard::calibrate
