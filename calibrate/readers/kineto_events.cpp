#include "calibrate/readers/kineto_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "calibrate/readers/log_text.h"

namespace railyard::calibrate {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostMicroseconds = 9'000'000'000'000'000;  // as nanoseconds in 64 bits

// The parser's callbacks. A level is an object or an array around the current value.
class Handler {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  explicit Handler(const TraceSink& sink) : sink_(sink) {}

  bool null() { return scalar(""); }
  bool boolean(bool value) { return scalar(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) { return scalar(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) { return scalar(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) { return scalar(text); }
  bool string(string_t& text) { return scalar(text); }
  bool binary(binary_t&) { return scalar(""); }

  bool start_object(std::size_t) {
    if (levels_.size() == 2 && in_events_) event_.values.clear();
    return open(false);
  }
  bool end_object() {
    levels_.pop_back();
    if (levels_.size() == 2 && in_events_) sink_.event(event_);
    return next();
  }
  bool start_array(std::size_t) {
    if (levels_.size() == 1 && levels_[0].key == "traceEvents") {
      in_events_ = found_ = true;
    }
    return open(true);
  }
  bool end_array() {
    levels_.pop_back();
    if (levels_.size() == 1) in_events_ = false;
    return next();
  }
  bool key(string_t& key) {
    levels_.back().key = key;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    position_ = position;
    return false;
  }

  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] std::size_t position() const { return position_; }

 private:
  struct Level {
    bool array = false;
    std::string key;        // of the current member
    std::size_t index = 0;  // of the current element
  };

  bool open(bool array) {
    levels_.push_back({array, {}, 0});
    return true;
  }
  bool next() {
    if (!levels_.empty() && levels_.back().array) ++levels_.back().index;
    return true;
  }

  bool scalar(std::string_view value) {
    if (in_events_) {
      if (levels_.size() == 3 && !levels_[2].array)
        event_.values[levels_[2].key] = value;
      else if (levels_.size() == 4 && levels_[2].key == "args" && !levels_[3].array)
        event_.values["args." + levels_[3].key] = value;
    } else if (levels_.size() <= kOutside) {
      sink_.value(path(), value);
    }
    return next();
  }

  [[nodiscard]] std::string path() const {
    std::string path;
    for (const Level& level : levels_)
      path += (path.empty() ? "" : ".") + (level.array ? std::to_string(level.index) : level.key);
    return path;
  }

  static constexpr std::size_t kOutside = 3;  // deeper values outside of events are of no interest

  const TraceSink& sink_;
  std::vector<Level> levels_;
  TraceEvent event_;
  bool in_events_ = false, found_ = false;
  std::size_t position_ = 0;
};

}  // namespace

std::string_view TraceEvent::text(std::string_view key) const {
  const auto found = values.find(key);
  return found == values.end() ? std::string_view{} : found->second;
}

std::optional<std::int64_t> TraceEvent::integer(std::string_view key) const {
  return to_integer(text(key));
}

std::optional<std::int64_t> TraceEvent::nanoseconds(std::string_view key) const {
  const std::string_view number = text(key);
  const std::size_t point = number.find('.');
  const bool plain = number.find_first_of("eE") == number.npos;
  if (!plain || point == number.npos) {
    const auto value = plain ? to_integer(number) : std::nullopt;
    if (value)
      return std::abs(*value) > kMostMicroseconds ? std::nullopt : std::optional(*value * 1000);
    const auto real = to_real(number);
    if (!real || std::abs(*real) > static_cast<double>(kMostMicroseconds)) return std::nullopt;
    return std::llround(*real * 1000);
  }
  const auto whole = to_integer(number.substr(0, point));
  std::string fraction(number.substr(point + 1, 3));
  fraction.resize(3, '0');
  const auto part = to_integer(fraction);
  if (!whole || !part || *part < 0 || std::abs(*whole) > kMostMicroseconds) return std::nullopt;
  return *whole * 1000 + (number.front() == '-' ? -*part : *part);
}

std::optional<std::pair<std::int64_t, std::int64_t>> TraceEvent::times() const {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4;
  constexpr std::int64_t kLongest = std::int64_t{86'400} * 1'000'000'000;
  const auto start = nanoseconds("ts"), duration = nanoseconds("dur");
  if (!start || !duration || *duration < 0 || *duration > kLongest || *start > kMost ||
      *start < -kMost)
    return std::nullopt;
  return std::pair(*start, *start + *duration);
}

sim::Result<bool> read_trace_events(std::string_view text, const std::string& name,
                                    const TraceSink& sink) {
  Handler handler(sink);
  if (Json::sax_parse(text.begin(), text.end(), &handler)) return handler.found();
  const std::size_t at = std::min(handler.position(), text.size());
  const std::string_view before = text.substr(0, at == 0 ? 0 : at - 1);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;
  const bool ends = at >= text.size();
  return sim::bad_input(
      ends ? "the trace ends in the middle of its JSON: cut off?"
           : fmt::format("not JSON here: \"{}\"", excerpt(text.substr(before.size()), 20)),
      fmt::format("{}:{}:{}", name, line, column));
}

}  // namespace railyard::calibrate
