#include "algorithms/nccl/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <iterator>

#include "sim/text.h"

namespace railyard::algorithms::nccl {
namespace {

using sim::PathType;

// NCCL ignores a number with anything after it.
std::optional<std::int64_t> whole_number(const std::string& text) {
  const char* begin = text.c_str();
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(begin, &end, 0);
  if (end == begin || *end != '\0' || errno != 0) return std::nullopt;
  return value;
}

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names;
  for (const KnownVariable& known : known_variables()) names.push_back(known.name);
  return names;
}

}  // namespace

sim::Result<Environment> Environment::parse(const std::map<std::string, std::string>& variables) {
  Environment env;
  const std::vector<std::string_view> names = known_names();
  for (const auto& [name, value] : variables) {
    if (!name.starts_with("NCCL_"))
      return sim::bad_input(fmt::format("'{}' is no NCCL_* variable", name), "env." + name);
    if (std::find(names.begin(), names.end(), name) == names.end())
      env.warnings_.push_back(
          fmt::format("{} has no effect here: not a variable this program knows{}", name,
                      sim::did_you_mean(name, names)));
    env.variables_.emplace(name, value);
  }
  return env;
}

bool Environment::has(std::string_view name) const { return text(name).has_value(); }

std::int64_t Environment::integer(std::string_view name, std::int64_t fallback) const {
  const std::optional<std::string> value = text(name);
  return value ? whole_number(*value).value_or(fallback) : fallback;
}

std::optional<std::string> Environment::text(std::string_view name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<PathType> Environment::level(std::string_view name) const {
  const std::optional<std::string> value = text(name);
  if (!value) return std::nullopt;
  for (const auto& entry : sim::EnumTable<PathType>::entries)
    if (sim::equal_ignoring_case(*value, entry.name)) return entry.value;
  const std::optional<std::int64_t> number = whole_number(*value);
  if (!number || *number < 0) return std::nullopt;
  constexpr PathType kOldLevels[] = {PathType::loc, PathType::pix, PathType::pxb, PathType::phb,
                                     PathType::sys};
  return kOldLevels[std::min<std::int64_t>(*number, std::ssize(kOldLevels) - 1)];
}

}  // namespace railyard::algorithms::nccl
