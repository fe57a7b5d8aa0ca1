// Every sample through the door that does not know what it will get.
#include <doctest/doctest.h>

#include "calibrate/readers/any_log.h"
#include "tests/calibrate/readers/support.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::calibrate;       // NOLINT

TEST_CASE("any log: every sample is read, or refused with its reason") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const std::string refused[] = {"021-", "037-", "054-"};  // a list, a crash, a banner
  std::size_t read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(samples() + "/perf")) {
    const std::string file = entry.path().filename().string();
    CAPTURE(file);
    const auto log = read_any_log(text_of(entry.path().string()), file);
    const bool refuse =
        std::any_of(std::begin(refused), std::end(refused),
                    [&](const std::string& start) { return file.starts_with(start); });
    CHECK(log.ok() != refuse);
    if (!log.ok()) continue;
    ++read;
    const auto sections = sections_of(log.value());
    CHECK_FALSE(sections.empty());
    for (const LogSection& section : sections) CHECK(section.rows > 0);
    for (const Measurement& m : measurements(log.value())) {
      const bool figure = m.us.has_value() || m.gb_per_s.has_value();
      CHECK(figure);
      CHECK(m.line > 0);
      CHECK(m.file == file);
    }
  }
  CHECK(read == 32);
}

TEST_CASE("any log: sections say what was found") {
  const AnyLog log = good(
      read_any_log,
      " RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n Number of qps   : "
      "4\t\tTransport type : IB\n #bytes     #iterations    BW peak[Gb/sec]    BW "
      "average[Gb/sec]   MsgRate[Mpps]\n 65536 5000 0.00 98.02 0.186958\n");
  const auto sections = sections_of(log);
  REQUIRE(sections.size() == 1);
  CHECK(sections[0].test == "ib_write_bw");
  CHECK(sections[0].devices == std::vector<std::string>{"mlx5_0"});
  CHECK(sections[0].least_bytes == 65536);
  CHECK(sections[0].line == 4);
  const bool pairs = std::find(sections[0].details.begin(), sections[0].details.end(),
                               "queue pairs 4") != sections[0].details.end();
  CHECK(pairs);
  CHECK(notes_of(log).empty());
  CHECK(error_of(read_any_log, "\x1f\x8b") ==
        "test.log:1: this is a file compressed by gzip; unpack it first");
  CHECK(error_of(read_any_log, "") == "test.log: this is an empty file");
}
