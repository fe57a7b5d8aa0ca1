// Quantities as people read them: four significant digits, the unit that fits, a space before it.
//
//   human(sim::microseconds(1234)) == "1.234 ms"     human(sim::bytes(8196000)) == "7.816 MiB"
//   count(16580) == "16,580"                         percent(0.0123) == "1.2 %"
//
// Bytes use powers of 1024 (KiB), rates powers of 1000 (GB/s).
#pragma once

#include <cstdint>
#include <string>

#include "sim/units.h"

namespace railyard::cli {

// Four significant digits, no exponent between 1e-3 and 1e15.
std::string digits(double value);

std::string human(sim::Duration duration);
std::string human(sim::Bytes size);
std::string human(sim::Bandwidth rate);
std::string human_seconds(double seconds);  // of wall time: "12 s", "3 min 20 s"
std::string human_bytes(double size);       // of an estimate: "12.3 GB"

std::string count(std::int64_t n);  // with thousands separators
std::string percent(double share);  // one decimal
std::string change(double ratio);   // "+1.2 %", "-0.3 %", of varied / base - 1

// Exact decimal microseconds for machines: the double nearest to picoseconds / 10^6.
double exact_us(sim::Duration duration);

// Exact decimal GB/s (10^9 B/s) in the same way.
double exact_gb_per_s(sim::Bandwidth rate);

// The hash as text: JSON numbers do not hold 64 bits.
std::string hex(std::uint64_t hash);

}  // namespace railyard::cli
