// From a tree of text to typed values. Every struct of a scenario has one function that walks its
// keys with a MapReader; what the reader was not asked for is an unknown key.
//
//   MapReader reader(place);                       // place = node + dotted path
//   reader.required("nodes", spec.nodes, 1, 100'000);
//   reader.optional("link_rate", spec.link_rate);  // left alone where the key is absent
//   return reader.finish();                        // the first error, or nothing
//
// One error is reported, on one line: "file.yaml:12:5: cluster.nodes: a whole number is expected".
// An unknown key comes before a wrong value and that before a missing key, since a misspelt key is
// often the reason for both.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "scenarios/document.h"
#include "sim/enum_table.h"
#include "sim/field_table.h"
#include "sim/parameters.h"
#include "sim/units.h"

namespace railyard::scenarios {

// A node and what it is called.
struct Place {
  const Node* node = nullptr;
  std::string path;  // "cluster.nodes"; empty at the top

  [[nodiscard]] Error error(std::string_view message) const;
  [[nodiscard]] Place item(std::size_t index) const;  // of a list
};

// A path that was written at `place`, relative to the file it stands in.
std::string beside(const Place& place, const std::string& path);

// Errors of other folders get the place where the user wrote the value.
Error at(const Place& place, const Error& error);

// The kind that is expected, or an error that says so: "a map is expected, not a list".
Result<void> expect(const Place& place, Node::Kind kind);

Result<void> decode(const Place& place, bool& out);
Result<void> decode(const Place& place, std::string& out);  // not empty, at most 4,096 bytes
Result<void> decode(const Place& place, sim::Bytes& out);   // at most 2^53
Result<void> decode(const Place& place, sim::Bandwidth& out);
Result<void> decode(const Place& place, sim::Duration& out);
Result<void> decode(const Place& place, sim::FlopsRate& out);
Result<void> decode_integer(const Place& place, std::int64_t& out, std::int64_t least,
                            std::int64_t most);
Result<void> decode_real(const Place& place, double& out, double least, double most);

// Numbers without a stated range take their type's (reals: any finite number).
template <typename T>
requires std::is_arithmetic_v<T> Result<void> decode(const Place& place, T& out, T least, T most) {
  if constexpr (std::is_floating_point_v<T>) {
    return decode_real(place, out, least, most);
  } else {
    // Counts above 2^53 are never meant, and other tools could not read them back.
    constexpr std::int64_t kMost = std::int64_t{1} << 53;
    std::int64_t value = 0;
    const auto clamp = [](T limit) {
      return limit > T{} && std::cmp_greater(limit, kMost) ? kMost
                                                           : static_cast<std::int64_t>(limit);
    };
    RAILYARD_TRY(decode_integer(place, value, clamp(least), clamp(most)));
    out = static_cast<T>(value);
    return {};
  }
}

template <typename T>
requires(std::is_arithmetic_v<T> &&
         !std::is_same_v<T, bool>) Result<void> decode(const Place& place, T& out) {
  return decode(place, out, std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max());
}

template <sim::TabledEnum E>
Result<void> decode(const Place& place, E& out) {
  std::string text;
  RAILYARD_TRY(decode(place, text));
  auto parsed = sim::parse_enum<E>(text);
  if (!parsed.ok()) return place.error(parsed.error().message);
  out = parsed.value();
  return {};
}

template <typename T>
Result<void> decode(const Place& place, std::optional<T>& out) {
  T value{};
  RAILYARD_TRY(decode(place, value));
  out = std::move(value);
  return {};
}

template <typename T>
Result<void> decode(const Place& place, std::vector<T>& out) {
  RAILYARD_TRY(expect(place, Node::Kind::list));
  out.clear();
  out.reserve(place.node->items.size());
  for (std::size_t i = 0; i < place.node->items.size(); ++i) {
    T value{};
    RAILYARD_TRY(decode(place.item(i), value));
    out.push_back(std::move(value));
  }
  return {};
}

class MapReader {
 public:
  explicit MapReader(Place place);

  // The value of a key, which becomes a known one; null if it is absent. A key without a value
  // ("nodes:") is an error.
  std::optional<Place> find(std::string_view key);
  std::optional<Place> find_required(std::string_view key);

  // Reads a key into `out` with decode(place, out, limits...). True if the key was there and good.
  template <typename T, typename... Limits>
  bool optional(std::string_view key, T& out, Limits... limits) {
    const std::optional<Place> place = find(key);
    return place && take(decode_limited(*place, out, limits...));
  }
  template <typename T, typename... Limits>
  bool required(std::string_view key, T& out, Limits... limits) {
    const std::optional<Place> place = find_required(key);
    return place && take(decode_limited(*place, out, limits...));
  }

  // Notes the outcome of a check made by the caller; the first failure stays. True if it is good.
  bool take(Result<void> outcome);

  [[nodiscard]] bool has(std::string_view key) const { return place_.node->find(key) != nullptr; }
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] Result<void> finish() const;

 private:
  template <typename T, typename... Limits>
  static Result<void> decode_limited(const Place& place, T& out, Limits... limits) {
    if constexpr (std::is_arithmetic_v<T>) {
      return decode(place, out, static_cast<T>(limits)...);
    } else {
      return decode(place, out, limits...);
    }
  }

  Place place_;
  std::vector<std::string_view> known_;
  std::optional<Error> error_;
  std::optional<Error> missing_;
};

// Any struct with a FieldTable: all keys optional, absent ones keep their value.
template <typename T>
void read_fields(MapReader& reader, T& out) {
  sim::for_each_field<T>(
      [&](const auto& field) { reader.optional(field.name, out.*field.member); });
}

template <typename T>
requires requires { sim::FieldTable<T>::fields; }
Result<void> decode(const Place& place, T& out) {
  MapReader reader(place);
  read_fields(reader, out);
  return reader.finish();
}

}  // namespace railyard::scenarios
