#include "scenarios/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "scenarios/text_fence.h"

namespace railyard::scenarios {
namespace {

constexpr std::size_t kMaxMessage = 600;
constexpr std::size_t kMaxPath = 200;
constexpr std::size_t kMaxText = 4096;

std::string_view kind_name(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::null: return "nothing";
    case Node::Kind::scalar: return "a single value";
    case Node::Kind::list: return "a list";
    case Node::Kind::map: return "a map";
  }
  return "?";
}

// The text of an unquoted scalar.
Result<std::string_view> plain_text(const Place& place, std::string_view expected) {
  if (place.node->kind != Node::Kind::scalar)
    return place.error(
        fmt::format("{} is expected, not {}", expected, kind_name(place.node->kind)));
  if (place.node->quoted)
    return place.error(fmt::format("{} is expected, not text in quotes", expected));
  return std::string_view(place.node->scalar);
}

// Quantities with a unit may be written in quotes too.
template <typename T, typename Parse>
Result<void> decode_quantity(const Place& place, Parse parse, T& out) {
  RAILYARD_TRY(expect(place, Node::Kind::scalar));
  auto parsed = parse(place.node->scalar);
  if (!parsed.ok()) return place.error(parsed.error().message);
  out = T(parsed.value());
  return {};
}

template <typename T>
bool parse_whole(std::string_view text, T& value) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, value);
  return failed == std::errc() && stop == end;
}

}  // namespace

Error Place::error(std::string_view message) const {
  std::string where = node->mark.text();
  if (!path.empty()) where += (where.empty() ? "" : ": ") + printable(path, kMaxPath);
  return sim::bad_input(printable(message, kMaxMessage), std::move(where));
}

Place Place::item(std::size_t index) const {
  return {&node->items[index], fmt::format("{}[{}]", path, index)};
}

std::string beside(const Place& place, const std::string& path) {
  namespace fs = std::filesystem;
  const Mark& mark = place.node->mark;
  const bool in_file = mark.source && mark.line > 0;
  return ((in_file ? fs::path(*mark.source).parent_path() : fs::path()) / path).string();
}

Error at(const Place& place, const Error& error) {
  Error placed =
      place.error(error.where.empty() ? error.message : error.where + ": " + error.message);
  placed.code = error.code;
  return placed;
}

Result<void> expect(const Place& place, Node::Kind kind) {
  if (place.node->kind == kind) return {};
  return place.error(
      fmt::format("{} is expected, not {}", kind_name(kind), kind_name(place.node->kind)));
}

Result<void> decode(const Place& place, bool& out) {
  RAILYARD_ASSIGN(const std::string_view text, plain_text(place, "true or false"));
  if (text != "true" && text != "false")
    return place.error(fmt::format("true or false is expected, not '{}'", printable(text, 40)));
  out = text == "true";
  return {};
}

Result<void> decode(const Place& place, std::string& out) {
  RAILYARD_TRY(expect(place, Node::Kind::scalar));
  const std::string& text = place.node->scalar;
  if (text.empty()) return place.error("the text is empty");
  if (text.size() > kMaxText)
    return place.error(fmt::format("the text is longer than {} bytes", kMaxText));
  out = text;
  return {};
}

Result<void> decode(const Place& place, sim::Bytes& out) {
  RAILYARD_TRY(decode_quantity(place, sim::parse_bytes, out));
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  if (out.raw() > kMost) return place.error("a size is at most 2^53 B (8 PiB)");
  return {};
}

Result<void> decode(const Place& place, sim::Bandwidth& out) {
  RAILYARD_TRY(decode_quantity(place, sim::parse_bandwidth, out));
  // Slower, and shares of a link among many flows round to nothing; 0 means "no limit" in profiles.
  if (out.raw() != 0 && out < sim::bytes_per_second(1'000)) return place.error("is below 1kB/s");
  if (out > sim::bytes_per_second(100'000'000'000'000)) return place.error("is above 100TB/s");
  return {};
}

Result<void> decode(const Place& place, sim::Duration& out) {
  RAILYARD_TRY(decode_quantity(place, sim::parse_duration, out));
  constexpr sim::Duration kDay = sim::microseconds(86'400'000'000);
  if (out > kDay) return place.error("is longer than 24h");
  return {};
}

Result<void> decode(const Place& place, sim::FlopsRate& out) {
  return decode_quantity(place, sim::parse_flops_rate, out.per_second);
}

Result<void> decode_integer(const Place& place, std::int64_t& out, std::int64_t least,
                            std::int64_t most) {
  RAILYARD_ASSIGN(const std::string_view text, plain_text(place, "a whole number"));
  std::int64_t value = 0;
  if (!parse_whole(text, value))
    return place.error(fmt::format("a whole number is expected, not '{}'", printable(text, 40)));
  if (value < least || value > most)
    return place.error(fmt::format("{} is out of range ({} to {})", value, least, most));
  out = value;
  return {};
}

Result<void> decode_real(const Place& place, double& out, double least, double most) {
  RAILYARD_ASSIGN(const std::string_view text, plain_text(place, "a number"));
  double value = 0;
  if (!parse_whole(text, value) || !std::isfinite(value))
    return place.error(fmt::format("a number is expected, not '{}'", printable(text, 40)));
  if (value < least || value > most)
    return place.error(fmt::format("{} is out of range ({} to {})", value, least, most));
  out = value;
  return {};
}

MapReader::MapReader(Place place) : place_(std::move(place)) {
  take(expect(place_, Node::Kind::map));
}

std::optional<Place> MapReader::find(std::string_view key) {
  known_.push_back(key);
  const Node* node = place_.node->find(key);
  if (node == nullptr) return std::nullopt;
  Place found{node, place_.path.empty() ? std::string(key) : place_.path + "." + std::string(key)};
  if (node->kind == Node::Kind::null) {
    take(found.error("the key has no value"));
    return std::nullopt;
  }
  return found;
}

std::optional<Place> MapReader::find_required(std::string_view key) {
  if (!has(key) && !missing_) missing_ = place_.error(fmt::format("the key '{}' is missing", key));
  return find(key);
}

bool MapReader::take(Result<void> outcome) {
  if (!outcome.ok() && !error_) error_ = outcome.error();
  return outcome.ok();
}

Result<void> MapReader::finish() const {
  if (place_.node->kind != Node::Kind::map) return *error_;
  for (const Entry& entry : place_.node->entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    std::string names;
    for (const std::string_view name : known_)
      names += (names.empty() ? "" : ", ") + std::string(name);
    Node key;
    key.mark = entry.mark;
    return Place{&key, place_.path}.error(fmt::format("unknown key '{}'{} (keys: {})",
                                                      printable(entry.key, 60),
                                                      sim::did_you_mean(entry.key, known_), names));
  }
  if (error_) return *error_;
  if (missing_) return *missing_;
  return {};
}

}  // namespace railyard::scenarios
