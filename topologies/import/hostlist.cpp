// Hostlist expressions: names with ranges in brackets, the last bracket running fastest.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "topologies/import/slurm_topology.h"
#include "topologies/import/text_lines.h"

namespace railyard::topologies {
namespace {

using sim::bad_input;
using sim::Result;
using Names = std::vector<std::string>;

constexpr std::size_t kMostDigits = 12;
constexpr std::size_t kMostNameLength = 128;  // without the numbers
constexpr std::size_t kMostBrackets = 5;      // as in SLURM

sim::Error too_many(std::size_t most) { return bad_input(fmt::format("more than {} names", most)); }

// "001-016" -> 001 .. 016: as many digits as the first has.
Result<void> expand_range(std::string_view range, std::size_t most, Names& out) {
  const std::size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  const auto first = to_number(low);
  const auto last = to_number(high);
  if (!first || !last || low.size() > kMostDigits || high.size() > kMostDigits || *last < *first)
    return bad_input(fmt::format("'{}' is no range of numbers", excerpt(range)));
  if (*last - *first >= most - std::min(most, out.size())) return too_many(most);
  for (std::uint64_t i = *first; i <= *last; ++i) {
    const fmt::format_int digits(i);
    std::string& number = out.emplace_back();
    if (digits.size() < low.size()) number.assign(low.size() - digits.size(), '0');
    number.append(digits.data(), digits.size());
  }
  return {};
}

// Every name so far followed by every number of the brackets.
Result<Names> times(const Names& heads, std::string_view inside, std::size_t most) {
  Names numbers;
  while (true) {
    const std::size_t comma = inside.find(',');
    RAILYARD_TRY(expand_range(inside.substr(0, comma), most, numbers));
    if (comma == std::string_view::npos) break;
    inside.remove_prefix(comma + 1);
  }
  if (heads.size() * numbers.size() > most) return too_many(most);
  Names out;
  out.reserve(heads.size() * numbers.size());
  for (const std::string& head : heads)
    for (const std::string& number : numbers) out.push_back(head + number);
  return out;
}

// One expression without commas outside brackets.
Result<Names> expand_one(std::string_view text, std::size_t most) {
  if (text.empty()) return bad_input("an empty name in a list");
  Names names{""};
  std::size_t length = 0;
  for (std::size_t brackets = 0; !text.empty(); ++brackets) {
    const std::size_t open = text.find('[');
    const std::string_view plain = text.substr(0, open);
    if (plain.find(']') != std::string_view::npos) return bad_input("']' without '['");
    length += plain.size();
    if (length > kMostNameLength)
      return bad_input(fmt::format("a name of more than {} characters", kMostNameLength));
    for (std::string& name : names) name += plain;
    if (open == std::string_view::npos) break;
    if (brackets == kMostBrackets)
      return bad_input(fmt::format("more than {} brackets in a name", kMostBrackets));
    const std::size_t close = text.find(']', open);
    if (close == std::string_view::npos) return bad_input("'[' without ']'");
    RAILYARD_ASSIGN(names, times(names, text.substr(open + 1, close - open - 1), most));
    text.remove_prefix(close + 1);
  }
  return names;
}

// Where the expression at the start of `list` ends: a comma outside brackets.
std::size_t end_of_one(std::string_view list) {
  bool inside = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') inside = true;
    if (list[i] == ']') inside = false;
    if (list[i] == ',' && !inside) return i;
  }
  return list.size();
}

}  // namespace

Result<Names> expand_hostlist(std::string_view list, std::size_t most) {
  Names out;
  while (true) {
    const std::size_t end = end_of_one(list);
    RAILYARD_ASSIGN(Names names, expand_one(list.substr(0, end), most));
    if (out.size() + names.size() > most) return too_many(most);
    for (std::string& name : names) out.push_back(std::move(name));
    if (end == list.size()) return out;
    list.remove_prefix(end + 1);
  }
}

}  // namespace railyard::topologies
