// What the tests of the log readers share.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/readers/measurement.h"
#include "sim/result.h"
#include "tests/paths.h"
#include "tests/skip.h"

namespace railyard::tests::readers {

inline std::string samples() { return std::string(RAILYARD_SHARED_DIR) + "/samples"; }
inline bool has_samples() { return std::filesystem::exists(samples() + "/perf"); }

inline std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in.good(), path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The sample "perf/004-..." by the beginning of its name: "perf/004".
inline std::string sample_path(const std::string& start) {
  const std::size_t slash = start.find('/');
  for (const auto& entry :
       std::filesystem::directory_iterator(samples() + "/" + start.substr(0, slash)))
    if (entry.path().filename().string().starts_with(start.substr(slash + 1)))
      return entry.path().string();
  FAIL("no such sample: " << start);
  return {};
}

// read(text, name), which must succeed.
template <typename Read>
auto good(Read read, std::string_view text, std::string_view name = "test.log") {
  auto result = read(text, name);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? std::string() : result.error().text()));
  return std::move(result).value();
}

template <typename Read>
auto sample(Read read, const std::string& start) {
  const std::string path = sample_path(start);
  return good(read, text_of(path), path);
}

template <typename Read>
std::string error_of(Read read, std::string_view text, std::string_view name = "test.log") {
  const auto result = read(text, name);
  REQUIRE_FALSE(result.ok());
  return result.error().text();
}

// "12: text" of every note, one a line; notes on the file as a whole have line 0.
inline std::string notes_text(const std::vector<calibrate::Note>& notes) {
  std::string text;
  for (const calibrate::Note& note : notes)
    text += std::to_string(note.line) + ": " + note.text + "\n";
  return text;
}

inline bool mentions(const std::vector<calibrate::Note>& notes, const std::string& text) {
  return notes_text(notes).find(text) != std::string::npos;
}

}  // namespace railyard::tests::readers
