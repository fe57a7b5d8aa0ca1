#include "scenarios/text_fence.h"

#include <fmt/format.h>

#include "scenarios/document.h"

namespace railyard::scenarios {
namespace {

// Bytes of the UTF-8 sequence at `at`; 0 if it is none (overlong forms and surrogates included).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(at);
  const unsigned second = byte(at + 1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(at + 1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return continues(at + 1) && continues(at + 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool out_of_range = (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
    return continues(at + 1) && continues(at + 2) && continues(at + 3) && !out_of_range ? 4 : 0;
  }
  return 0;
}

bool is_text(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 ? byte != 0x7F : c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

sim::Result<void> check_text(std::string_view text, const std::string& name) {
  if (text.size() > kMaxFileBytes)
    return sim::bad_input(fmt::format("larger than {} MiB", kMaxFileBytes >> 20), name);
  std::size_t line = 1;
  std::size_t line_start = 0;
  bool indentation = true;
  const auto fail = [&](std::size_t at, std::string message) {
    return sim::bad_input(std::move(message),
                          fmt::format("{}:{}:{}", name, line, at - line_start + 1));
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::size_t length = utf8_length(text, at);
    if (length == 0 || !is_text(c))
      return fail(at, fmt::format("not a text file: byte 0x{:02x} (UTF-8 is expected)",
                                  static_cast<unsigned char>(c)));
    if (c == '\t' && indentation) return fail(at, "a tab in the indentation; use spaces");
    at += length;
    if (at - line_start > kMaxLineBytes)
      return fail(line_start, fmt::format("a line longer than {} MiB", kMaxLineBytes >> 20));
    if (c == '\n') {
      ++line;
      line_start = at;
    }
    indentation = c == '\n' || (indentation && c == ' ');
  }
  if (text.find_first_not_of(" \r\n") == std::string_view::npos)
    return sim::bad_input("the file is empty", name);
  return {};
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out(text.substr(0, limit));
  for (char& c : out)
    if (!is_text(c) || c == '\n' || c == '\r' || c == '\t') c = '?';
  // A cut inside a UTF-8 sequence would make the message itself unreadable.
  while (text.size() > limit && !out.empty() &&
         (static_cast<unsigned char>(text[out.size()]) & 0xC0U) == 0x80U)
    out.pop_back();
  if (text.size() > limit) out += "...";
  return out;
}

}  // namespace railyard::scenarios
