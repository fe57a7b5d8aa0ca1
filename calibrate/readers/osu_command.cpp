#include "calibrate/readers/osu_command.h"

#include <optional>
#include <vector>

#include "calibrate/readers/log_text.h"

namespace railyard::calibrate {
namespace {

// The number of an option, written "-n4", "-n 4", "--name=4" or "--name 4".
std::optional<std::int64_t> option(const std::vector<std::string_view>& words,
                                   std::string_view name) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == name) return i + 1 < words.size() ? to_integer(words[i + 1]) : std::nullopt;
    if (!words[i].starts_with(name)) continue;
    std::string_view value = words[i].substr(name.size());
    if (value.starts_with('='))
      value.remove_prefix(1);
    else if (name.starts_with("--"))
      continue;
    if (const auto number = to_integer(value)) return number;
  }
  return std::nullopt;
}

// "osu_" and more of a program's name; not "osu_bw[0x40424c]" of a stack trace.
bool is_program(std::string_view name) {
  return name.starts_with("osu_") &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == name.npos;
}

bool is_place(std::string_view word) { return word == "D" || word == "H" || word == "M"; }

}  // namespace

OsuCommand osu_command(std::string_view line) {
  OsuCommand command;
  std::vector<std::string_view> before;  // the launcher's part
  for (const std::string_view word : words_of(line)) {
    const std::string_view base = word.substr(word.find_last_of('/') + 1);
    if (command.program.empty() && is_program(base)) command.program = base;
    if (command.program.empty()) before.push_back(word);
  }
  if (command.program.empty()) return {};
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() > 2 && is_place(words.back()) && is_place(words[words.size() - 2]))
    command.placement = std::string(words[words.size() - 2]) + " " + std::string(words.back());
  for (const char* name : {"-np", "-n", "--ntasks"})
    if (const auto ranks = option(before, name); ranks && command.ranks < 0) command.ranks = *ranks;
  for (const char* name : {"-N", "--nodes"})
    if (const auto nodes = option(before, name); nodes && command.nodes < 0) command.nodes = *nodes;
  const auto per_node = option(before, "--ntasks-per-node");
  constexpr std::int64_t kMost = 1 << 24;
  if (command.ranks < 0 && command.nodes > 0 && command.nodes < kMost &&
      per_node.value_or(1) < kMost)
    command.ranks = command.nodes * per_node.value_or(1);
  if (command.nodes > command.ranks) command.nodes = command.ranks;
  return command;
}

}  // namespace railyard::calibrate
