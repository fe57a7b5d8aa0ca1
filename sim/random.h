// Random numbers: a generator of one 64-bit word, and the few distributions that workloads need.
// Two generators with one seed draw the same. Integers and uniform() are the same on every machine;
// the others go through the C library's logarithm and cosine, and may differ in the last bit
// between libraries.
#pragma once

#include <cmath>
#include <cstdint>

#include "sim/units.h"

namespace railyard::sim {

// splitmix64 (Steele, Lea, Flood 2014), full period.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Uniform in 0..n-1; the bias of at most n / 2^64 does not matter here.
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((Uint128(next()) * n) >> 64);
  }
  std::uint32_t below32(std::uint32_t n) { return static_cast<std::uint32_t>(below(n)); }

  // Uniform in (0, 1): 53 bits and a half, never an end.
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }
  double exponential(double mean) { return -mean * std::log(uniform()); }
  // Box and Muller (1958); the second value is not kept, so that a draw depends on no other.
  double normal() {
    constexpr double kTwoPi = 6.283185307179586;
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(kTwoPi * uniform());
  }
  // exp(N(ln median, sigma^2)).
  double lognormal(double median, double sigma) { return median * std::exp(sigma * normal()); }

 private:
  std::uint64_t state_;
};

}  // namespace railyard::sim
