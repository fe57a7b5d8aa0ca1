// The attributes of one element as numbers and texts, with errors that name file, line, element and
// attribute. Numbers are read as NCCL reads them (decimal, 0x hexadecimal, leading 0 octal), but
// have to be numbers: where NCCL would take garbage for 0, this is an error.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "sim/result.h"
#include "topologies/import/xml_tree.h"

namespace railyard::topologies {

struct IntegerRange {
  std::int64_t low = 0;
  std::int64_t high = std::numeric_limits<std::int32_t>::max();
};

class XmlFields {
 public:
  // Only NCCL's 16 attributes are seen; a note says so where there are more.
  XmlFields(const XmlElement& element, const ImportSource& source);

  [[nodiscard]] std::string text(std::string_view name) const;  // empty if absent
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }

  // Absent or empty: nullopt.
  [[nodiscard]] sim::Result<std::optional<std::int64_t>> integer(std::string_view name,
                                                                 IntegerRange range) const;
  // Always base 16, with or without 0x.
  [[nodiscard]] sim::Result<std::optional<std::uint64_t>> hexadecimal(std::string_view name) const;
  // Finite and not negative.
  [[nodiscard]] sim::Result<std::optional<double>> number(std::string_view name) const;

  [[nodiscard]] sim::Error missing(std::string_view name) const;
  [[nodiscard]] sim::Error error(std::string message) const;
  void note(std::string_view text) const { source_.note(element_.line, text); }

 private:
  [[nodiscard]] const std::string* find(std::string_view name) const;
  [[nodiscard]] sim::Error bad_value(std::string_view name, std::string_view value,
                                     std::string_view wanted) const;

  const XmlElement& element_;
  const ImportSource& source_;
  std::size_t seen_;
};

}  // namespace railyard::topologies
