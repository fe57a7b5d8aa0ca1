// Scanner: reads one message piece by piece, never past its end and never half a number.
//
//   Scanner s("comm 0x55d0 rank 3 nranks 16 ...", /*torn=*/false);
//   Hex comm; std::int64_t rank, ranks;
//   if (s.match("comm % rank % nranks %", comm, rank, ranks)) ...   // moves on only if all matches
//
// In a pattern '%' is the next output, a blank any run of blanks (at least one), anything else
// itself. A std::string_view output takes everything up to the pattern's next character.
// Half a number is one that a letter or digit follows, or that ends a torn message: no match.
#pragma once

#include <cctype>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace railyard::calibrate::nccl_log {

struct Hex {  // with or without 0x
  std::uint64_t value = 0;
};

class Scanner {
 public:
  // torn: the text goes on, but not here; its last word cannot be believed.
  Scanner(std::string_view text, bool torn) : rest_(text), torn_(torn) {}

  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] bool done() const { return rest_.empty(); }
  [[nodiscard]] bool torn() const { return torn_; }

  bool starts(std::string_view text) const { return rest_.starts_with(text); }

  bool literal(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  void skip_blanks() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  template <typename... Outputs>
  bool match(std::string_view pattern, Outputs&... outputs) {
    Scanner attempt = *this;
    if (!(attempt.next(pattern, outputs) && ...) || !attempt.plain(pattern)) return false;
    rest_ = attempt.rest_;
    return true;
  }

  // The next word: up to a blank. Empty at the end or when it is torn.
  std::string_view word() {
    skip_blanks();
    std::string_view taken;
    read(taken, ' ');
    return taken;
  }

 private:
  // Everything of the pattern up to '%' (or its end), which is consumed.
  bool plain(std::string_view& pattern) {
    while (!pattern.empty() && pattern.front() != '%') {
      if (pattern.front() == ' ') {
        if (rest_.empty() || rest_.front() != ' ') return false;
        skip_blanks();
      } else if (!literal(pattern.substr(0, 1))) {
        return false;
      }
      pattern.remove_prefix(1);
    }
    return true;
  }

  template <typename Output>
  bool next(std::string_view& pattern, Output& output) {
    if (!plain(pattern) || pattern.empty()) return false;
    pattern.remove_prefix(1);
    return read(output, pattern.empty() ? ' ' : pattern.front());
  }

  bool finish_number(const char* end) {
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (rest_.empty()) return !torn_;
    return std::isalnum(static_cast<unsigned char>(rest_.front())) == 0 && rest_.front() != '_';
  }

  bool read(std::int64_t& value, char) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    return error == std::errc() && finish_number(end);
  }

  bool read(Hex& value, char) {
    if (rest_.starts_with("0x")) rest_.remove_prefix(2);
    const auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value.value, 16);
    return error == std::errc() && finish_number(end);
  }

  bool read(double& value, char) {
    const auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, std::chars_format::fixed);
    return error == std::errc() && finish_number(end);
  }

  bool read(std::string_view& value, char until) {
    const std::size_t size = rest_.find(until);
    if (size == std::string_view::npos && torn_) {
      rest_ = {};
      return false;
    }
    value = rest_.substr(0, size);
    rest_.remove_prefix(value.size());
    return !value.empty();
  }

  std::string_view rest_;
  bool torn_;
};

}  // namespace railyard::calibrate::nccl_log
