#include "sim/parameters.h"

#include <fmt/format.h>

#include <optional>
#include <type_traits>

#include "sim/parameter_groups.h"

namespace railyard::sim {
namespace {

// What a value may be, in B/s, FLOP/s, bytes, seconds or by itself. Far beyond any hardware, but
// near enough that times computed from it stay on the clock.
struct Range {
  double least;
  double most;
  bool or_zero;  // "no limit", "none", "no delay"
  const char* text;
};

constexpr Range kShare{0.001, 1, false, "0.001 to 1"};
constexpr Range kDelay{0, 10, true, "at most 10 s"};
constexpr Range kRate{1e6, 1e14, true, "1 MB/s to 100 TB/s, or 0 for no limit"};
constexpr Range kMemoryRate{1e9, 1e14, false, "1 GB/s to 100 TB/s"};
constexpr Range kMemorySize{1e6, 1e15, false, "1 MB to 1 PB"};
constexpr Range kMessage{1, 1e9, true, "1 B to 1 GB, or 0"};
constexpr Range kPeak{1e9, 1e18, false, "1 GFLOP/s to 1,000 PFLOP/s"};
constexpr Range kPeakOrNone{1e9, 1e18, true, "1 GFLOP/s to 1,000 PFLOP/s, or 0 for none"};
constexpr Range kUnits{1, 100'000, false, "1 to 100,000"};
constexpr Range kFactor{0, 100, true, "0 to 100"};

template <typename T>
Range range_of(std::string_view name) {
  if constexpr (std::is_same_v<T, Duration>) return kDelay;
  if constexpr (std::is_same_v<T, Bandwidth>) return name == "hbm_bandwidth" ? kMemoryRate : kRate;
  if constexpr (std::is_same_v<T, Bytes>) return name == "hbm_capacity" ? kMemorySize : kMessage;
  if constexpr (std::is_same_v<T, FlopsRate>) return name == "peak_tf32" ? kPeakOrNone : kPeak;
  if constexpr (std::is_same_v<T, int>) return kUnits;
  return name.ends_with("efficiency") ? kShare : kFactor;
}

double magnitude(int value) { return value; }
double magnitude(double value) { return value; }
double magnitude(FlopsRate value) { return value.per_second; }
double magnitude(Bytes value) { return static_cast<double>(value.raw()); }
double magnitude(Bandwidth value) { return to_gigabytes_per_second(value) * 1e9; }
double magnitude(Duration value) { return to_seconds(value); }

// False for NaN, too.
bool fits(double value, const Range& range) {
  return (value >= range.least && value <= range.most) || (range.or_zero && value == 0);
}

template <typename Struct>
Result<void> check_fields(const Struct& parameters, const std::string& prefix) {
  std::optional<Error> error;
  for_each_field<Struct>([&](const auto& field) {
    const auto value = parameters.*field.member;
    const Range range = range_of<std::remove_const_t<decltype(value)>>(field.name);
    if (!error && !fits(magnitude(value), range))
      error = bad_input(fmt::format("must be {} ({})", range.text, field.doc),
                        fmt::format("{}.{}", prefix, field.name));
  });
  if (error) return *error;
  return {};
}

}  // namespace

Result<void> validate(const Parameters& parameters) {
  Result<void> valid;
  for_each_group(parameters, [&](const std::string& prefix, const auto& group) {
    if (valid.ok()) valid = check_fields(group, prefix);
  });
  return valid;
}

}  // namespace railyard::sim
