#include "sim/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

namespace railyard::sim {
namespace {

constexpr std::int64_t kPicosecondsPerSecond = 1'000'000'000'000;
constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();
constexpr double kTwoTo63 = 9223372036854775808.0;

struct Unit {
  std::string_view name;
  std::int64_t factor;  // raw counts in one unit
};

constexpr std::int64_t k10(int exponent) {
  std::int64_t power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}
constexpr std::int64_t k2(int exponent) { return std::int64_t{1} << exponent; }
constexpr std::int64_t kBit = kBandwidthScale / 8;  // b/s

constexpr std::array kByteUnits{Unit{"B", 1},        Unit{"kB", k10(3)},  Unit{"KB", k10(3)},
                                Unit{"MB", k10(6)},  Unit{"GB", k10(9)},  Unit{"TB", k10(12)},
                                Unit{"KiB", k2(10)}, Unit{"MiB", k2(20)}, Unit{"GiB", k2(30)},
                                Unit{"TiB", k2(40)}};
constexpr std::array kBandwidthUnits{Unit{"B/s", kBandwidthScale},
                                     Unit{"kB/s", kBandwidthScale* k10(3)},
                                     Unit{"MB/s", kBandwidthScale* k10(6)},
                                     Unit{"GB/s", kBandwidthScale* k10(9)},
                                     Unit{"TB/s", kBandwidthScale* k10(12)},
                                     Unit{"MiB/s", kBandwidthScale* k2(20)},
                                     Unit{"GiB/s", kBandwidthScale* k2(30)},
                                     Unit{"b/s", kBit},
                                     Unit{"kb/s", kBit* k10(3)},
                                     Unit{"Mb/s", kBit* k10(6)},
                                     Unit{"Gb/s", kBit* k10(9)},
                                     Unit{"Tb/s", kBit* k10(12)},
                                     Unit{"Gbps", kBit* k10(9)},
                                     Unit{"Mbps", kBit* k10(6)},
                                     Unit{"Tbps", kBit* k10(12)}};
constexpr std::array kDurationUnits{
    Unit{"ps", 1},      Unit{"ns", k10(3)},        Unit{"us", k10(6)},       Unit{"ms", k10(9)},
    Unit{"s", k10(12)}, Unit{"min", 60 * k10(12)}, Unit{"h", 3600 * k10(12)}};
constexpr std::array kFlopsUnits{Unit{"FLOP/s", 1}, Unit{"GFLOP/s", k10(9)},
                                 Unit{"TFLOP/s", k10(12)}, Unit{"PFLOP/s", k10(15)}};

std::string unit_names(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// mantissa * 10^exponent, exact as long as the digits fit into 64 bits (further ones are cut off).
struct Decimal {
  bool negative = false;
  std::uint64_t mantissa = 0;
  int exponent = 0;
  std::string_view text;  // of the number
};

// "e+12" at the front of `text`; moves past it. An 'e' without digits is the beginning of a unit.
int take_exponent(std::string_view& text) {
  constexpr int kHuge = 9'999;
  if (text.empty() || (text[0] != 'e' && text[0] != 'E')) return 0;
  std::size_t at = 1;
  const bool negative = at < text.size() && text[at] == '-';
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  if (at == text.size() || !is_digit(text[at])) return 0;
  int exponent = 0;
  for (; at < text.size() && is_digit(text[at]); ++at)
    exponent = std::min(kHuge, exponent * 10 + (text[at] - '0'));
  text.remove_prefix(at);
  return negative ? -exponent : exponent;
}

// The number at the front of `text`: digits, a point, an exponent; no sign but '-', no inf, no hex.
std::optional<Decimal> take_decimal(std::string_view text) {
  constexpr std::uint64_t kRoom = (std::numeric_limits<std::uint64_t>::max() - 9) / 10;
  Decimal number;
  std::string_view rest = text;
  number.negative = !rest.empty() && rest[0] == '-';
  if (number.negative) rest.remove_prefix(1);
  bool point = false;
  bool digits = false;
  for (; !rest.empty() && (is_digit(rest[0]) || (rest[0] == '.' && !point));
       rest.remove_prefix(1)) {
    if (rest[0] == '.') {
      point = true;
      continue;
    }
    digits = true;
    const bool fits = number.mantissa <= kRoom;
    if (fits) number.mantissa = number.mantissa * 10 + static_cast<std::uint64_t>(rest[0] - '0');
    number.exponent += (fits ? 0 : 1) - (point ? 1 : 0);
  }
  if (!digits) return std::nullopt;
  number.exponent += take_exponent(rest);
  number.text = text.substr(0, text.size() - rest.size());
  return number;
}

struct Quantified {
  Decimal number;
  std::int64_t factor = 1;
};

// Splits a text into number and unit.
Result<Quantified> parse_quantity(std::string_view text, const char* kind,
                                  std::span<const Unit> units) {
  const auto fail = [&](const std::string& why) {
    return bad_input(fmt::format("'{}' is not a {}: {} (units: {})", text.substr(0, 40), kind, why,
                                 unit_names(units)));
  };
  const std::optional<Decimal> number = take_decimal(text);
  if (!number) return fail("it must start with a number");
  if (number->negative && number->mantissa != 0) return fail("it is negative");
  std::string_view unit = text.substr(number->text.size());
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (unit.empty()) return fail("the unit is missing");
  for (const Unit& candidate : units)
    if (candidate.name == unit) return Quantified{*number, candidate.factor};
  return fail("unknown unit '" + std::string(unit.substr(0, 20)) + "'");
}

Error too_large(std::string_view text, const char* kind) {
  return bad_input(fmt::format("'{}' is too large for a {}", text.substr(0, 40), kind));
}

// The quantity as a raw count, rounded to nearest, exactly.
Result<std::int64_t> parse_count(std::string_view text, const char* kind,
                                 std::span<const Unit> units) {
  RAILYARD_ASSIGN(const Quantified quantity, parse_quantity(text, kind, units));
  // At most 64 + 58 bits: see the largest factor above.
  Uint128 count = Uint128(quantity.number.mantissa) * static_cast<std::uint64_t>(quantity.factor);
  for (int e = quantity.number.exponent; e > 0 && count != 0; --e) {
    count *= 10;
    if (count > static_cast<Uint128>(kMaxCount)) return too_large(text, kind);
  }
  constexpr int kMaxDivisorExponent = 38;  // 10^38 < 2^127
  if (quantity.number.exponent < -kMaxDivisorExponent) return std::int64_t{0};
  Uint128 divisor = 1;
  for (int e = quantity.number.exponent; e < 0; ++e) divisor *= 10;
  count = count / divisor + (count % divisor >= divisor - divisor / 2 ? 1 : 0);
  if (count > static_cast<Uint128>(kMaxCount)) return too_large(text, kind);
  return static_cast<std::int64_t>(count);
}

// The decimal with the fewest digits that parses back to `raw` in a unit of `factor`.
std::string shortest_decimal(std::uint64_t raw, std::int64_t factor) {
  const auto unit = static_cast<std::uint64_t>(factor);
  Uint128 power = 1;
  int decimals = 0;
  Uint128 digits = 0;
  for (; decimals < 19; ++decimals, power *= 10) {
    digits = (Uint128(raw) * power + unit / 2) / unit;
    if ((digits * unit + power / 2) / power == raw) break;
  }
  std::string text = fmt::format("{}", static_cast<std::uint64_t>(digits / power));
  if (decimals > 0)
    text += fmt::format(".{:0{}}", static_cast<std::uint64_t>(digits % power), decimals);
  return text;
}

// In the unit (smallest first) that gives the shortest text; the largest of those that do.
std::string shortest(std::int64_t raw, std::span<const Unit> units) {
  const std::uint64_t magnitude =
      raw < 0 ? ~static_cast<std::uint64_t>(raw) + 1 : static_cast<std::uint64_t>(raw);
  std::string best;
  for (const Unit& unit : units) {
    if (!best.empty() && magnitude < static_cast<std::uint64_t>(unit.factor)) continue;
    std::string text = shortest_decimal(magnitude, unit.factor) + std::string(unit.name);
    if (best.empty() || text.size() <= best.size()) best = std::move(text);
  }
  return raw < 0 ? "-" + best : best;
}

// A whole number of picoseconds as a duration.
Duration saturated(double picoseconds_count) {
  if (picoseconds_count >= kTwoTo63) return Duration::max();
  if (picoseconds_count < -kTwoTo63) return Duration::min();
  return Duration(static_cast<std::int64_t>(picoseconds_count));
}

}  // namespace

Duration transfer_time(Bytes size, Bandwidth rate) {
  RAILYARD_CHECK(rate.raw() > 0, "bandwidth must be positive");
  RAILYARD_CHECK(size.raw() >= 0, "a size is never negative");
  const Uint128 work = Uint128(static_cast<std::uint64_t>(size.raw())) * kBandwidthScale *
                       static_cast<std::uint64_t>(kPicosecondsPerSecond);
  const auto divisor = static_cast<std::uint64_t>(rate.raw());
  const Uint128 count = (work + divisor - 1) / divisor;
  return Duration(count > static_cast<Uint128>(kMaxCount) ? kMaxCount
                                                          : static_cast<std::int64_t>(count));
}

Bandwidth scale(Bandwidth rate, double ratio) {
  const double raw = static_cast<double>(rate.raw()) * ratio;
  return Bandwidth::from_raw(raw < kTwoTo63 ? static_cast<std::int64_t>(raw) : kMaxCount);
}

Duration scale(Duration duration, double ratio) {
  return saturated(std::round(static_cast<double>(duration.count()) * ratio));
}

Duration compute_time(Flops work, double flops_per_second) {
  RAILYARD_CHECK(flops_per_second > 0, "FLOP rate must be positive");
  return saturated(std::ceil(static_cast<double>(work.raw()) / flops_per_second * 1e12));
}

Result<Bytes> parse_bytes(std::string_view text) {
  RAILYARD_ASSIGN(const std::int64_t count, parse_count(text, "size", kByteUnits));
  return bytes(count);
}

Result<Bandwidth> parse_bandwidth(std::string_view text) {
  RAILYARD_ASSIGN(const std::int64_t raw, parse_count(text, "bandwidth", kBandwidthUnits));
  return Bandwidth::from_raw(raw);
}

Result<Duration> parse_duration(std::string_view text) {
  RAILYARD_ASSIGN(const std::int64_t count, parse_count(text, "duration", kDurationUnits));
  return Duration(count);
}

Result<double> parse_flops_rate(std::string_view text) {
  RAILYARD_ASSIGN(const Quantified quantity, parse_quantity(text, "compute rate", kFlopsUnits));
  const std::string_view number = quantity.number.text;
  double value = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
  value *= static_cast<double>(quantity.factor);
  const bool huge = read.ec == std::errc::result_out_of_range && quantity.number.exponent > 0;
  if (huge || !std::isfinite(value)) return too_large(text, "compute rate");
  return std::abs(value);
}

std::string to_text(Bytes size) {
  static constexpr std::array kUnits{Unit{"KiB", k2(10)}, Unit{"MiB", k2(20)}, Unit{"GiB", k2(30)},
                                     Unit{"TiB", k2(40)}};
  for (std::size_t i = kUnits.size(); i-- > 0;)
    if (size.raw() >= kUnits[i].factor && size.raw() % kUnits[i].factor == 0)
      return fmt::format("{}{}", size.raw() / kUnits[i].factor, kUnits[i].name);
  return fmt::format("{}B", size.raw());
}

std::string to_text(Bandwidth rate) {
  static constexpr std::array kUnits{Unit{"B/s", kBandwidthScale},
                                     Unit{"MB/s", kBandwidthScale * k10(6)},
                                     Unit{"GB/s", kBandwidthScale * k10(9)}};
  return shortest(rate.raw(), kUnits);
}

std::string to_text(Duration duration) {
  static constexpr std::array kUnits{Unit{"ps", 1}, Unit{"ns", k10(3)}, Unit{"us", k10(6)},
                                     Unit{"ms", k10(9)}, Unit{"s", k10(12)}};
  return shortest(duration.count(), kUnits);
}

}  // namespace railyard::sim
