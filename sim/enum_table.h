// One constexpr table per enum: parsing, printing, help and error messages all read it.
//
//   enum class Protocol { ll, ll128, simple };
//   template <> struct EnumTable<Protocol> {
//     static constexpr std::string_view kind = "protocol";
//     static constexpr std::array entries{EnumEntry{Protocol::ll, "LL"}, ...};
//   };
//   to_text(Protocol::ll) == "LL";   parse_enum<Protocol>("ll128")  (case-insensitive)
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"
#include "sim/text.h"

namespace railyard::sim {

template <typename E>
struct EnumEntry {
  E value;
  std::string_view name;
};
template <typename E>
EnumEntry(E, const char*) -> EnumEntry<E>;

template <typename E>
struct EnumTable;  // specialised beside each enum

template <typename E>
concept TabledEnum = requires {
  EnumTable<E>::entries;
};

template <TabledEnum E>
constexpr std::string_view to_text(E value) {
  for (const auto& entry : EnumTable<E>::entries)
    if (entry.value == value) return entry.name;
  return "?";
}

// All names, comma separated, in table order.
template <TabledEnum E>
std::string enum_names() {
  std::string names;
  for (const auto& entry : EnumTable<E>::entries) {
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

template <TabledEnum E>
Result<E> parse_enum(std::string_view text) {
  for (const auto& entry : EnumTable<E>::entries)
    if (equal_ignoring_case(entry.name, text)) return entry.value;
  std::vector<std::string_view> names;
  for (const auto& entry : EnumTable<E>::entries) names.push_back(entry.name);
  return bad_input("unknown " + std::string(EnumTable<E>::kind) + " '" + std::string(text) + "'" +
                   did_you_mean(text, names) + " (one of: " + enum_names<E>() + ")");
}

}  // namespace railyard::sim
