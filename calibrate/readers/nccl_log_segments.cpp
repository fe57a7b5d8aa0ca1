#include "calibrate/readers/nccl_log_segments.h"

#include <array>
#include <cctype>
#include <charconv>

namespace railyard::calibrate::nccl_log {
namespace {

constexpr std::size_t kMaxHost = 128;      // longer names are no host names
constexpr std::size_t kMaxLocation = 160;  // "file.cc:line" or TRACE's "time function:line"

struct LevelName {
  std::string_view name;
  Level level;
};
constexpr std::array kLevels{LevelName{"INFO", Level::info},   LevelName{"WARN", Level::warn},
                             LevelName{"CALL", Level::call},   LevelName{"TRACE", Level::other},
                             LevelName{"ATTN", Level::other},  LevelName{"ABORT", Level::other},
                             LevelName{"ERROR", Level::other}, LevelName{"VERSION", Level::other}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_host_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

// Reads a number that ends at `end` (exclusive) backwards; moves `end` to its first digit.
std::optional<std::int64_t> number_before(std::string_view line, std::size_t& end) {
  std::size_t begin = end;
  while (begin > 0 && is_digit(line[begin - 1])) --begin;
  if (begin > 0 && line[begin - 1] == '-') --begin;
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(line.data() + begin, line.data() + end, value);
  if (error != std::errc() || stop != line.data() + end) return std::nullopt;
  end = begin;
  return value;
}

bool take_before(std::string_view line, std::size_t& end, char c) {
  if (end == 0 || line[end - 1] != c) return false;
  --end;
  return true;
}

// Colour and cursor sequences: ESC [ parameters letter.
void strip_ansi(std::string_view line, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      out += line[i];
      continue;
    }
    if (i + 1 >= line.size() || line[i + 1] != '[') continue;
    ++i;
    while (i + 1 < line.size() && std::isalpha(static_cast<unsigned char>(line[i + 1])) == 0) ++i;
    ++i;  // the letter that ends it
  }
}

// Where a message begins after something that tools put in front: "[1,3]<stdout>:", "(pid=7) ",
// "0: ", "[2025-01-01 12:00:00] ", "worker-1  | ", "12:00:00.123 ".
bool is_tool_prefix(std::string_view before) {
  while (!before.empty() && (before.back() == ' ' || before.back() == '\t'))
    before.remove_suffix(1);
  if (before.empty()) return true;
  const char last = before.back();
  if (is_digit(last) || last == 'Z') return before.find(':') != before.npos;  // a time of day
  return std::string_view(":)]>|").find(last) != before.npos;
}

}  // namespace

const std::vector<Segment>& Segmenter::split(std::string_view line, bool complete) {
  if (line.find('\x1b') != std::string_view::npos) {
    strip_ansi(line, clean_);
    line = clean_;
  }
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  segments_.clear();
  before_ = line;
  std::size_t text_begin = 0;
  for (std::size_t at = line.find("NCCL "); at != std::string_view::npos;
       at = line.find("NCCL ", at + 5)) {
    std::optional<Found> found = prefix_at(line, at);
    if (!found || found->begin < text_begin) continue;
    if (segments_.empty()) {
      before_ = line.substr(0, found->begin);
    } else {
      segments_.back().text = line.substr(text_begin, found->begin - text_begin);
      segments_.back().torn = true;
    }
    segments_.push_back(found->segment);
    text_begin = found->text;
  }
  if (!segments_.empty()) {
    segments_.back().text = text_begin <= line.size() ? line.substr(text_begin) : "";
    segments_.back().torn = !complete;
  }
  return segments_;
}

std::optional<Segmenter::Found> Segmenter::prefix_at(std::string_view line, std::size_t nccl) {
  Found found;
  std::size_t text = nccl + 5;
  bool known_level = false;
  for (const LevelName& level : kLevels) {
    if (known_level || !line.substr(text).starts_with(level.name)) continue;
    found.segment.level = level.level;
    text += level.name.size();
    known_level = text == line.size() || line[text] == ' ';
  }
  if (!known_level) return std::nullopt;
  found.text = text + (text < line.size() ? 1 : 0);
  if (nccl == 0) return found;  // the prefix was stripped

  std::size_t end = nccl;
  if (!take_before(line, end, ' ')) return std::nullopt;
  if (found.segment.level == Level::warn || found.segment.level == Level::other) {
    const std::size_t from = end > kMaxLocation ? end - kMaxLocation : 0;
    const std::size_t in_window = line.substr(from, end + 1 - from).rfind("] ");
    if (in_window == std::string_view::npos) return std::nullopt;
    const std::size_t bracket = from + in_window;
    if (bracket + 2 < end) found.segment.where = line.substr(bracket + 2, end - bracket - 2);
    end = bracket + 1;
  }
  if (take_before(line, end, ']')) {
    const auto device = number_before(line, end);
    if (!device || !take_before(line, end, '[') || !take_before(line, end, ' '))
      return std::nullopt;
    found.segment.device = *device;
  }
  const auto tid = number_before(line, end);
  if (!tid || !take_before(line, end, ':')) return std::nullopt;
  const auto pid = number_before(line, end);
  if (!pid || !take_before(line, end, ':')) return std::nullopt;
  found.segment.tid = *tid;
  found.segment.pid = *pid;

  std::size_t token = end;
  while (token > 0 && end - token < kMaxHost && is_host_character(line[token - 1])) --token;
  if (token == end) return std::nullopt;
  found.segment.host = host_name(line, line.substr(token, end - token), *pid);
  found.begin = end - found.segment.host.size();
  return found;
}

std::string_view Segmenter::host_name(std::string_view line, std::string_view token,
                                      std::int64_t pid) {
  std::vector<std::string>& of_pid = hosts_of_pid_[pid];
  for (const std::string& host : of_pid)
    if (token == host) return token;
  for (const std::string& host : of_pid)
    if (token.ends_with(host)) return token.substr(token.size() - host.size());
  const auto begin = static_cast<std::size_t>(token.data() - line.data());
  if (segments_.empty() && is_tool_prefix(line.substr(0, begin))) {
    hosts_.emplace(token);
    of_pid.emplace_back(token);
    return token;
  }
  for (std::size_t skip = 0; skip < token.size(); ++skip) {
    if (hosts_.count(std::string(token.substr(skip))) == 0) continue;
    of_pid.emplace_back(token.substr(skip));
    return token.substr(skip);
  }
  return token;
}

}  // namespace railyard::calibrate::nccl_log
