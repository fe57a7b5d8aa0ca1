#include "calibrate/readers/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibrate/readers/log_text.h"

namespace railyard::calibrate {
namespace {

constexpr std::size_t kMaxDepth = 64;                // no tool nests deeper, and readers recurse
constexpr double kExactIntegers = 9007199254740992;  // 2^53

// Where the text nests deeper than kMaxDepth; npos if nowhere.
std::size_t too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return i;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return text.npos;
}

}  // namespace

sim::Result<Json> parse_json(std::string_view text, const std::string& name) {
  if (const std::size_t at = too_deep(text); at != text.npos)
    return error_at(name,
                    1 + static_cast<std::size_t>(std::count(
                            text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')),
                    fmt::format("JSON of more than {} levels", kMaxDepth));
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    const std::size_t at = std::min<std::size_t>(error.byte, text.size());
    const std::string_view before = text.substr(0, at == 0 ? 0 : at - 1);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;
    const bool ends = at >= text.size();
    return sim::bad_input(
        ends ? "the file ends in the middle of its JSON: cut off?"
             : fmt::format("not JSON here: \"{}\"", excerpt(text.substr(before.size()), 20)),
        fmt::format("{}:{}:{}", name, line, column));
  } catch (const Json::out_of_range& error) {  // "1e999"; the parser does not say where
    return sim::bad_input("a number of its JSON is out of range: " + excerpt(error.what(), 100),
                          name);
  }
}

const Json& json_at(const Json& object, std::string_view key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(std::string(key));
  return found == object.end() ? none : *found;
}

std::optional<double> json_real(const Json& object, std::string_view key) {
  const Json& value = json_at(object, key);
  if (value.is_string()) return to_real(trim(value.get_ref<const std::string&>()));
  if (!value.is_number()) return std::nullopt;
  const double real = value.get<double>();
  return std::isfinite(real) ? std::optional(real) : std::nullopt;
}

std::optional<std::int64_t> json_integer(const Json& object, std::string_view key) {
  const Json& value = json_at(object, key);
  if (value.is_number_integer() && !value.is_number_unsigned()) return value.get<std::int64_t>();
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number <= INT64_MAX ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
  }
  if (value.is_string()) return to_integer(trim(value.get_ref<const std::string&>()));
  const auto real = json_real(object, key);
  if (!real || *real != std::floor(*real) || std::abs(*real) > kExactIntegers) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

std::string json_string(const Json& object, std::string_view key) {
  const Json& value = json_at(object, key);
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() ? value.dump() : std::string();
}

}  // namespace railyard::calibrate
