#include "sim/units.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace railyard::sim {
namespace {

using namespace literals;

// ceil(2^19 * 2^10 / r): 512 MiB at 25 GB/s = 536 870 912 / 25e9 s = 21 474 836 480 ps, exactly.
TEST_CASE("units: transfer_time is exact") {
  CHECK(transfer_time(512_MiB, 25_GBps) == 21'474'836'480_ps);
  CHECK(transfer_time(64_MiB, 25_GBps) == 2'684'354'560_ps);
  CHECK(transfer_time(bytes(1), 1_GBps) == 1_ns);
  CHECK(transfer_time(bytes(0), 1_GBps) == 0_ps);
  CHECK(transfer_time(1_GiB, 400_Gbps) == 21'474'836'480_ps);
}

TEST_CASE("units: transfer_time rounds up to the picosecond") {
  CHECK(transfer_time(bytes(1), 3_GBps) == 334_ps);  // 333.3
  CHECK(transfer_time(bytes(2), 3_GBps) == 667_ps);  // 666.7
  CHECK(transfer_time(bytes(3), 3_GBps) == 1000_ps);
  CHECK(transfer_time(bytes(1), bytes_per_second(140'000'000'000'000)) == 1_ps);  // 0.007
}

// 1000 bytes at 3.6 Tb/s: 2 222.2 ps. An integer number of picoseconds per byte would give 2 000.
TEST_CASE("units: transfer_time of fast links") {
  CHECK(transfer_time(bytes(1000), 3600_Gbps) == 2223_ps);
  CHECK(transfer_time(1_GiB, 14'400_Gbps) == 596'523'236_ps);  // 1 073 741 824 / 1.8 = ...235.6
}

// 16 TiB at 1 B/s is 2^44 s = 1.76e25 ps, beyond int64 (9.2e18): it saturates and does not wrap.
TEST_CASE("units: transfer_time saturates") {
  CHECK(transfer_time(16_TiB, bytes_per_second(1)) == Duration::max());
  CHECK(transfer_time(bytes(std::numeric_limits<std::int64_t>::max()), Bandwidth::from_raw(1)) ==
        Duration::max());
  CHECK(transfer_time(bytes(9'000'000), bytes_per_second(1)) == 9'000'000 * 1'000'000_us);
  CHECK(transfer_time(16_TiB, 16_GBps) == picoseconds(1'099'511'627'776'000));
}

TEST_CASE("units: transfer_time of nonsense is a bug") {
  CHECK_THROWS_AS((void)transfer_time(bytes(1), Bandwidth{}), InternalError);
  CHECK_THROWS_AS((void)transfer_time(bytes(-1), 1_GBps), InternalError);
}

TEST_CASE("units: quantities add, subtract, scale and compare") {
  Bytes size = 3_KiB;
  size += 1_KiB;
  size -= bytes(96);
  CHECK(size == bytes(4000));
  CHECK(size / 2 == bytes(2000));
  CHECK(size / bytes(1500) == 2);
  CHECK(size % bytes(1500) == bytes(1000));
  CHECK(2 * size == size * 2);
  CHECK(1_GiB > 1023_MiB);
  CHECK(400_Gbps == 50_GBps);
  CHECK(gigabits_per_second(400) == 400_Gbps);
  CHECK(to_gigabytes_per_second(25_GBps) == 25.0);
  CHECK(to_us(1500_ns) == 1.5);
  CHECK(to_seconds(2_ms) == doctest::Approx(0.002));
}

TEST_CASE("units: scaling rounds bandwidth down and durations to nearest") {
  CHECK(scale(Bandwidth::from_raw(1001), 0.5) == Bandwidth::from_raw(500));
  CHECK(scale(picoseconds(1001), 0.5) == picoseconds(501));
  CHECK(scale(picoseconds(1000), 1.4) == picoseconds(1400));
  CHECK(scale(Duration::max(), 2.0) == Duration::max());
}

TEST_CASE("units: compute_time rounds up and saturates") {
  CHECK(compute_time(flops(0), 1e12) == 0_ps);
  CHECK(compute_time(flops(1), 1e12) == 1_ps);
  CHECK(compute_time(flops(10), 3e12) == 4_ps);
  CHECK(compute_time(flops(312'000'000'000), 312e12) == 1_ms);
  CHECK(compute_time(flops(9'000'000'000'000'000'000), 1.0) == Duration::max());
  CHECK_THROWS_AS((void)compute_time(flops(1), 0), InternalError);
}

TEST_CASE("units: sizes in every unit") {
  const auto parsed = [](const char* text) { return parse_bytes(text).value().raw(); };
  CHECK(parsed("7B") == 7);
  CHECK(parsed("7kB") == 7000);
  CHECK(parsed("7KB") == 7000);
  CHECK(parsed("7MB") == 7'000'000);
  CHECK(parsed("7GB") == 7'000'000'000);
  CHECK(parsed("7TB") == 7'000'000'000'000);
  CHECK(parsed("7KiB") == 7168);
  CHECK(parsed("7MiB") == 7'340'032);
  CHECK(parsed("7GiB") == 7'516'192'768);
  CHECK(parsed("7TiB") == 7'696'581'394'432);
  CHECK(parsed("1.5KiB") == 1536);
  CHECK(parsed("1.5 KiB") == 1536);
  CHECK(parsed("1e3B") == 1000);
  CHECK(parsed("1.25E+2B") == 125);
  CHECK(parsed("1500e-3kB") == 1500);
  CHECK(parsed(".5KiB") == 512);
  CHECK(parsed("2.KiB") == 2048);
  CHECK(parsed("-0B") == 0);
  CHECK(parsed("1e-400B") == 0);
  CHECK(parsed("0e400B") == 0);
  CHECK(parsed("9223372036854775807B") == std::numeric_limits<std::int64_t>::max());
  CHECK(parsed("0.00000000000000000000000000000001e38B") == 1'000'000);
  CHECK(parsed("0B") == 0);
}

TEST_CASE("units: bandwidths in every unit") {
  const auto parsed = [](const char* text) {
    return static_cast<double>(parse_bandwidth(text).value().raw()) / 65536;
  };
  CHECK(parsed("8B/s") == 8);
  CHECK(parsed("8kB/s") == 8e3);
  CHECK(parsed("8MB/s") == 8e6);
  CHECK(parsed("8GB/s") == 8e9);
  CHECK(parsed("8TB/s") == 8e12);
  CHECK(parsed("8MiB/s") == 8'388'608);
  CHECK(parsed("8GiB/s") == 8'589'934'592);
  CHECK(parsed("8b/s") == 1);
  CHECK(parsed("8kb/s") == 1e3);
  CHECK(parsed("8Mb/s") == 1e6);
  CHECK(parsed("8Gb/s") == 1e9);
  CHECK(parsed("8Tb/s") == 1e12);
  CHECK(parsed("8Mbps") == 1e6);
  CHECK(parsed("8Gbps") == 1e9);
  CHECK(parsed("8Tbps") == 1e12);
  CHECK(parse_bandwidth("400Gb/s").value() == 400_Gbps);
}

TEST_CASE("units: durations and compute rates in every unit") {
  const auto parsed = [](const char* text) { return parse_duration(text).value().count(); };
  CHECK(parsed("3ps") == 3);
  CHECK(parsed("3ns") == 3'000);
  CHECK(parsed("3us") == 3'000'000);
  CHECK(parsed("3ms") == 3'000'000'000);
  CHECK(parsed("3s") == 3'000'000'000'000);
  CHECK(parsed("3min") == 180'000'000'000'000);
  CHECK(parsed("3h") == 10'800'000'000'000'000);
  CHECK(parsed("1.5us") == 1'500'000);
  CHECK(parse_flops_rate("1FLOP/s").value() == 1);
  CHECK(parse_flops_rate("2GFLOP/s").value() == 2e9);
  CHECK(parse_flops_rate("312TFLOP/s").value() == 312e12);
  CHECK(parse_flops_rate("1.5PFLOP/s").value() == 1.5e15);
}

TEST_CASE("units: every refusal says why and names the units") {
  const auto refusal = [](const char* text) { return parse_bytes(text).error().message; };
  const std::string units = " (units: B, kB, KB, MB, GB, TB, KiB, MiB, GiB, TiB)";
  CHECK(refusal("64") == "'64' is not a size: the unit is missing" + units);
  CHECK(refusal("64 ") == "'64 ' is not a size: the unit is missing" + units);
  CHECK(refusal("") == "'' is not a size: it must start with a number" + units);
  CHECK(refusal("MiB") == "'MiB' is not a size: it must start with a number" + units);
  CHECK(refusal(" 1MiB") == "' 1MiB' is not a size: it must start with a number" + units);
  CHECK(refusal("infB") == "'infB' is not a size: it must start with a number" + units);
  CHECK(refusal("nanB") == "'nanB' is not a size: it must start with a number" + units);
  CHECK(refusal("-1B") == "'-1B' is not a size: it is negative" + units);
  CHECK(refusal("1M") == "'1M' is not a size: unknown unit 'M'" + units);
  CHECK(refusal("1Mib") == "'1Mib' is not a size: unknown unit 'Mib'" + units);
  CHECK(refusal("1B ") == "'1B ' is not a size: unknown unit 'B '" + units);
  CHECK(refusal("0x10B") == "'0x10B' is not a size: unknown unit 'x10B'" + units);
  CHECK(refusal("1EB") == "'1EB' is not a size: unknown unit 'EB'" + units);
  CHECK(refusal(".B") == "'.B' is not a size: it must start with a number" + units);
  CHECK(refusal("1.2.3B") == "'1.2.3B' is not a size: unknown unit '.3B'" + units);
  CHECK(refusal("+1B") == "'+1B' is not a size: it must start with a number" + units);
  CHECK(refusal("1e400B") == "'1e400B' is too large for a size");
  CHECK(refusal("9e18TB") == "'9e18TB' is too large for a size");
  CHECK(refusal("9223372036854775808B") == "'9223372036854775808B' is too large for a size");
  CHECK(refusal(("1" + std::string(100, 'y')).c_str()) == "'1" + std::string(39, 'y') +
                                                              "' is not a size: unknown unit '" +
                                                              std::string(20, 'y') + "'" + units);
  CHECK(parse_bandwidth("1GB").error().message ==
        "'1GB' is not a bandwidth: unknown unit 'GB' (units: B/s, kB/s, MB/s, GB/s, TB/s, MiB/s, "
        "GiB/s, b/s, kb/s, Mb/s, Gb/s, Tb/s, Gbps, Mbps, Tbps)");
  CHECK(parse_bandwidth("900TB/s").error().message == "'900TB/s' is too large for a bandwidth");
  CHECK(parse_duration("1").error().message ==
        "'1' is not a duration: the unit is missing (units: ps, ns, us, ms, s, min, h)");
  CHECK(parse_duration("9999999h").error().message == "'9999999h' is too large for a duration");
  CHECK(parse_flops_rate("1e400FLOP/s").error().message ==
        "'1e400FLOP/s' is too large for a compute rate");
  CHECK(parse_flops_rate("1e300PFLOP/s").error().message ==
        "'1e300PFLOP/s' is too large for a compute rate");
  CHECK(parse_flops_rate("-1FLOP/s").error().message ==
        "'-1FLOP/s' is not a compute rate: it is negative (units: FLOP/s, GFLOP/s, TFLOP/s, "
        "PFLOP/s)");
}

TEST_CASE("units: text is short") {
  CHECK(to_text(bytes(0)) == "0B");
  CHECK(to_text(bytes(1000)) == "1000B");
  CHECK(to_text(1_KiB) == "1KiB");
  CHECK(to_text(1536_KiB) == "1536KiB");
  CHECK(to_text(64_MiB) == "64MiB");
  CHECK(to_text(3_GiB) == "3GiB");
  CHECK(to_text(16_TiB) == "16TiB");
  CHECK(to_text(picoseconds(-1500)) == "-1.5ns");
  CHECK(to_text(Bandwidth::from_raw(1)) == "0.00002B/s");
  CHECK(to_text(parse_bandwidth("123.456789GB/s").value()) == "123.456789GB/s");
  CHECK(to_text(25_GBps) == "25GB/s");
  CHECK(to_text(400_Gbps) == "50GB/s");
  CHECK(to_text(gigabytes_per_second(12.5)) == "12.5GB/s");
  CHECK(to_text(bytes_per_second(7)) == "7B/s");
  CHECK(to_text(0_ps) == "0ps");
  CHECK(to_text(1500_ns) == "1.5us");
  CHECK(to_text(999_ps) == "999ps");
  CHECK(to_text(20_us) == "20us");
  CHECK(to_text(3_ms) == "3ms");
  CHECK(to_text(microseconds(2'000'000)) == "2s");
}

TEST_CASE("units: text reads back as the same value") {
  constexpr std::int64_t kLarge = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t n :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{999}, std::int64_t{1'001},
        std::int64_t{123'456'789}, std::int64_t{2'684'354'560}, std::int64_t{1} << 53,
        (std::int64_t{1} << 53) + 1, std::int64_t{10'800'000'000'000'001}, kLarge - 1, kLarge}) {
    CAPTURE(n);
    CHECK(parse_bytes(to_text(bytes(n))).value() == bytes(n));
    CHECK(parse_duration(to_text(picoseconds(n))).value() == picoseconds(n));
    CHECK(parse_bandwidth(to_text(Bandwidth::from_raw(n))).value() == Bandwidth::from_raw(n));
  }
}

}  // namespace
}  // namespace railyard::sim
