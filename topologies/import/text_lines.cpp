#include "topologies/import/text_lines.h"

#include <fmt/format.h>

#include <utility>

namespace railyard::topologies {

bool LineReader::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const std::size_t end = rest_.find('\n');
  line = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  ++number_;
  return true;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view take_word(std::string_view& rest) {
  std::size_t start = 0;
  while (start < rest.size() && is_blank(rest[start])) ++start;
  std::size_t end = start;
  while (end < rest.size() && !is_blank(rest[end])) ++end;
  const std::string_view word = rest.substr(start, end - start);
  rest.remove_prefix(end);
  return word;
}

std::vector<std::string_view> words_of(std::string_view line, std::size_t limit) {
  std::vector<std::string_view> words;
  while (words.size() + 1 < limit) {
    const std::string_view word = take_word(line);
    if (word.empty()) return words;
    words.push_back(word);
  }
  line = trim(line);
  if (!line.empty()) words.push_back(line);
  return words;
}

std::optional<std::uint64_t> to_number(std::string_view text, int base) {
  if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || failed != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::string excerpt(std::string_view text, std::size_t limit) {
  std::string out;
  for (const char c : text.substr(0, limit)) out += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > limit) out += "...";
  return out;
}

sim::Error error_at(const std::string& name, std::size_t line, std::string message) {
  return sim::bad_input(std::move(message), fmt::format("{}:{}", name, line));
}

std::string list_of(const std::vector<std::string>& items, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < items.size() && i < most; ++i)
    text += (i == 0 ? "" : ", ") + items[i];
  if (items.size() > most) text += fmt::format(" and {} more", items.size() - most);
  return text;
}

}  // namespace railyard::topologies
