#include "topologies/import/smi_topo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "topologies/import/text_lines.h"

namespace railyard::topologies {
namespace {

using sim::Result;

constexpr std::size_t kMaxPrefixWords = 16;  // of a log collector, before the label of a row
constexpr std::size_t kMaxNotes = 20;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.' ||
         c == '-' || c == ':';
}

// Terminal codes out: ESC [ ... letter, and what is left of one whose ESC was lost in a paste.
std::string without_codes(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool escape = line[i] == '\x1b';
    const std::size_t code = escape ? i + 1 : i;
    if (code < line.size() && line[code] == '[') {
      std::size_t end = code + 1;
      while (end < line.size() && (is_digit(line[end]) || line[end] == ';')) ++end;
      const bool known =
          escape ? end < line.size() : end > code + 1 && end < line.size() && line[end] == 'm';
      if (known) {
        i = end;
        continue;
      }
    }
    if (!escape) out += line[i];
  }
  return out;
}

struct Word {
  std::string_view text;
  SmiPath path;
};
// SOC and PSB are the names of older drivers: a socket-level link, a switch on the board.
constexpr std::array<Word, 8> kPaths{{{"SYS", SmiPath::sys},
                                      {"SOC", SmiPath::sys},
                                      {"NODE", SmiPath::node},
                                      {"PHB", SmiPath::phb},
                                      {"PXB", SmiPath::pxb},
                                      {"PIX", SmiPath::pix},
                                      {"PSB", SmiPath::pix},
                                      {"N/A", SmiPath::unknown}}};

// One cell at the start of `rest`, which may be fused with what follows it.
std::optional<SmiCell> take_cell(std::string_view& rest) {
  for (const Word& word : kPaths)
    if (rest.starts_with(word.text)) {
      rest.remove_prefix(word.text.size());
      return SmiCell{word.path, 0};
    }
  if (rest.starts_with("X") && (rest.size() == 1 || !is_name_char(rest[1]))) {
    rest.remove_prefix(1);
    return SmiCell{SmiPath::self, 0};
  }
  if (!rest.starts_with("NV") || rest.size() < 3 || !is_digit(rest[2])) return std::nullopt;
  std::size_t digits = rest.size() > 3 && is_digit(rest[3]) ? 2 : 1;
  // "NV10-7" is NV1 fused with the CPUs 0-7: no list starts with '-'.
  if (digits == 2 && rest.size() > 4 && (rest[4] == '-' || rest[4] == ',')) digits = 1;
  const auto count = to_number(rest.substr(2, digits));
  rest.remove_prefix(2 + digits);
  return SmiCell{SmiPath::nvlink, static_cast<std::uint8_t>(*count)};
}

void skip_blanks(std::string_view& rest) {
  while (!rest.empty() && is_blank(rest.front())) rest.remove_prefix(1);
}

struct Header {
  std::vector<std::string> labels;
  std::uint32_t gpus = 0;
  bool cpus = false;
  bool numa = false;
  bool gpu_numa = false;
  [[nodiscard]] std::size_t columns() const {
    return std::size_t{cpus} + std::size_t{numa} + std::size_t{gpu_numa};
  }
};

// "GPU12" or "NIC3" at the start of `rest`.
std::string_view take_numbered(std::string_view& rest) {
  if (!rest.starts_with("GPU") && !rest.starts_with("NIC")) return {};
  std::size_t end = 3;
  while (end < rest.size() && is_digit(rest[end])) ++end;
  if (end == 3) return {};
  const std::string_view label = rest.substr(0, end);
  rest.remove_prefix(end);
  return label;
}

// A device name such as mlx5_bond_0. It ends before the next column where they are fused:
// "mlx5_0mlx5_1", "mlx5_8CPU Affinity".
std::string_view take_device(std::string_view& rest) {
  std::size_t end = 0;
  while (end < rest.size() && is_name_char(rest[end])) ++end;
  std::string_view name = rest.substr(0, end);
  for (const std::string_view next : {"CPU", "mlx5_", "mlx4_"})
    if (const std::size_t at = name.find(next, 1); at != std::string_view::npos)
      name = name.substr(0, at);
  std::string_view copy = name;
  if (name.empty() || is_digit(name[0]) || take_cell(copy).has_value()) return {};
  // A word of a sentence has no digit.
  if (std::none_of(name.begin(), name.end(), is_digit)) return {};
  rest.remove_prefix(name.size());
  return name;
}

bool take_column_name(std::string_view& rest, Header& header) {
  const std::array<std::pair<std::string_view, bool*>, 3> names{
      {{"CPU Affinity", &header.cpus},
       {"NUMA Affinity", &header.numa},
       {"GPU NUMA ID", &header.gpu_numa}}};
  for (const auto& entry : names)
    if (rest.starts_with(entry.first)) {
      rest.remove_prefix(entry.first.size());
      *entry.second = true;
      return true;
    }
  return false;
}

// The labels from `rest` on, or nothing if this is no header.
std::optional<Header> header_at(std::string_view rest) {
  Header header;
  for (skip_blanks(rest); !rest.empty(); skip_blanks(rest)) {
    if (take_column_name(rest, header)) continue;
    if (header.columns() > 0) return std::nullopt;
    std::string_view label = take_numbered(rest);
    if (label.empty()) label = take_device(rest);
    if (label.empty()) return std::nullopt;
    if (label.starts_with("GPU")) {
      if (header.gpus != header.labels.size()) return std::nullopt;
      ++header.gpus;
    }
    // The caller refuses more than kMaxSmiLabels.
    if (header.labels.size() <= kMaxSmiLabels) header.labels.emplace_back(label);
  }
  const bool enough = header.labels.size() > 1 || header.columns() > 0;
  return header.gpus > 0 && enough ? std::optional(std::move(header)) : std::nullopt;
}

std::optional<Header> find_header(std::string_view line) {
  for (std::size_t at = line.find("GPU"); at != std::string_view::npos;
       at = line.find("GPU", at + 3))
    if (at + 3 < line.size() && is_digit(line[at + 3]) && (at == 0 || !is_name_char(line[at - 1])))
      return header_at(line.substr(at));  // a later one would only lack columns
  return std::nullopt;
}

// The column of the label that a row starts with, behind what a log collector put before it.
std::optional<std::size_t> take_label(std::string_view& rest,
                                      const std::unordered_map<std::string, std::size_t>& labels) {
  std::string_view left = rest;
  for (std::size_t i = 0; i < kMaxPrefixWords; ++i) {
    const std::string_view word = take_word(left);
    if (word.empty()) break;
    if (word.size() > 64) continue;
    if (const auto found = labels.find(std::string(word)); found != labels.end()) {
      rest = left;
      return found->second;
    }
  }
  return std::nullopt;
}

bool is_cpu_list(std::string_view word) {
  return !word.empty() && is_digit(word.front()) &&
         std::all_of(word.begin(), word.end(),
                     [](char c) { return is_digit(c) || c == '-' || c == ','; });
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : lines_(text), name_(name) {}

  Result<SmiMatrix> parse() {
    RAILYARD_TRY(find_start());
    RAILYARD_TRY(read_rows());
    read_legend();
    return std::move(out_);
  }

 private:
  [[nodiscard]] sim::Error error(std::string message) const {
    return error_at(name_, lines_.number(), std::move(message));
  }
  void note(std::string text) {
    if (out_.notes.size() < kMaxNotes) out_.notes.push_back(std::move(text));
  }

  bool next() {
    std::string_view raw;
    if (!lines_.next(raw)) return false;
    line_ = without_codes(raw);
    return true;
  }

  // Leaves the first row below the header in line_.
  Result<void> find_start() {
    std::size_t seen = 0;
    bool pending = false;
    while (next()) {
      std::string_view rest = line_;
      if (trim(line_).empty()) continue;
      auto header = find_header(line_);
      if (!header && pending && take_label(rest, columns_)) return {};
      pending = header.has_value();
      if (!pending) continue;
      seen = lines_.number();
      if (header->labels.size() > kMaxSmiLabels)
        return error(fmt::format("more than {} columns", kMaxSmiLabels));
      header_ = std::move(*header);
      RAILYARD_TRY(take_header());
    }
    if (seen != 0)
      return error_at(name_, seen,
                      "this header of columns is not followed by a row for any of them");
    return sim::bad_input(
        "no matrix of `nvidia-smi topo -m`: no line has the columns GPU0, GPU1, ...", name_);
  }

  Result<void> take_header() {
    out_.labels = header_.labels;
    out_.gpus = header_.gpus;
    columns_.clear();
    for (std::size_t i = 0; i < out_.labels.size(); ++i)
      if (!columns_.emplace(out_.labels[i], i).second)
        return error(fmt::format("the column {} is there twice", excerpt(out_.labels[i])));
    return {};
  }

  Result<void> read_rows() {
    const std::size_t n = out_.labels.size();
    out_.cells.resize(n * n);
    out_.affinity.resize(out_.gpus);
    std::vector<bool> seen(n);
    bool more = true;
    for (std::size_t rows = 0; rows < n; more = next()) {
      if (more && trim(line_).empty()) continue;
      std::string_view rest = line_;
      const auto row = more ? take_label(rest, columns_) : std::nullopt;
      if (!row)
        return error(fmt::format("the row {} is missing: the matrix ends after {} of {} rows",
                                 first_missing(seen), rows, n));
      if (seen[*row]) return error(fmt::format("the row {} is there twice", out_.labels[*row]));
      seen[*row] = true;
      RAILYARD_TRY(read_cells(*row, rest));
      if (*row < out_.gpus) read_affinity(*row, rest);
      ++rows;
    }
    return {};
  }

  [[nodiscard]] std::string first_missing(const std::vector<bool>& seen) const {
    const auto at = std::find(seen.begin(), seen.end(), false) - seen.begin();
    return excerpt(out_.labels[static_cast<std::size_t>(at)]);
  }

  Result<void> read_cells(std::size_t row, std::string_view& rest) {
    const std::size_t n = out_.labels.size();
    for (std::size_t column = 0; column < n; ++column) {
      skip_blanks(rest);
      const std::string where =
          fmt::format("row {}, column {}", excerpt(out_.labels[row]), excerpt(out_.labels[column]));
      if (rest.empty())
        return error(fmt::format("{}: the row ends after {} of {} cells", where, column, n));
      const auto cell = take_cell(rest);
      if (!cell) return error(where + ": " + not_a_cell(rest));
      if ((cell->path == SmiPath::self) != (row == column))
        return error(where + (row == column ? ": X is expected on the diagonal"
                                            : ": X stands off the diagonal"));
      out_.cells[row * n + column] = *cell;
    }
    return {};
  }

  static std::string not_a_cell(std::string_view rest) {
    const std::string_view word = take_word(rest);
    for (const std::string_view p2p : {"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"})
      if (word == p2p)
        return fmt::format(
            "'{}' is a word of `nvidia-smi topo -p2p`; the output of `topo -m` is "
            "expected",
            word);
    return fmt::format("'{}' is no path type (X, NV#, PIX, PXB, PHB, NODE, SYS, N/A)",
                       excerpt(word, 20));
  }

  // Blank columns leave fewer words than columns: told apart by what they look like.
  void read_affinity(std::size_t gpu, std::string_view rest) {
    std::vector<std::string> words;
    for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
      if (!words.empty() && words.back().ends_with(',')) {
        words.back() += word;
      } else {
        words.emplace_back(word);
      }
    }
    const std::size_t columns = header_.columns();
    if (words.size() > columns) {
      note(fmt::format("row {}: '{}' behind the last column is ignored", out_.labels[gpu],
                       excerpt(words[columns])));
      words.resize(columns);
    }
    SmiAffinity& out = out_.affinity[gpu];
    std::vector<std::string*> targets;
    if (header_.cpus) targets.push_back(&out.cpus);
    if (header_.numa) targets.push_back(&out.numa);
    if (header_.gpu_numa) targets.push_back(&out.gpu_numa);
    const bool short_row = words.size() < columns;
    if (short_row && header_.gpu_numa && !words.empty() && words.back() == "N/A") {
      out.gpu_numa = "N/A";
      words.pop_back();
    }
    if (short_row && header_.cpus && !words.empty() && !is_cpu_list(words.front()))
      targets.erase(targets.begin());
    for (std::size_t i = 0; i < words.size() && i < targets.size(); ++i) *targets[i] = words[i];
  }

  void read_legend() {
    std::map<std::string, std::string> names;
    bool inside = false;
    for (bool more = true; more; more = next()) {
      if (find_header(line_) && lines_.number() > 0 && !inside) {
        note(fmt::format("line {}: another matrix is ignored", lines_.number()));
      }
      if (line_.find("NIC Legend") != std::string::npos) inside = true;
      if (inside) read_legend_line(names);
    }
    for (std::size_t i = out_.gpus; i < out_.labels.size(); ++i) {
      const std::string& label = out_.labels[i];
      const auto found = names.find(label);
      const bool numbered = label.starts_with("NIC");
      if (numbered && found == names.end() && !names.empty())
        note(fmt::format("the legend does not say what {} is", label));
      out_.nic_devices.push_back(found != names.end() ? found->second : numbered ? "" : label);
    }
  }

  // "  NIC3: mlx5_3", behind a log collector's words.
  void read_legend_line(std::map<std::string, std::string>& names) {
    std::string_view rest = line_;
    for (std::size_t i = 0; i < kMaxPrefixWords; ++i) {
      std::string_view word = take_word(rest);
      if (word.size() < 5 || word.size() > 16 || !word.ends_with(':')) continue;
      word.remove_suffix(1);
      const std::string label(word);
      const std::string_view device = take_word(rest);
      if (columns_.count(label) > 0 && !device.empty()) names.emplace(label, excerpt(device, 64));
      return;
    }
  }

  LineReader lines_;
  const std::string& name_;
  std::string line_;
  Header header_;
  std::unordered_map<std::string, std::size_t> columns_;
  SmiMatrix out_;
};

}  // namespace

Result<SmiMatrix> parse_smi_topo(std::string_view text, const std::string& name) {
  return Parser(text, name).parse();
}

bool looks_like_smi_topo(std::string_view text) {
  LineReader lines(text.substr(0, std::size_t{1} << 20));
  for (std::string_view line; lines.next(line);)
    if (line.size() < (1 << 16) && line.find("GPU") != std::string_view::npos &&
        find_header(without_codes(line)))
      return true;
  return false;
}

std::string summary(const SmiMatrix& matrix) {
  std::map<std::pair<SmiPath, std::uint8_t>, std::size_t> counts;
  for (std::size_t a = 0; a < matrix.gpus; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const SmiCell cell = matrix.cell(b, a);
      ++counts[{cell.path, cell.nvlinks}];
    }
  std::string pairs;
  for (const auto& [cell, count] : counts) {
    const std::string links = cell.first == SmiPath::nvlink ? std::to_string(cell.second) : "";
    pairs += fmt::format("{}{}{} x{}", pairs.empty() ? "" : ", ", sim::to_text(cell.first), links,
                         count);
  }
  return fmt::format("nvidia-smi topo: {} GPU{}, {} NIC{}{}", matrix.gpus,
                     matrix.gpus == 1 ? "" : "s", matrix.nics(), matrix.nics() == 1 ? "" : "s",
                     pairs.empty() ? "" : "; GPU pairs " + pairs);
}

}  // namespace railyard::topologies
