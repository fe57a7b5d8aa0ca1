// What the readers of measurement logs share: numbers as the tools print them, the tags that
// launchers put before every line, and the list of notes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/readers/measurement.h"
#include "topologies/import/text_lines.h"

namespace railyard::calibrate {

using topologies::error_at;
using topologies::excerpt;
using topologies::LineReader;
using topologies::trim;
using topologies::words_of;

// The whole text is a finite number, in plain or e-notation.
std::optional<double> to_real(std::string_view text);
// The whole text is an integer that fits.
std::optional<std::int64_t> to_integer(std::string_view text);

// The number that follows `key` (and blanks) in the text: integer_after(line, "nThread") == 8.
std::optional<std::int64_t> integer_after(std::string_view text, std::string_view key);
// The word that follows `key`; empty if there is none.
std::string_view word_after(std::string_view text, std::string_view key);

// The line without the tags of launchers: "[1,0]<stdout>:", "[1,0]<stdout> ", "(worker pid=7) ",
// "12: " (srun -l), and without ANSI sequences (`clean` then holds the text).
std::string_view without_tag(std::string_view line);
std::string without_ansi(std::string_view line);

// Distinct names, in order of appearance.
void add_distinct(std::vector<std::string>& names, std::string_view name);

// Notes, of which a broken file could cause millions: the first kMost are kept, then counted.
class Notes {
 public:
  static constexpr std::size_t kMost = 200;

  void add(std::size_t line, std::string text);
  // The notes, and one more that counts those left out.
  std::vector<Note> take();

 private:
  std::vector<Note> notes_;
  std::size_t left_out_ = 0;
};

}  // namespace railyard::calibrate
