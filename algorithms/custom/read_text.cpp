#include "algorithms/custom/read_text.h"

#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "sim/enum_table.h"

namespace railyard::algorithms {
namespace {

using sim::bad_input;
using sim::Buffer;
using sim::Primitive;
using sim::Result;

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  if (!whole || value > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return value;
}

// "1.3" as two numbers.
std::optional<std::pair<std::uint32_t, std::uint32_t>> dotted(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto first = number(text.substr(0, dot));
  const auto second = number(text.substr(dot + 1));
  if (!first || !second) return std::nullopt;
  return std::pair(*first, *second);
}

using Words = std::vector<std::string>;

class TextReader {
 public:
  explicit TextReader(const std::string& file) { custom_.file = file; }

  Result<CustomSchedule> read(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      const Words words = split(line);
      if (!words.empty()) RAILYARD_TRY(read_line(words));
    }
    for (const char* key : {"schedule", "collective", "ranks", "chunks"})
      if (!seen_.contains(key))
        return bad_input("'" + std::string(key) + "' is missing", custom_.file);
    RAILYARD_TRY(check_structure(custom_));
    return std::move(custom_);
  }

 private:
  static Words split(const std::string& line) {
    std::istringstream stream(line.substr(0, line.find('#')));
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
  }

  [[nodiscard]] sim::Error wrong(const std::string& what) const {
    return bad_input(what, custom_.file + ":" + std::to_string(line_));
  }

  Result<void> read_line(const Words& words) {
    if (seen_.empty() && words[0] != "schedule")
      return wrong("a schedule begins with 'schedule NAME'");
    if (words[0] == "block") return read_block(words);
    if (!custom_.blocks.empty()) return read_step(words);
    return read_header(words);
  }

  Result<void> read_header(const Words& words) {
    const std::string& key = words[0];
    if (words.size() != 2) return wrong("expected one value after '" + key + "'");
    if (!seen_.insert(key).second) return wrong("'" + key + "' is there twice");
    const std::string& value = words[1];
    if (key == "schedule") {
      custom_.name = value;
    } else if (key == "collective") {
      custom_.any_collective = value == "any";
      if (custom_.any_collective) return {};
      RAILYARD_ASSIGN(custom_.collective, here(sim::parse_enum<sim::Collective>(value)));
    } else if (key == "protocol") {
      RAILYARD_ASSIGN(custom_.protocol, here(sim::parse_enum<sim::Protocol>(value)));
    } else if (key == "in-place") {
      if (value != "yes" && value != "no") return wrong("'in-place' is yes or no");
      custom_.in_place = value == "yes";
    } else {
      return read_count(key, value);
    }
    return {};
  }

  Result<void> read_count(const std::string& key, const std::string& value) {
    std::uint32_t* out = nullptr;
    if (key == "ranks") out = &custom_.ranks;
    if (key == "chunks") out = &custom_.chunks;
    if (key == "root") out = &custom_.root;
    if (key == "scratch") out = &custom_.scratch;
    if (out == nullptr)
      return wrong("unknown word '" + key +
                   "'; expected schedule, collective, ranks, chunks, protocol, in-place, root, "
                   "scratch or block");
    const auto count = number(value);
    if (!count) return wrong("'" + value + "' is no number");
    *out = *count;
    return {};
  }

  template <typename T>
  Result<T> here(Result<T> result) const {
    if (!result.ok()) return wrong(result.error().message);
    return result;
  }

  Result<void> read_block(const Words& words) {
    CustomBlock block;
    block.line = line_;
    const auto id = words.size() > 1 ? dotted(words[1]) : std::nullopt;
    if (!id) return wrong("expected 'block RANK.NUMBER'");
    block.rank = id->first;
    block.id = id->second;
    for (std::size_t i = 2; i < words.size(); i += 2) {
      const auto value = i + 1 < words.size() ? number(words[i + 1]) : std::nullopt;
      if (!value) return wrong("expected a number after '" + words[i] + "'");
      if (words[i] == "send")
        block.send_to = static_cast<std::int32_t>(*value);
      else if (words[i] == "recv")
        block.recv_from = static_cast<std::int32_t>(*value);
      else if (words[i] == "channel")
        block.channel = *value;
      else
        return wrong("unknown word '" + words[i] + "'; expected send, recv or channel");
    }
    custom_.blocks.push_back(std::move(block));
    return {};
  }

  Result<CustomPlace> place(const std::string& word) const {
    const auto chunk = number(std::string_view(word).substr(1));
    if (chunk && word[0] == 'i') return CustomPlace{Buffer::input, *chunk};
    if (chunk && word[0] == 'o') return CustomPlace{Buffer::output, *chunk};
    if (chunk && word[0] == 's') return CustomPlace{Buffer::scratch, *chunk};
    return wrong("'" + word + "' is no place; expected a buffer and a chunk: i0, o0 or s0");
  }

  Result<void> read_step(const Words& words) {
    CustomStep step;
    step.line = line_;
    RAILYARD_ASSIGN(step.primitive, here(sim::parse_enum<Primitive>(words[0])));
    std::size_t next = 1;
    const auto take = [&](bool wanted, CustomPlace& out) -> Result<void> {
      if (!wanted) return {};
      if (next >= words.size())
        return wrong("'" + words[0] + "' needs " +
                     (sim::reads_source(step.primitive) && sim::writes_target(step.primitive)
                          ? "a source and a target"
                          : "one place"));
      RAILYARD_ASSIGN(out, place(words[next++]));
      return {};
    };
    RAILYARD_TRY(take(sim::reads_source(step.primitive), step.source));
    RAILYARD_TRY(take(sim::writes_target(step.primitive), step.target));
    if (next < words.size() && words[next][0] == 'x') {
      const auto count = number(std::string_view(words[next]).substr(1));
      if (!count) return wrong("'" + words[next] + "' is no count; expected x2 or the like");
      step.count = *count;
      ++next;
    }
    if (next < words.size() && words[next] == "after") {
      for (++next; next < words.size(); ++next) {
        const auto id = dotted(words[next]);
        if (!id) return wrong("'" + words[next] + "' is no step; expected BLOCK.STEP");
        step.after.push_back({id->first, id->second});
      }
      if (step.after.empty()) return wrong("expected steps after 'after'");
    }
    if (next < words.size()) return wrong("unexpected '" + words[next] + "'");
    custom_.blocks.back().steps.push_back(std::move(step));
    return {};
  }

  CustomSchedule custom_;
  std::set<std::string> seen_;
  std::uint32_t line_ = 0;
};

}  // namespace

Result<CustomSchedule> read_schedule_text(const std::string& file, const std::string& text) {
  return TextReader(file).read(text);
}

}  // namespace railyard::algorithms
