// What probes write is what calibrate/readers/probe.h reads.
#include "calibrate/probes/common/report.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "calibrate/readers/probe.h"
#include "tests/probes/support.h"

namespace calibrate = railyard::calibrate;
namespace probe = railyard::probe;
namespace tests = railyard::tests;

namespace {

probe::Report sample() {
  std::string program = "probe_x";
  char* arguments[] = {program.data()};
  probe::Report report = probe::new_report("probe_x", 1, arguments);
  report.software = {{"nccl", "2.28.9"}};
  report.devices.push_back({"gpu", "odd \"name\" \xFF", {{"bus_id", "0000:0f:00.0"}}});
  report.notes = {"two\nlines"};
  for (const double bytes : {1e3, 1e4, 1e5}) {
    const auto size = static_cast<std::int64_t>(bytes);
    report.rows.push_back({"x.copy",
                           {{"blocks", "8"}},
                           size,
                           size,
                           probe::summarize({4 + bytes / 1e3, 5 + bytes / 1e3, 6 + bytes / 1e3}),
                           {},
                           ""});
  }
  report.rows.push_back({"x.latency", {}, 4, 0, probe::summarize({1.25}), {}, ""});
  report.rows.push_back({"x.fact", {{"from", "0"}}, 0, 0, {}, 0.5, "ratio"});
  probe::add_fits(report, "x.copy");
  return report;
}

}  // namespace

TEST_CASE("a written report reads back as the same values") {
  const probe::Report report = sample();
  const auto result = calibrate::read_probe(probe::to_json(report), "x.json");
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  const calibrate::ProbeReport& read = result.value();
  CHECK(read.tool == "probe_x");
  CHECK(read.host == report.host);
  CHECK(read.command == std::vector<std::string>{"probe_x"});
  CHECK(read.software == report.software);
  REQUIRE(read.devices.size() == 2);  // the host, and the device above
  CHECK(read.devices[0].kind == "host");
  CHECK(read.devices[1].name == "odd \"name\" \xEF\xBF\xBD");
  CHECK(read.notes == std::vector<std::string>{"two\nlines"});
  REQUIRE(read.rows.size() == report.rows.size());
  for (std::size_t i = 0; i < read.rows.size(); ++i) {
    CAPTURE(i);
    CHECK(read.rows[i].kind == report.rows[i].kind);
    CHECK(read.rows[i].labels == report.rows[i].labels);
    CHECK(read.rows[i].bytes == report.rows[i].bytes);
    CHECK(read.rows[i].moved_bytes == report.rows[i].moved_bytes);
    CHECK(read.rows[i].value == report.rows[i].value);
    if (read.rows[i].time_us) CHECK(read.rows[i].time_us->p10 == report.rows[i].time_us.p10);
  }
  REQUIRE(read.fits.size() == 1);  // a latency and a fact have none
  CHECK(read.fits[0].latency_us == doctest::Approx(5));
  CHECK(read.fits[0].bytes_per_second == doctest::Approx(1e9));
  CHECK(read.fits[0].labels.at("blocks") == "8");
}

TEST_CASE("probe_tcp's JSON is read") {
  char path[] = "/tmp/railyard-probe-XXXXXX";
  const int descriptor = mkstemp(path);
  REQUIRE(descriptor >= 0);
  const tests::ProgramRun run =
      tests::run_program(std::string(RAILYARD_PROBE_TCP) +
                         " --loopback --seconds 0.02 --pingpong 1,4K --sizes 1K,64K --sockets 2 "
                         "--threads 1,2 --json " +
                         path);
  CHECK(run.status == 0);
  const auto report = calibrate::read_probe_file(path);
  std::remove(path);
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().text()));
  CHECK(report.value().rows.size() == 1 + 2 + 4);  // connect, ping-pong, 2 sizes x 2 threads
  // A busy machine may leave times that no positive latency and rate explain: such a fit is left
  // out.
  CHECK(report.value().fits.size() <= 1 + 2);
  CHECK(!report.value().fits.empty());
}
