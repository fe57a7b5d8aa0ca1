#include "tools/cli/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace railyard::cli {
namespace {

struct Unit {
  double factor;
  std::string_view name;
};

// In the largest unit of which there is at least one.
std::string in_units(double value, std::span<const Unit> units) {
  const Unit* chosen = &units.front();
  for (const Unit& unit : units)
    if (std::abs(value) >= unit.factor * 0.99995) chosen = &unit;
  return fmt::format("{} {}", digits(value / chosen->factor), chosen->name);
}

constexpr std::array kTimes{Unit{1, "ps"}, Unit{1e3, "ns"}, Unit{1e6, "us"}, Unit{1e9, "ms"},
                            Unit{1e12, "s"}};
constexpr std::array kSizes{Unit{1, "B"}, Unit{0x1p10, "KiB"}, Unit{0x1p20, "MiB"},
                            Unit{0x1p30, "GiB"}, Unit{0x1p40, "TiB"}};
constexpr std::array kRates{Unit{1, "B/s"}, Unit{1e3, "kB/s"}, Unit{1e6, "MB/s"},
                            Unit{1e9, "GB/s"}};
constexpr std::array kDecimalSizes{Unit{1, "B"}, Unit{1e3, "kB"}, Unit{1e6, "MB"}, Unit{1e9, "GB"},
                                   Unit{1e12, "TB"}};

}  // namespace

std::string digits(double value) {
  const double size = std::abs(value);
  if (value == 0) return "0";
  if (!std::isfinite(value) || size >= 1e15 || size < 1e-3) return fmt::format("{:.4g}", value);
  const int before = std::max(1, static_cast<int>(std::floor(std::log10(size) + 1e-9)) + 1);
  std::string text = fmt::format("{:.{}f}", value, std::max(0, 4 - before));
  if (text.find('.') == std::string::npos) return text;
  // "64.00" says no more than "64" where the value is exact.
  if (value == std::floor(value)) text.erase(text.find('.'));
  return text;
}

std::string human(sim::Duration duration) {
  if (duration.count() == 0) return "0 us";
  return in_units(static_cast<double>(duration.count()), kTimes);
}

std::string human(sim::Bytes size) { return in_units(static_cast<double>(size.raw()), kSizes); }

std::string human(sim::Bandwidth rate) {
  return in_units(static_cast<double>(rate.raw()) / static_cast<double>(sim::kBandwidthScale),
                  kRates);
}

std::string human_seconds(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string human_bytes(double size) { return in_units(size, kDecimalSizes); }

std::string count(std::int64_t n) {
  std::string text = std::to_string(n);
  const std::size_t first = n < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string change(double ratio) {
  const double percents = ratio * 100;
  if (std::abs(percents) < 0.005) return "0 %";
  return std::abs(percents) < 0.95 ? fmt::format("{:+.2f} %", percents)
                                   : fmt::format("{:+.1f} %", percents);
}

double exact_us(sim::Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

double exact_gb_per_s(sim::Bandwidth rate) {
  return static_cast<double>(rate.raw()) / static_cast<double>(sim::kBandwidthScale) / 1e9;
}

std::string hex(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace railyard::cli
