#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "calibrate/probes/common/args.h"
#include "calibrate/probes/common/error.h"
#include "calibrate/probes/common/json_text.h"
#include "calibrate/probes/common/processors.h"
#include "calibrate/probes/common/stats.h"

namespace probe = railyard::probe;

namespace {

std::string usage_error(const std::vector<std::string>& words) {
  probe::Args args("probe_x", "test");
  bool flag = false;
  std::int64_t number = 0;
  double seconds = 1;
  probe::Sizes sizes;
  args.flag("--flag", "", &flag);
  args.number("--number", "", &number);
  args.seconds("--seconds", "", &seconds);
  args.sizes("--sizes", "", &sizes);
  std::vector<std::string> texts{"probe_x"};
  texts.insert(texts.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  try {
    return args.parse(static_cast<int>(pointers.size()), pointers.data()) ? "" : "help";
  } catch (const probe::UsageError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("sizes: suffixes, lists and ranges") {
  CHECK(probe::parse_size("4096") == 4096);
  CHECK(probe::parse_size("64K") == 65536);
  CHECK(probe::parse_size("3m") == 3 * 1048576);
  CHECK(probe::parse_sizes("1,2K") == probe::Sizes{1, 2048});
  CHECK(probe::parse_sizes("8:64") == probe::Sizes{8, 16, 32, 64});
  CHECK(probe::parse_sizes("1K:1M:32") == probe::Sizes{1024, 32768, 1048576});
  CHECK(probe::parse_sizes("3:20:4") == probe::Sizes{3, 12});
  CHECK(probe::size_text(65536) == "64K");
  CHECK(probe::size_text(1000) == "1000");
  CHECK(probe::size_text(0) == "0");
}

TEST_CASE("arguments that are not understood are named") {
  CHECK(usage_error({"--flag", "--number", "-3", "--sizes", "1K"}).empty());
  CHECK(usage_error({"--nmber", "3"}) == "unknown argument '--nmber'");
  CHECK(usage_error({"--number"}) == "--number needs a value");
  CHECK(usage_error({"--number", "3x"}) == "--number: '3x' is not a whole number");
  CHECK(usage_error({"--seconds", "-1"}) == "--seconds: '-1' is not a positive number of seconds");
  CHECK(usage_error({"--seconds", "nan"}) ==
        "--seconds: 'nan' is not a positive number of seconds");
  CHECK(usage_error({"--sizes", "1,,2"}) == "--sizes: '' is not a size such as 4096, 64K or 1M");
  CHECK(usage_error({"--sizes", "9999999999G"}) ==
        "--sizes: the size '9999999999G' is out of range");
  CHECK(usage_error({"--sizes", "8:4"}) ==
        "--sizes: '8:4' needs 1 <= first <= last and a factor of 2 or more");
  CHECK(usage_error({"--sizes", "1:2:3:4"}) == "--sizes: '1:2:3:4' is not first:last:factor");
}

TEST_CASE("quantiles lie between order statistics, as NumPy's do") {
  // numpy.percentile([1, 2, 3, 4, 10], [10, 50, 90]) = 1.4, 3, 7.6
  const probe::Summary summary = probe::summarize({10, 3, 1, 4, 2});
  CHECK(summary.p10 == doctest::Approx(1.4));
  CHECK(summary.median == 3);
  CHECK(summary.p90 == doctest::Approx(7.6));
  CHECK(summary.min == 1);
  CHECK(summary.max == 10);
  CHECK(summary.count == 5);
  CHECK(probe::summarize({7}).p90 == 7);
  CHECK(probe::summarize({}).count == 0);
}

TEST_CASE("a line through points on a line is that line") {
  std::vector<probe::TimedBytes> points;
  for (const double bytes : {1.0, 1e3, 1e6, 1e9}) points.push_back({bytes, 5 + bytes / 12.5e3});
  const auto fit = probe::fit_line(points);
  REQUIRE(fit.has_value());
  CHECK(fit->latency_us == doctest::Approx(5));
  CHECK(fit->bytes_per_second == doctest::Approx(12.5e9));
  CHECK(fit->worst_error < 1e-9);
  CHECK(fit->points == 4);
}

TEST_CASE("a line of noisy points has the least relative error") {
  // Any other line nearby is worse in the sum of squares that the header states.
  const std::vector<probe::TimedBytes> points = {{1e3, 9}, {1e4, 12}, {1e5, 17}, {1e6, 95}};
  const auto fit = probe::fit_line(points);
  REQUIRE(fit.has_value());
  const auto cost = [&](double latency, double per_byte) {
    double sum = 0;
    for (const auto& point : points)
      sum += std::pow(1 - (latency + per_byte * point.bytes) / point.time_us, 2);
    return sum;
  };
  const double latency = fit->latency_us, per_byte = 1e6 / fit->bytes_per_second;
  const double best = cost(latency, per_byte);
  for (const double step : {-1e-3, 1e-3}) {
    CHECK(cost(latency * (1 + step), per_byte) > best);
    CHECK(cost(latency, per_byte * (1 + step)) > best);
  }
}

TEST_CASE("no line: one size, or times that fall") {
  CHECK_FALSE(probe::fit_line({}).has_value());
  CHECK_FALSE(probe::fit_line({{8, 1}, {8, 2}}).has_value());
  CHECK_FALSE(probe::fit_line({{8, 100}, {1e6, 1}}).has_value());
  // A latency below zero is no latency: the line goes through the origin.
  const auto fit = probe::fit_line({{10, 1}, {20, 4}});
  REQUIRE(fit.has_value());
  CHECK(fit->latency_us == 0);
  // v = 10, 5: b = 15 / 125
  CHECK(fit->bytes_per_second == doctest::Approx(1e6 * 125 / 15));
}

TEST_CASE("JSON text is valid whatever the bytes") {
  CHECK(probe::json_string("a\"b\\c\n\t\x01") == "\"a\\\"b\\\\c\\n\\t\\u0001\"");
  CHECK(probe::json_string("\xC3\xA9") == "\"\xC3\xA9\"");
  CHECK(probe::json_string("x\xC3") == "\"x\\ufffd\"");                      // cut off
  CHECK(probe::json_string("\xC0\xAF") == "\"\\ufffd\\ufffd\"");             // overlong
  CHECK(probe::json_string("\xED\xA0\x80") == "\"\\ufffd\\ufffd\\ufffd\"");  // a surrogate
  CHECK(probe::json_number(0.1) == "0.1");
  CHECK(probe::json_number(std::numeric_limits<double>::infinity()) == "null");
}

TEST_CASE("run_probe: one line and the right status") {
  CHECK(probe::run_probe("probe_x", [] {}) == 0);
  CHECK(probe::run_probe("probe_x", [] { throw probe::ProbeError("no device"); }) == 1);
  CHECK(probe::run_probe("probe_x", [] { throw probe::UsageError("what?"); }) == 2);
}

TEST_CASE("lists of processors as the kernel writes them") {
  const auto count = [](const char* list) {
    const auto set = probe::parse_processors(list);
    return set ? CPU_COUNT(&*set) : 0;
  };
  CHECK(count("0-3,8") == 5);
  CHECK(count("0-31,64-95") == 64);
  CHECK(count("7") == 1);
  CHECK(count("") == 0);
  CHECK(count("3-1") == 0);
  CHECK(count("0-99999") == 0);
  CHECK(count("all") == 0);
  const auto set = probe::parse_processors("0-3,8");
  REQUIRE(set.has_value());
  CHECK(CPU_ISSET(8, &*set));
  CHECK_FALSE(CPU_ISSET(4, &*set));
}
