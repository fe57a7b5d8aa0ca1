#include "sim/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

namespace railyard::sim {
namespace {

constexpr std::int64_t kPicosecondsPerSecond = 1'000'000'000'000;

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array kByteUnits{Unit{"B", 1},      Unit{"kB", 1e3},         Unit{"KB", 1e3},
                                Unit{"MB", 1e6},   Unit{"GB", 1e9},         Unit{"TB", 1e12},
                                Unit{"KiB", 1024}, Unit{"MiB", 1048576},    Unit{"GiB", 1073741824},
                                Unit{"TiB", 1099511627776.0}};
constexpr std::array kBandwidthUnits{
    Unit{"B/s", 1},          Unit{"kB/s", 1e3},       Unit{"MB/s", 1e6},     Unit{"GB/s", 1e9},
    Unit{"TB/s", 1e12},      Unit{"MiB/s", 1048576},  Unit{"GiB/s", 1073741824},
    Unit{"b/s", 0.125},      Unit{"kb/s", 125},       Unit{"Mb/s", 125e3},   Unit{"Gb/s", 125e6},
    Unit{"Tb/s", 125e9},     Unit{"Gbps", 125e6},     Unit{"Mbps", 125e3},   Unit{"Tbps", 125e9}};
constexpr std::array kDurationUnits{Unit{"ps", 1},   Unit{"ns", 1e3},   Unit{"us", 1e6},
                                    Unit{"ms", 1e9}, Unit{"s", 1e12},   Unit{"min", 60e12},
                                    Unit{"h", 3600e12}};
constexpr std::array kFlopsUnits{Unit{"FLOP/s", 1},     Unit{"GFLOP/s", 1e9},
                                 Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15}};

template <std::size_t N>
std::string unit_names(const std::array<Unit, N>& units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

// The number before the unit, times the unit's factor and `scale`, as an integer count.
template <std::size_t N>
Result<double> parse_quantity(std::string_view text, const char* kind,
                              const std::array<Unit, N>& units) {
  const auto fail = [&](const std::string& why) {
    return bad_input(fmt::format("'{}' is not a {}: {} (units: {})", text.substr(0, 40), kind, why,
                                 unit_names(units)));
  };
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return fail("it must start with a number");
  if (number < 0) return fail("it is negative");
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (unit.empty()) return fail("the unit is missing");
  for (const Unit& candidate : units)
    if (candidate.name == unit) return number * candidate.factor;
  return fail("unknown unit '" + std::string(unit.substr(0, 20)) + "'");
}

Result<std::int64_t> to_count(double value, std::string_view text, const char* kind) {
  if (value >= 9.2e18)
    return bad_input(fmt::format("'{}' is too large for a {}", text.substr(0, 40), kind));
  return static_cast<std::int64_t>(std::llround(value));
}

// The largest unit of `units` (given largest last) that divides `value` exactly or with a short
// decimal; used so that to_text(parse(x)) reads like x.
std::string shortest(double value, std::span<const Unit> units) {
  std::string best;
  for (const Unit& unit : units) {
    if (value < unit.factor && unit.factor > 1) continue;
    std::string text = fmt::format("{}{}", value / unit.factor, unit.name);
    if (best.empty() || text.size() <= best.size()) best = std::move(text);
  }
  return best;
}

}  // namespace

Duration transfer_time(Bytes size, Bandwidth rate) {
  RAILYARD_CHECK(rate.raw() > 0, "bandwidth must be positive");
  RAILYARD_CHECK(size.raw() >= 0, "a size is never negative");
  const Uint128 work = Uint128(static_cast<std::uint64_t>(size.raw())) * kBandwidthScale *
                       static_cast<std::uint64_t>(kPicosecondsPerSecond);
  const auto divisor = static_cast<std::uint64_t>(rate.raw());
  const Uint128 count = (work + divisor - 1) / divisor;
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return Duration(count > kMax ? std::numeric_limits<std::int64_t>::max()
                               : static_cast<std::int64_t>(count));
}

Bandwidth scale(Bandwidth rate, double ratio) {
  return Bandwidth::from_raw(static_cast<std::int64_t>(static_cast<double>(rate.raw()) * ratio));
}

Duration scale(Duration duration, double ratio) {
  return Duration(std::llround(static_cast<double>(duration.count()) * ratio));
}

Duration compute_time(Flops work, double flops_per_second) {
  RAILYARD_CHECK(flops_per_second > 0, "FLOP rate must be positive");
  return Duration(static_cast<std::int64_t>(
      std::ceil(static_cast<double>(work.raw()) / flops_per_second * 1e12)));
}

Result<Bytes> parse_bytes(std::string_view text) {
  RAILYARD_ASSIGN(const double value, parse_quantity(text, "size", kByteUnits));
  RAILYARD_ASSIGN(const std::int64_t count, to_count(value, text, "size"));
  return bytes(count);
}

Result<Bandwidth> parse_bandwidth(std::string_view text) {
  RAILYARD_ASSIGN(const double value, parse_quantity(text, "bandwidth", kBandwidthUnits));
  RAILYARD_ASSIGN(const std::int64_t raw,
                  to_count(value * static_cast<double>(kBandwidthScale), text, "bandwidth"));
  return Bandwidth::from_raw(raw);
}

Result<Duration> parse_duration(std::string_view text) {
  RAILYARD_ASSIGN(const double value, parse_quantity(text, "duration", kDurationUnits));
  RAILYARD_ASSIGN(const std::int64_t count, to_count(value, text, "duration"));
  return Duration(count);
}

Result<double> parse_flops_rate(std::string_view text) {
  return parse_quantity(text, "compute rate", kFlopsUnits);
}

std::string to_text(Bytes size) {
  static constexpr std::array kUnits{Unit{"B", 1}, Unit{"KiB", 1024}, Unit{"MiB", 1048576},
                                     Unit{"GiB", 1073741824}};
  for (std::size_t i = kUnits.size(); i-- > 1;) {
    const auto factor = static_cast<std::int64_t>(kUnits[i].factor);
    if (size.raw() >= factor && size.raw() % factor == 0)
      return fmt::format("{}{}", size.raw() / factor, kUnits[i].name);
  }
  return fmt::format("{}B", size.raw());
}

std::string to_text(Bandwidth rate) {
  static constexpr std::array kUnits{Unit{"B/s", 1}, Unit{"MB/s", 1e6}, Unit{"GB/s", 1e9}};
  return shortest(static_cast<double>(rate.raw()) / static_cast<double>(kBandwidthScale), kUnits);
}

std::string to_text(Duration duration) {
  static constexpr std::array kUnits{Unit{"ps", 1}, Unit{"ns", 1e3}, Unit{"us", 1e6},
                                     Unit{"ms", 1e9}, Unit{"s", 1e12}};
  return shortest(static_cast<double>(duration.count()), kUnits);
}

}  // namespace railyard::sim
