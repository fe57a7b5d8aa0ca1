#include "calibrate/readers/nccl_tests.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "calibrate/readers/log_kind.h"
#include "calibrate/readers/nccl_log_segments.h"
#include "calibrate/readers/nccl_tests_checks.h"
#include "calibrate/readers/nccl_tests_json.h"
#include "calibrate/readers/nccl_tests_rows.h"

namespace railyard::calibrate {
namespace {

using sim::Collective;

// "name_perf" as a word of its own; empty if there is none.
std::string_view program_in(std::string_view line) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || c == '_' || topologies::is_digit(c);
  };
  for (std::size_t at = line.find("_perf"); at != std::string_view::npos;
       at = line.find("_perf", at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && is_word(line[begin - 1])) --begin;
    const std::size_t end = at + 5;
    const bool ends = end == line.size() || (!is_word(line[end]) && line[end] != '.');
    if (ends && begin < at) return line.substr(begin, end - begin);
  }
  return {};
}

// "Rank  0 [Group  0] Pid 202829 on  node02 device  0 [0009:01:00] NVIDIA GH200 120GB"
std::optional<NcclTestsRank> rank_of(std::string_view line) {
  const auto rank = integer_after(line, "Rank "), device = integer_after(line, " device ");
  const std::string_view host = word_after(line, " on ");
  if (!line.starts_with("Rank ") || !rank || !device || host.empty()) return std::nullopt;
  NcclTestsRank out;
  out.rank = *rank;
  out.device = *device;
  out.host = host;
  out.group = integer_after(line, " Group ").value_or(0);
  out.pid = integer_after(line, " Pid ").value_or(-1);
  std::string_view rest = line.substr(line.find(" device "));
  if (const std::size_t open = rest.find('['); open != std::string_view::npos) {
    const std::size_t close = rest.find(']', open);
    if (close == std::string_view::npos) return std::nullopt;  // torn
    out.bus = trim(rest.substr(open + 1, close - open - 1));
    out.gpu = trim(rest.substr(close + 1));
  }
  return out;
}

// The collective a line of NCCL's own ("AllReduce: opCount ...") calls, where it is one call.
std::optional<Collective> called_by(std::string_view message) {
  static constexpr std::array kCalls{Collective::all_reduce, Collective::all_gather,
                                     Collective::reduce_scatter, Collective::broadcast,
                                     Collective::reduce};
  const std::size_t colon = message.find(": opCount");
  if (colon == std::string_view::npos) return std::nullopt;
  for (const Collective each : kCalls)
    if (message.substr(0, colon) == to_text(each)) return each;
  return std::nullopt;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view name) : lines_(text), file_(name) {}

  sim::Result<NcclTestsLog> read(std::string_view text) {
    for (std::string_view line; lines_.next(line);) physical_line(line);
    end_run();
    NcclTestsLog log{file_, std::move(tables_), {}};
    if (log.tables.empty() && empty_table_ != 0)
      return error_at(file_, empty_table_, "a table's header, but no row that can be read");
    if (log.tables.empty()) return other_log(text, file_, LogKind::nccl_tests);
    log.notes = notes_.take();
    return log;
  }

 private:
  void physical_line(std::string_view line) {
    const auto& messages = segments_.split(line, true);
    for (const nccl_log::Segment& message : messages) {
      if (const auto called = called_by(message.text)) hints_.called = called;
      if (message.text.starts_with("NCCL version ") && !message.torn)
        table_.nccl = word_after(message.text, "version");
    }
    plain(without_tag(segments_.before()), messages.empty());
  }

  void plain(std::string_view line, bool whole) {
    std::string_view text = trim(line);
    while (text.starts_with('#')) text = trim(text.substr(1));
    if (const auto columns = nccl_tests_columns(text)) return begin_table(*columns);
    if (!header(text) && !footer(text) && rows_) rows_->text(text, lines_.number(), whole);
  }

  bool header(std::string_view text) {
    if (text.starts_with("nThread ")) {
      if (table_.threads != -1 || rows_) begin_run();
      read_settings(text);
    } else if (text.starts_with("Collective test starting:")) {
      if (!table_.program.empty() || rows_) begin_run();
      table_.program = word_after(text, "starting:");
    } else if (text.starts_with("nccl-tests version ")) {
      if (rows_) begin_run();
      table_.version = word_after(text, "version");
      if (const auto code = integer_after(text, "nccl-library="))
        table_.nccl = nccl_version_of_code(*code);
    } else if (text.starts_with("rccl-tests: Version ")) {
      table_.version = word_after(text, "Version");
    } else if (text.starts_with("NCCL version ") || text.starts_with("RCCL version ")) {
      table_.nccl = word_after(text, "version");
    } else if (auto rank = rank_of(text)) {
      if (rows_) begin_run();
      rank->line = lines_.number();
      segments_.know_host(rank->host);
      table_.ranks.push_back(std::move(*rank));
    } else {
      if (const std::string_view program = program_in(text); !program.empty())
        (rows_ ? next_command_ : hints_.command) = program;
      return false;
    }
    return true;
  }

  bool footer(std::string_view text) {
    if (text.starts_with("Out of bounds values")) {
      table_.out_of_bounds = integer_after(text, ":");
    } else if (text.starts_with("Avg bus bandwidth")) {
      table_.average_busbw = to_real(word_after(text, ":"));
    } else if (text.starts_with("Collective test concluded:")) {
      if (table_.program.empty()) table_.program = word_after(text, "concluded:");
    } else {
      return false;
    }
    return true;
  }

  void read_settings(std::string_view text) {
    const auto number = [&](std::string_view key) { return integer_after(text, key).value_or(-1); };
    table_.threads = number("nThread");
    table_.gpus_per_thread = number("nGpus");
    table_.min_bytes = number("minBytes");
    table_.max_bytes = number("maxBytes");
    (text.find("(factor)") != text.npos ? table_.step_factor : table_.step_bytes) = number("step:");
    table_.warmup = number("warmup iters:");
    table_.aggregated = number("agg iters:");
    table_.graph = number("graph:");
    if (const auto checked = integer_after(text, "validation:")) table_.validated = *checked != 0;
    // "iters:" also ends the two other keys.
    for (std::size_t at = text.find(" iters:"); at != text.npos;
         at = text.find(" iters:", at + 1)) {
      const std::string_view before = text.substr(0, at);
      if (!before.ends_with("warmup") && !before.ends_with("agg"))
        table_.iterations = integer_after(text.substr(at), " iters:").value_or(-1);
    }
  }

  void begin_table(const NcclTestsColumns& columns) {
    if (rows_) begin_run();
    rows_.emplace(columns, notes_);
    table_.line = lines_.number();
    table_.host_times = columns.host_times;
    table_.error_column = columns.error_column;
  }

  void begin_run() {
    end_run();
    table_ = {};
    hints_ = {};
    hints_.command = std::exchange(next_command_, {});
  }

  void end_run() {
    if (!rows_) return;
    table_.rows = rows_->finish();
    rows_.reset();
    if (table_.rows.empty()) {
      empty_table_ = table_.line;
      notes_.add(table_.line, "a table without rows");
      return;
    }
    hints_.file_name = file_;
    complete_nccl_tests(table_, hints_, notes_);
    check_nccl_tests(table_, notes_);
    tables_.push_back(std::move(table_));
  }

  LineReader lines_;
  std::string file_;
  nccl_log::Segmenter segments_;
  Notes notes_;
  NcclTestsTable table_;               // of the run under way
  std::optional<NcclTestsRows> rows_;  // once its columns are known
  NcclTestsHints hints_;
  std::string next_command_;
  std::vector<NcclTestsTable> tables_;
  std::size_t empty_table_ = 0;
};

}  // namespace

sim::Result<NcclTestsLog> read_nccl_tests(std::string_view text, std::string_view name) {
  if (identify(text).kind == LogKind::nccl_tests_json) return read_nccl_tests_json(text, name);
  return Reader(text, name).read(text);
}

}  // namespace railyard::calibrate
