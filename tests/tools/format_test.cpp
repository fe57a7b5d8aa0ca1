#include "tools/cli/format.h"

#include <doctest/doctest.h>

#include "tools/cli/progress.h"
#include "tools/cli/table.h"

namespace railyard::cli {

using namespace sim::literals;

TEST_CASE("quantities have four digits and the unit that fits") {
  CHECK(human(0_ps) == "0 us");
  CHECK(human(1_ps) == "1 ps");
  CHECK(human(1234_ns) == "1.234 us");
  CHECK(human(12'345_ns) == "12.35 us");  // 12.345 rounds to even in decimal, up in binary
  CHECK(human(250_us) == "250 us");
  CHECK(human(sim::picoseconds(999'999'999)) == "1.000 ms");
  CHECK(human(9'500_us) == "9.500 ms");
  CHECK(human(sim::microseconds(61'000'000)) == "61 s");
  CHECK(human(sim::picoseconds(-1'500'000)) == "-1.500 us");
  CHECK(human(8'196'000_B) == "7.816 MiB");
  CHECK(human(1_GiB) == "1 GiB");
  CHECK(human(0_B) == "0 B");
  CHECK(human(1023_B) == "1023 B");
  CHECK(human(sim::gigabits_per_second(400)) == "50 GB/s");
  CHECK(human(sim::gigabytes_per_second(3350)) == "3350 GB/s");
}

TEST_CASE("plain numbers") {
  CHECK(digits(0) == "0");
  CHECK(digits(26947.4) == "26947");
  CHECK(digits(1.5) == "1.500");
  CHECK(digits(100) == "100");
  CHECK(digits(1e-6) == "1e-06");
  CHECK(count(0) == "0");
  CHECK(count(999) == "999");
  CHECK(count(1000) == "1,000");
  CHECK(count(-1234567) == "-1,234,567");
  CHECK(percent(0.0123) == "1.2 %");
  CHECK(change(0.1) == "+10.0 %");
  CHECK(change(-0.0032) == "-0.32 %");
  CHECK(change(0.00001) == "0 %");
  CHECK(human_seconds(12.4) == "12 s");
  CHECK(human_seconds(200) == "3 min 20 s");
  CHECK(human_seconds(7260) == "2 h 1 min");
  CHECK(human_bytes(16e9) == "16 GB");
  CHECK(hex(0xabcULL) == "0000000000000abc");
}

TEST_CASE("microseconds for machines are exact to the picosecond") {
  CHECK(exact_us(1_ps) == 1e-6);
  CHECK(exact_us(sim::picoseconds(123'456'789)) == 123.456789);
}

TEST_CASE("tables align their columns and end no line with a space") {
  Table table({{"link", Align::left}, {"bytes"}, {"", Align::left}});
  table.add({"a", "12345", "x"});
  table.add({"longer", "1", ""});
  CHECK(table.text() ==
        "  link    bytes\n"
        "  a       12345  x\n"
        "  longer      1\n");
  Table untitled({{""}, {""}});
  untitled.add({"1", "2"});
  CHECK(untitled.text("") == "1  2\n");
}

TEST_CASE("long lines are broken at spaces") {
  CHECK(wrap("one two three", 8, "  ") == "one two\n  three");
  CHECK(wrap("  - note", 80, "    ") == "  - note");
  CHECK(wrap("unbreakable-word x", 4, "") == "unbreakable-word\nx");
  CHECK(wrap("", 10, "") == "");
}

TEST_CASE("a progress line tells share and time to go") {
  CHECK(progress_text("simulating", 0.25, 30) ==
        "simulating  25 %  30 s so far, about 1 min 30 s to go");
  CHECK(share_text(250, 1000) == "about 25.0 % of the estimate");
  CHECK(share_text(1000, 1000) == "about 100.0 % of the estimate");
  CHECK(share_text(2'150'000'000, 100) == "more than the 100 that were estimated");
  CHECK(share_text(5, 0) == "more than the 0 that were estimated");
  CHECK(progress_text("simulating", 0, 3) == "simulating   0 %  3 s so far");
  CHECK(progress_text("simulating", 2, 3) == "simulating 100 %  3 s so far, about 0 s to go");
}

}  // namespace railyard::cli
