#include "topologies/import/xml_fields.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>

namespace railyard::topologies {
namespace {

using sim::Result;

constexpr std::size_t kNcclAttributes = 16;

bool blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

// Did the conversion consume everything but blanks?
bool consumed(const char* end) {
  while (*end == ' ') ++end;
  return *end == '\0';
}

}  // namespace

XmlFields::XmlFields(const XmlElement& element, const ImportSource& source)
    : element_(element), source_(source), seen_(element.attributes.size()) {
  if (seen_ <= kNcclAttributes) return;
  seen_ = kNcclAttributes;
  note(fmt::format("<{}> has {} attributes; NCCL sees the first {} only", printable(element.name),
                   element.attributes.size(), kNcclAttributes));
}

const std::string* XmlFields::find(std::string_view name) const {
  for (std::size_t i = 0; i < seen_; ++i)
    if (element_.attributes[i].name == name) return &element_.attributes[i].value;
  return nullptr;
}

std::string XmlFields::text(std::string_view name) const {
  const std::string* value = find(name);
  return value != nullptr ? *value : std::string();
}

sim::Error XmlFields::error(std::string message) const {
  return source_.error(element_.line, std::move(message));
}

sim::Error XmlFields::missing(std::string_view name) const {
  return error(fmt::format("<{}> has no {}", printable(element_.name), name));
}

sim::Error XmlFields::bad_value(std::string_view name, std::string_view value,
                                std::string_view wanted) const {
  return error(
      fmt::format("<{}> {}=\"{}\": {}", printable(element_.name), name, printable(value), wanted));
}

Result<std::optional<std::int64_t>> XmlFields::integer(std::string_view name,
                                                       IntegerRange range) const {
  const std::string* value = find(name);
  if (value == nullptr || blank(*value)) return std::optional<std::int64_t>();
  char* end = nullptr;
  errno = 0;
  const long long parsed = std::strtoll(value->c_str(), &end, 0);
  if (end == value->c_str() || !consumed(end)) return bad_value(name, *value, "not a whole number");
  if (errno == ERANGE || parsed < range.low || parsed > range.high)
    return bad_value(name, *value, fmt::format("must be from {} to {}", range.low, range.high));
  return std::optional<std::int64_t>(parsed);
}

Result<std::optional<std::uint64_t>> XmlFields::hexadecimal(std::string_view name) const {
  const std::string* value = find(name);
  if (value == nullptr || blank(*value)) return std::optional<std::uint64_t>();
  char* end = nullptr;
  errno = 0;
  const unsigned long long parsed = std::strtoull(value->c_str(), &end, 16);
  if (end == value->c_str() || !consumed(end) || value->find('-') != std::string::npos)
    return bad_value(name, *value, "not a hexadecimal number");
  if (errno == ERANGE) return bad_value(name, *value, "does not fit 64 bits");
  return std::optional<std::uint64_t>(parsed);
}

Result<std::optional<double>> XmlFields::number(std::string_view name) const {
  const std::string* value = find(name);
  if (value == nullptr || blank(*value)) return std::optional<double>();
  char* end = nullptr;
  const double parsed = std::strtod(value->c_str(), &end);
  if (end == value->c_str() || !consumed(end)) return bad_value(name, *value, "not a number");
  if (!std::isfinite(parsed) || parsed < 0)
    return bad_value(name, *value, "must be finite and not negative");
  return std::optional<double>(parsed);
}

}  // namespace railyard::topologies
