// What every reader of a tool's text output needs: numbered lines, words, numbers, and the excerpt
// of foreign text that an error message may carry. All views point into the text read.
//
//   LineReader lines(text);
//   for (std::string_view line; lines.next(line);) ... lines.number() ...
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"

namespace railyard::topologies {

class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) {}

  // The next line, without its line end; false at the end of the text.
  bool next(std::string_view& line);
  [[nodiscard]] std::size_t number() const { return number_; }  // of that line, from 1

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim(std::string_view text);

// Cuts the first word off; empty at the end.
std::string_view take_word(std::string_view& rest);
// At most `limit` words; the last is then the rest of the line.
std::vector<std::string_view> words_of(std::string_view line, std::size_t limit = SIZE_MAX);

// The whole text is a number of this base ("0x" is accepted before hexadecimal ones).
std::optional<std::uint64_t> to_number(std::string_view text, int base = 10);

// Unprintable bytes as '?', shortened to `limit` characters with "...".
std::string excerpt(std::string_view text, std::size_t limit = 40);

sim::Error error_at(const std::string& name, std::size_t line, std::string message);

// "a, b, c and 4 more"
std::string list_of(const std::vector<std::string>& items, std::size_t most = 5);

}  // namespace railyard::topologies
