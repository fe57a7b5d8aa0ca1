// Quantities: time, bytes, bandwidth, floating-point work. Integers throughout, so that sums depend
// neither on order nor on grouping and results are bit-identical everywhere.
//
//   Duration   int64 picoseconds on SimClock (no now(); +-106 days)
//   Time       a point on SimClock; a run starts at Time{} = 0
//   Bytes      int64 bytes
//   Bandwidth  int64 in units of 2^-16 B/s (up to 140 TB/s; 400 Gb/s is exact)
//   Flops      int64 floating-point operations
//
// k, M, G, T are powers of 1000 and Ki, Mi, Gi, Ti powers of 1024; b is bit and B byte.
// Example: transfer_time(64_MiB, 25_GBps) == 2684354560 ps.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <ratio>
#include <string>
#include <string_view>

#include "sim/result.h"

namespace railyard::sim {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

struct SimClock {
  using rep = std::int64_t;
  using period = std::pico;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<SimClock>;
  static constexpr bool is_steady = true;
};
using Duration = SimClock::duration;
using Time = SimClock::time_point;

constexpr Duration picoseconds(std::int64_t n) { return Duration(n); }
constexpr Duration nanoseconds(std::int64_t n) { return Duration(n * 1'000); }
constexpr Duration microseconds(std::int64_t n) { return Duration(n * 1'000'000); }
constexpr double to_us(Duration d) { return static_cast<double>(d.count()) * 1e-6; }
constexpr double to_seconds(Duration d) { return static_cast<double>(d.count()) * 1e-12; }

// A tagged int64: only like adds to like, only counts scale.
template <typename Tag>
class Quantity {
 public:
  using Rep = std::int64_t;
  constexpr Quantity() = default;
  static constexpr Quantity from_raw(Rep raw) {
    Quantity q;
    q.raw_ = raw;
    return q;
  }
  [[nodiscard]] constexpr Rep raw() const { return raw_; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return from_raw(a.raw_ + b.raw_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return from_raw(a.raw_ - b.raw_); }
  friend constexpr Quantity operator*(Quantity a, Rep n) { return from_raw(a.raw_ * n); }
  friend constexpr Quantity operator*(Rep n, Quantity a) { return from_raw(a.raw_ * n); }
  friend constexpr Quantity operator/(Quantity a, Rep n) { return from_raw(a.raw_ / n); }
  friend constexpr Rep operator/(Quantity a, Quantity b) { return a.raw_ / b.raw_; }
  friend constexpr Quantity operator%(Quantity a, Quantity b) { return from_raw(a.raw_ % b.raw_); }
  constexpr Quantity& operator+=(Quantity b) { return *this = *this + b; }
  constexpr Quantity& operator-=(Quantity b) { return *this = *this - b; }

 private:
  Rep raw_ = 0;
};

using Bytes = Quantity<struct BytesTag>;
using Bandwidth = Quantity<struct BandwidthTag>;
using Flops = Quantity<struct FlopsTag>;

constexpr Bytes bytes(std::int64_t n) { return Bytes::from_raw(n); }
constexpr Flops flops(std::int64_t n) { return Flops::from_raw(n); }

inline constexpr std::int64_t kBandwidthScale = 65'536;  // raw units per B/s
constexpr Bandwidth bytes_per_second(std::int64_t n) {
  return Bandwidth::from_raw(n * kBandwidthScale);
}
constexpr Bandwidth gigabytes_per_second(double g) {
  return Bandwidth::from_raw(
      static_cast<std::int64_t>(g * 1e9 * static_cast<double>(kBandwidthScale)));
}
constexpr Bandwidth gigabits_per_second(double g) { return gigabytes_per_second(g / 8); }
constexpr double to_gigabytes_per_second(Bandwidth b) {
  return static_cast<double>(b.raw()) / static_cast<double>(kBandwidthScale) * 1e-9;
}

// The one place where bytes and bandwidth become time: ceil(bytes / bandwidth) in picoseconds.
// Zero bytes take no time; bandwidth must be positive. Saturates at Duration::max().
Duration transfer_time(Bytes size, Bandwidth rate);

// Scales a bandwidth by a ratio (an efficiency); rounds down.
Bandwidth scale(Bandwidth rate, double ratio);
// Scales a duration by a ratio; rounds to nearest.
Duration scale(Duration duration, double ratio);
// ceil(work / (peak * 1): time of `work` operations at `flops_per_second`, in picoseconds.
Duration compute_time(Flops work, double flops_per_second);

// Text with a unit, as in scenario files: "64MiB", "400Gb/s", "25GB/s", "1.5us", "312TFLOP/s".
// A bare number, an unknown unit, a negative or non-finite value is an error that names the units.
Result<Bytes> parse_bytes(std::string_view text);
Result<Bandwidth> parse_bandwidth(std::string_view text);
Result<Duration> parse_duration(std::string_view text);
Result<double> parse_flops_rate(std::string_view text);  // FLOP/s

// Shortest exact text in the same syntax where one exists ("64MiB", "25GB/s", "1.5us").
std::string to_text(Bytes size);
std::string to_text(Bandwidth rate);
std::string to_text(Duration duration);

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return bytes(static_cast<std::int64_t>(n)); }
constexpr Bytes operator""_KiB(unsigned long long n) {
  return bytes(static_cast<std::int64_t>(n) << 10);
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return bytes(static_cast<std::int64_t>(n) << 20);
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return bytes(static_cast<std::int64_t>(n) << 30);
}
constexpr Bytes operator""_TiB(unsigned long long n) {
  return bytes(static_cast<std::int64_t>(n) << 40);
}
constexpr Bandwidth operator""_GBps(unsigned long long n) {
  return bytes_per_second(static_cast<std::int64_t>(n) * 1'000'000'000);
}
constexpr Bandwidth operator""_Gbps(unsigned long long n) {
  return Bandwidth::from_raw(static_cast<std::int64_t>(n) * 125'000'000 * kBandwidthScale);
}
constexpr Duration operator""_ps(unsigned long long n) {
  return picoseconds(static_cast<std::int64_t>(n));
}
constexpr Duration operator""_ns(unsigned long long n) {
  return nanoseconds(static_cast<std::int64_t>(n));
}
constexpr Duration operator""_us(unsigned long long n) {
  return microseconds(static_cast<std::int64_t>(n));
}
constexpr Duration operator""_ms(unsigned long long n) {
  return microseconds(static_cast<std::int64_t>(n) * 1'000);
}
}  // namespace literals

}  // namespace railyard::sim
