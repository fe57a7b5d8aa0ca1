#include "sim/parameters.h"

#include <fmt/format.h>

#include <cmath>

namespace railyard::sim {
namespace {

// Longer than any hardware or software delay that these parameters mean; sums stay far from the
// clock's end.
constexpr Duration kLongestDelay = microseconds(10'000'000);

enum class Range { positive, not_negative, share };  // share: (0, 1]

// Names whose values are shares of a peak or line rate.
bool is_share(std::string_view name) { return name.ends_with("efficiency"); }

// Peaks and sizes that a GPU cannot be without. A bandwidth of 0 elsewhere means "no limit", and
// peak_tf32 of 0 "this GPU has none".
bool is_essential(std::string_view name) {
  return name == "sms" || name == "peak_fp32" || name == "peak_fp16" || name == "hbm_bandwidth" ||
         name == "hbm_capacity";
}

Range range_of(std::string_view name) {
  if (is_share(name)) return Range::share;
  return is_essential(name) ? Range::positive : Range::not_negative;
}

const char* check_number(double value, Range range) {
  if (!std::isfinite(value)) return "must be a finite number";
  if (range == Range::share && !(value > 0 && value <= 1)) return "must be above 0 and at most 1";
  if (range == Range::positive && value <= 0) return "must be positive";
  return value < 0 ? "must not be negative" : nullptr;
}

const char* check_value(int value, Range range) { return check_number(value, range); }
const char* check_value(double value, Range range) { return check_number(value, range); }
const char* check_value(FlopsRate value, Range range) {
  return check_number(value.per_second, range);
}
const char* check_value(Bytes value, Range range) {
  return check_number(static_cast<double>(value.raw()), range);
}
const char* check_value(Bandwidth value, Range range) {
  return check_number(static_cast<double>(value.raw()), range);
}
const char* check_value(Duration value, Range range) {
  if (value > kLongestDelay) return "must be at most 10 s";
  return check_number(static_cast<double>(value.count()), range);
}

template <typename Struct>
Result<void> check_fields(const Struct& parameters, const std::string& prefix) {
  std::optional<Error> error;
  for_each_field<Struct>([&](const auto& field) {
    const char* wrong = check_value(parameters.*field.member, range_of(field.name));
    if (wrong != nullptr && !error)
      error = bad_input(fmt::format("{} ({})", wrong, field.doc),
                        fmt::format("{}.{}", prefix, field.name));
  });
  if (error) return *error;
  return {};
}

}  // namespace

Result<void> validate(const Parameters& parameters) {
  RAILYARD_TRY(check_fields(parameters.gpu, "gpu"));
  RAILYARD_TRY(check_fields(parameters.host, "host"));
  RAILYARD_TRY(check_fields(parameters.network, "network"));
  for (const auto& entry : EnumTable<LinkClass>::entries)
    RAILYARD_TRY(check_fields(parameters.link(entry.value), fmt::format("links.{}", entry.name)));
  for (const auto& entry : EnumTable<Protocol>::entries)
    RAILYARD_TRY(
        check_fields(parameters.protocol(entry.value), fmt::format("protocols.{}", entry.name)));
  return {};
}

}  // namespace railyard::sim
