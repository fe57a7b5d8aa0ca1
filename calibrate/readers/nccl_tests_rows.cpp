#include "calibrate/readers/nccl_tests_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace railyard::calibrate {
namespace {

// A blank half is 32 characters wide; a half that is there begins at most 10 after the field
// before.
constexpr std::ptrdiff_t kBlankHalf = 24;

constexpr std::array<std::string_view, 8> kOperators{"sum", "prod",   "max", "min",
                                                     "avg", "mulsum", "all", "none"};

bool is_type(std::string_view word) {
  if (word.size() < 3 || std::isalpha(static_cast<unsigned char>(word.front())) == 0) return false;
  static constexpr std::array<std::string_view, 6> kStarts{"int",   "uint", "half",
                                                           "float", "doub", "bfloat"};
  const auto starts = [&](std::string_view start) { return word.starts_with(start); };
  return std::any_of(kStarts.begin(), kStarts.end(), starts) || word.starts_with("fp8") ||
         word.starts_with("f8e");
}

bool is_date(std::string_view word) {
  return word.size() == 10 && word[4] == '-' && word[7] == '-' && topologies::is_digit(word[0]);
}
bool is_clock(std::string_view word) {
  return word.size() == 8 && word[2] == ':' && word[5] == ':' && topologies::is_digit(word[0]);
}

bool is_field(std::string_view word) {
  return to_real(word) || word == "N/A" || word == "inf" || word == "nan" || word == "-nan" ||
         is_date(word) || is_clock(word) || is_type(word) ||
         std::find(kOperators.begin(), kOperators.end(), word) != kOperators.end();
}

bool begins_row(const std::vector<std::string_view>& words) {
  return words.size() >= 3 && to_integer(words[0]).value_or(-1) >= 0 &&
         to_integer(words[1]).value_or(-1) >= 0 && is_type(words[2]);
}

}  // namespace

std::optional<NcclTestsColumns> nccl_tests_columns(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 7 || words[0] != "size" || words[1] != "count" || words[2] != "type")
    return std::nullopt;
  NcclTestsColumns columns;
  bool algbw = false;
  for (const std::string_view word : words) {
    algbw = algbw || word == "algbw";
    columns.redop = columns.redop || word == "redop";
    columns.root = columns.root || word == "root";
    columns.per_iteration = columns.per_iteration || word == "i_min";
    columns.timestamp = columns.timestamp || word == "timestamp";
    columns.host_times = columns.host_times || word == "cputime";
    columns.error_column = columns.error_column || word == "error";
  }
  if (!algbw) return std::nullopt;
  return columns;
}

void NcclTestsRows::text(std::string_view text, std::size_t line, bool whole) {
  const std::vector<std::string_view> words = words_of(text);
  const bool begins = begins_row(words);
  if (begins) {
    close();
    line_ = line;
  }
  if (fields_.empty() && !begins) {
    if (!words.empty() && to_integer(words[0]) && words.size() >= 3)
      notes_.add(line, fmt::format("not a row of this table, left out: \"{}\"", excerpt(text)));
    return;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_field(words[i])) {  // another program's output follows the piece
      whole = false;
      break;
    }
    if (fields_.size() == columns_.before_halves() && i > 0)
      far_half_ = words[i].data() - (words[i - 1].data() + words[i - 1].size()) >= kBlankHalf;
    fields_.emplace_back(words[i]);
  }
  if (whole && fields_.size() >= columns_.before_halves() + columns_.half()) close();
}

void NcclTestsRows::close() {
  if (!fields_.empty())
    if (std::optional<NcclTestsRow> row = row_of_fields()) rows_.push_back(std::move(*row));
  fields_.clear();
  far_half_ = false;
}

std::vector<NcclTestsRow> NcclTestsRows::finish() {
  close();
  return std::move(rows_);
}

std::optional<NcclTestsRow> NcclTestsRows::row_of_fields() {
  if (fields_.size() >= 2 && is_date(fields_[fields_.size() - 2]) && is_clock(fields_.back()))
    fields_.resize(fields_.size() - 2);
  const std::size_t before = columns_.before_halves(), half = columns_.half();
  if (fields_.size() != before + half && fields_.size() != before + 2 * half) {
    notes_.add(line_,
               fmt::format("row of {} bytes left out: {} fields where {} or {} are expected",
                           fields_.front(), fields_.size(), before + half, before + 2 * half));
    return std::nullopt;
  }
  NcclTestsRow row;
  row.bytes = *to_integer(fields_[0]);
  row.count = *to_integer(fields_[1]);
  row.datatype = fields_[2];
  row.line = line_;
  std::size_t at = 3;
  if (columns_.redop && fields_[at++] != "none") row.redop = fields_[at - 1];
  if (columns_.root) {
    const auto root = to_integer(fields_[at++]);
    if (root && *root >= 0) row.root = root;
  }
  if (fields_.size() == before + half) {
    (far_half_ ? row.in_place : row.out_of_place) = half_at(before);
  } else {
    row.out_of_place = half_at(before);
    row.in_place = half_at(before + half);
  }
  return row;
}

std::optional<NcclTestsHalf> NcclTestsRows::half_at(std::size_t first) {
  const auto us = to_real(fields_[first]), algbw = to_real(fields_[first + 1]),
             busbw = to_real(fields_[first + 2]);
  if (!us || !algbw || !busbw) {
    notes_.add(line_, fmt::format("row of {} bytes: \"{} {} {}\" is no time and bandwidth",
                                  fields_.front(), fields_[first], fields_[first + 1],
                                  fields_[first + 2]));
    return std::nullopt;
  }
  NcclTestsHalf half{*us, *algbw, *busbw, to_real(fields_[first + 3]), std::nullopt};
  const double bytes = static_cast<double>(*to_integer(fields_[0]));
  if (fields_[first].find_first_of("eE") != std::string::npos && *algbw >= 1 && bytes > 0)
    half.us = bytes / *algbw / 1e3;  // two digits of time, four and more of bandwidth
  if (columns_.per_iteration) {
    const auto value = [&](std::size_t i) { return to_real(fields_[first + i]).value_or(0); };
    half.iterations = NcclTestsIterations{value(4), value(5), value(6), value(7)};
  }
  return half;
}

}  // namespace railyard::calibrate
