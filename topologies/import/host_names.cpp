#include "topologies/import/host_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "topologies/import/text_lines.h"

namespace railyard::topologies {

bool is_aggregation_node(const GraphNode& adapter) {
  return adapter.name.find("Aggregation Node") != std::string::npos;
}

HostAndDevice split_description(const GraphNode& adapter) {
  const std::string_view name = trim(adapter.name);
  HostAndDevice out;
  out.named = !name.empty() && name.find("Technologies") == std::string_view::npos;
  if (!out.named) {
    const std::uint64_t system = adapter.system_guid != 0 ? adapter.system_guid : adapter.key;
    out.host = fmt::format("unnamed-{:016x}", system);
    return out;
  }
  const std::size_t blank = name.find_last_of(" \t");
  out.host = trim(name.substr(0, blank));
  if (blank != std::string_view::npos) out.device = name.substr(blank + 1);
  return out;
}

bool natural_less(const std::string& a, const std::string& b) {
  const auto number_end = [](const std::string& text, std::size_t from) {
    while (from < text.size() && is_digit(text[from])) ++from;
    return from;
  };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
      continue;
    }
    const std::size_t end_a = number_end(a, i);
    const std::size_t end_b = number_end(b, j);
    while (i + 1 < end_a && a[i] == '0') ++i;
    while (j + 1 < end_b && b[j] == '0') ++j;
    if (end_a - i != end_b - j) return end_a - i < end_b - j;
    const int order = a.compare(i, end_a - i, b, j, end_b - j);
    if (order != 0) return order < 0;
    i = end_a;
    j = end_b;
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;  // "a01" and "a1" are two names
}

}  // namespace railyard::topologies
