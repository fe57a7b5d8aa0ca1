#include "calibrate/readers/log_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace railyard::calibrate {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

template <typename Number>
std::optional<Number> whole(std::string_view text) {
  if (text.size() > 1 && text.front() == '+') text.remove_prefix(1);
  Number value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failed != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

// The size of a tag that begins with `open` and ends with `close`, blanks after it included.
std::size_t bracket_tag(std::string_view line, char open, std::string_view close) {
  if (line.empty() || line.front() != open) return 0;
  const std::size_t end = line.find(close);
  return end == std::string_view::npos ? 0 : end + close.size();
}

std::size_t digits_at(std::string_view line) {
  std::size_t count = 0;
  while (count < line.size() && topologies::is_digit(line[count])) ++count;
  return count;
}

}  // namespace

std::optional<double> to_real(std::string_view text) {
  const auto value = whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> to_integer(std::string_view text) { return whole<std::int64_t>(text); }

std::string_view word_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + key.size());
  return topologies::take_word(rest);
}

std::optional<std::int64_t> integer_after(std::string_view text, std::string_view key) {
  std::string_view word = word_after(text, key);
  const std::size_t digits = digits_at(word);
  if (digits == 0) return std::nullopt;
  return to_integer(word.substr(0, digits));
}

std::string_view without_tag(std::string_view line) {
  const std::string_view text = trim(line);
  std::size_t size = 0;
  if (text.starts_with("[1,") && (size = bracket_tag(text, '[', "]<std")) != 0) {
    // "[1,0]<stdout>:" or "[1,0]<stdout> "
    const std::size_t end = text.find('>', size);
    size = end == std::string_view::npos ? 0 : end + 1;
    if (size != 0 && size < text.size() && text[size] == ':') ++size;
  } else if (text.starts_with('(') && text.find("pid=") < text.find(')')) {
    size = bracket_tag(text, '(', ")");
  } else if (const std::size_t digits = digits_at(text); digits > 0 && digits + 1 < text.size() &&
                                                         text[digits] == ':' &&
                                                         topologies::is_blank(text[digits + 1])) {
    size = digits + 1;
  }
  return size == 0 ? line : text.substr(size);
}

std::string without_ansi(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      out += line[i];
      continue;
    }
    if (i + 1 >= line.size() || line[i + 1] != '[') continue;
    for (++i; i + 1 < line.size() && !is_letter(line[i + 1]);) ++i;
    ++i;  // the letter that ends the sequence
  }
  return out;
}

void add_distinct(std::vector<std::string>& names, std::string_view name) {
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
    names.emplace_back(name);
}

void Notes::add(std::size_t line, std::string text) {
  if (notes_.size() < kMost) {
    notes_.push_back({std::move(text), line});
  } else {
    ++left_out_;
  }
}

std::vector<Note> Notes::take() {
  if (left_out_ != 0) notes_.push_back({fmt::format("and {} more notes", left_out_), 0});
  left_out_ = 0;
  return std::exchange(notes_, {});
}

}  // namespace railyard::calibrate
