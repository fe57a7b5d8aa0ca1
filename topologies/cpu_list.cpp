#include "topologies/cpu_list.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace railyard::topologies {
namespace {

constexpr std::uint32_t kMaxCpus = 65'536;
constexpr std::size_t kWordBits = 32;

// Parses all of `text`; nothing else may follow.
bool parse(std::string_view text, std::uint32_t& out, int base) {
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, out, base);
  return failure == std::errc() && stop == end;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

std::string cpu_mask(std::string_view list) {
  std::vector<std::uint32_t> words;
  for (const std::string_view part : split(list)) {
    const std::size_t dash = part.find('-');
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    if (!parse(part.substr(0, dash), first, 10)) return {};
    last = first;
    if (dash != std::string_view::npos && !parse(part.substr(dash + 1), last, 10)) return {};
    if (last < first || last >= kMaxCpus) return {};
    if (words.size() <= last / kWordBits) words.resize(last / kWordBits + 1);
    for (std::uint32_t cpu = first; cpu <= last; ++cpu)
      words[cpu / kWordBits] |= std::uint32_t{1} << cpu % kWordBits;
  }
  std::string mask;
  for (auto word = words.rbegin(); word != words.rend(); ++word)
    mask += fmt::format("{}{:08x}", mask.empty() ? "" : ",", *word);
  return mask;
}

std::string cpu_list(std::string_view mask) {
  const std::vector<std::string_view> words = split(mask);
  if (words.size() > kMaxCpus / kWordBits) return {};
  std::vector<bool> bits;
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    std::uint32_t value = 0;
    if (!parse(*word, value, 16)) return {};
    for (std::size_t bit = 0; bit < kWordBits; ++bit) bits.push_back((value >> bit & 1u) != 0);
  }
  std::string list;
  for (std::size_t first = 0; first < bits.size(); ++first) {
    if (!bits[first]) continue;
    std::size_t last = first;
    while (last + 1 < bits.size() && bits[last + 1]) ++last;
    list += list.empty() ? "" : ",";
    list += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
    first = last;
  }
  return list;
}

}  // namespace railyard::topologies
