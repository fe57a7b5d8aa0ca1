#include "models/kv/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace railyard::models {
namespace {

constexpr double kLongestTrace = 1e6;  // seconds
constexpr std::size_t kColumns = 3;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> tokens(double value) {
  if (value < 1 || value > static_cast<double>(kMaxKvTokens) || value != std::floor(value))
    return std::nullopt;
  return static_cast<std::int64_t>(value);
}

using Cells = std::array<std::optional<double>, kColumns>;

// Null where there are more or fewer columns.
std::optional<Cells> cells_of(std::string_view line) {
  Cells cells;
  for (std::size_t i = 0; i < kColumns; ++i) {
    const std::size_t comma = line.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == kColumns)) return std::nullopt;
    cells[i] = number(trimmed(line.substr(0, comma)));
    if (comma != std::string_view::npos) line.remove_prefix(comma + 1);
  }
  return cells;
}

sim::Result<KvRequest> request_of(const Cells& cells) {
  const auto [seconds, input, output] = cells;
  if (!seconds || *seconds < 0 || *seconds > kLongestTrace)
    return sim::bad_input(
        fmt::format("a time in seconds from 0 to {:.0f} is expected first", kLongestTrace));
  const auto prompt = input ? tokens(*input) : std::nullopt;
  const auto answer = output ? tokens(*output) : std::nullopt;
  if (!prompt || !answer)
    return sim::bad_input(
        fmt::format("whole numbers of tokens from 1 to {} are expected second "
                    "(input) and third (output)",
                    kMaxKvTokens));
  return KvRequest{sim::Time(sim::picoseconds(std::llround(*seconds * 1e12))), *prompt, *answer};
}

}  // namespace

sim::Result<std::vector<KvRequest>> parse_kv_trace(std::string_view text, const std::string& name) {
  std::vector<KvRequest> requests;
  bool title_allowed = true;
  for (std::size_t row = 1; !text.empty(); ++row) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    const std::string where = fmt::format("{}:{}", name, row);
    const auto cells = cells_of(line);
    if (!cells)
      return sim::bad_input("three columns are expected: seconds, input tokens, output tokens",
                            where);
    const bool title = !(*cells)[0] && !(*cells)[1] && !(*cells)[2];
    if (title && std::exchange(title_allowed, false)) continue;
    title_allowed = false;
    auto request = request_of(*cells);
    if (!request.ok()) return sim::bad_input(request.error().message, where);
    if (requests.size() == kMaxKvRequests)
      return sim::bad_input(fmt::format("more than {} requests", kMaxKvRequests), where);
    requests.push_back(request.value());
  }
  if (requests.empty()) return sim::bad_input("the trace holds no request", name);
  std::ranges::stable_sort(requests, {}, &KvRequest::arrival);
  return requests;
}

}  // namespace railyard::models
