// nvbandwidth: samples (read by eye) and made-up output of the versions.
#include <doctest/doctest.h>

#include "calibrate/readers/nvbandwidth.h"
#include "tests/calibrate/readers/support.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::calibrate;       // NOLINT

namespace {
NvbandwidthLog read(const std::string& text) { return good(read_nvbandwidth, text); }
}  // namespace

TEST_CASE("nvbandwidth samples") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const NvbandwidthLog log = sample(read_nvbandwidth, "perf/023");
  CHECK(log.version == "v0.2");
  CHECK(log.driver == "525.105.17");
  CHECK(log.cuda == 11080);
  REQUIRE(log.devices.size() == 8);
  CHECK(log.devices[7].name == "NVIDIA H800");
  const NvbandwidthTest& test = log.tests.at(0);
  CHECK(test.name == "device_to_device_memcpy_read_ce");
  CHECK(test.direction == CopyDirection::row_to_column);
  CHECK(test.matrix.measured() == 56);  // N/A on the diagonal
  CHECK(test.matrix.cells[2][1] == 172.18);
  CHECK(test.matrix.lines[2] == 26);
  CHECK(test.sum == 9642.08);
  CHECK(notes_text(log.notes).empty());
  const auto all = measurements(log);
  REQUIRE(all.size() == 56);
  CHECK(all[0].from == 0);
  CHECK(all[0].to == 1);
  CHECK(all[0].gb_per_s == 172.32);
  CHECK(all[0].devices == std::vector<std::string>{"NVIDIA H800"});
  CHECK_FALSE(all[0].bytes.has_value());

  for (const char* name : {"perf/025", "perf/028"}) {
    CAPTURE(name);
    const NvbandwidthLog both = sample(read_nvbandwidth, name);
    CHECK(both.tests.at(0).direction == CopyDirection::both);
    CHECK(both.tests[0].row_is_host);
    const auto copies = measurements(both);
    REQUIRE(copies.size() == 8);
    CHECK(copies[3].from == -1);
    CHECK(copies[3].to == 3);
    CHECK(copies[3].gb_per_s == 19.59);
    CHECK(copies[3].bidirectional);
  }
  const auto one_way = measurements(sample(read_nvbandwidth, "perf/027"));
  CHECK(one_way.at(4).gb_per_s == 26.19);
  CHECK_FALSE(one_way[4].bidirectional);
  const std::string list = text_of(sample_path("perf/021"));
  CHECK(error_of(read_nvbandwidth, list, "list.txt") ==
        "list.txt:5: nvbandwidth's list of tests, without results");
}

TEST_CASE("nvbandwidth text: several hosts") {
  const NvbandwidthLog log = read(
      "nvbandwidth Version: v0.7\nCUDA Runtime Version: 12080\n"
      "Process 0 (worker-0): device 0: HGX GB200 (00000008:01:00)\n"
      "Process 1 (worker-1): device 0: HGX GB200 (00000008:01:00)\n\n"
      "Running multinode_device_to_device_memcpy_read_ce.\n"
      "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
      "           0         1\n 0       N/A    798.02\n 1    798.10       N/A\n\n"
      "SUM multinode_device_to_device_memcpy_read_ce 1596.12\n");
  REQUIRE(log.devices.size() == 2);
  CHECK(log.devices[1].host == "worker-1");
  CHECK(log.devices[1].device == 0);
  CHECK(log.devices[1].name == "HGX GB200");
  CHECK(log.devices[1].bus == "00000008:01:00");
  CHECK(measurements(log).at(1).from == 1);
  CHECK(measurements(log)[1].nodes == 2);
  CHECK(notes_text(log.notes).empty());
}

TEST_CASE("nvbandwidth text: directions, latencies, tests of many copies") {
  const auto one = [](const std::string& name, const std::string& description) {
    const auto all = measurements(read("Running " + name + ".\n" + description +
                                       "\n          0         1\n0     10.00     20.00\n"));
    REQUIRE(all.size() == 2);
    return all[1];
  };
  const Measurement up =
      one("device_to_host_memcpy_ce", "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)");
  CHECK(up.from == 1);
  CHECK(up.to == -1);
  const Measurement both = one("device_to_host_bidirectional_memcpy_ce",
                               "memcpy CE CPU(row) <-> GPU(column) bandwidth (GB/s)");
  CHECK(both.from == 1);
  CHECK(both.to == -1);
  CHECK(both.bidirectional);
  const Measurement many =
      one("all_to_one_write_ce", "memcpy CE All Gpus -> GPU(column) total bandwidth (GB/s)");
  CHECK(many.shared);
  CHECK(many.from == -2);
  CHECK(many.to == 1);
  const Measurement local = one("device_local_copy", "memcpy local GPU(column) bandwidth (GB/s)");
  CHECK(local.from == 1);
  CHECK(local.to == 1);
  const Measurement latency =
      one("host_device_latency_sm", "memory latency SM CPU(row) <-> GPU(column) (ns)");
  CHECK(*latency.us == doctest::Approx(0.02));
  CHECK_FALSE(latency.gb_per_s.has_value());
}

TEST_CASE("nvbandwidth text: traps") {
  const std::string start =
      "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) "
      "bandwidth (GB/s)\n          0         1\n";
  const NvbandwidthLog wrong = read(start +
                                    "0     10.00     20.00\n\nSUM host_to_device_memcpy_ce "
                                    "99.00\nRunning x.\nWaived: \nRunning y.\n");
  CHECK(mentions(wrong.notes, "the cells add up to 30.00, SUM says 99"));
  CHECK(mentions(wrong.notes, "x: Waived:"));
  CHECK(mentions(wrong.notes, "y has no results: cut off"));
  const NvbandwidthLog rows = read(start + "0     10.00     20.00\n1     10.00\n");
  CHECK(mentions(rows.notes, "row 1 has 1 cells of 2: left out"));
  const NvbandwidthLog zero = read(start + "0     0.00     20.00\n");
  CHECK(mentions(zero.notes, "1 cells are 0: not used"));
  CHECK(measurements(zero).size() == 1);
  CHECK(error_of(read_nvbandwidth, "nvbandwidth Version: v0.7\nRunning x.\nWaived: \n") ==
        "test.log:3: every test was waived or failed: no results");
  CHECK(error_of(read_nvbandwidth, "nvbandwidth Version: v0.7\n") ==
        "test.log:1: this looks like an nvbandwidth log (\"nvbandwidth Version: v0.7\"), but it "
        "holds no results");
}

TEST_CASE("nvbandwidth json") {
  const std::string text =
      R"j({"nvbandwidth": {"CUDA Runtime Version": 12080, "Driver Version": "570.1", "version": "v0.7",)j"
      R"j("warning": "slow", "testcases": [)j"
      R"j({"name": "device_to_device_memcpy_read_ce", "status": "Passed", "sum": 300.0, "bufferSize": 67108864,)j"
      R"j("bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",)j"
      R"j("bandwidth_matrix": [["N/A", "100.5"], ["199.5", "N/A"], ["1"]]},)j"
      R"j({"name": "waived_one", "status": "Waived"}]}})j";
  const NvbandwidthLog log = read(text);
  CHECK(log.version == "v0.7");
  CHECK(log.driver == "570.1");
  CHECK(log.cuda == 12080);
  CHECK(log.buffer_bytes == 67108864);
  REQUIRE(log.tests.size() == 1);
  CHECK(log.tests[0].matrix.cells[1][0] == 199.5);
  CHECK(mentions(log.notes, "nvbandwidth's warning: slow"));
  CHECK(mentions(log.notes, "waived_one: status Waived"));
  CHECK(mentions(log.notes, "a row of 1 cells where 2 are expected"));
  const auto all = measurements(log);
  REQUIRE(all.size() == 2);
  CHECK(all[1].from == 1);
  CHECK(all[1].to == 0);
  CHECK(all[1].bytes == 67108864);
  CHECK(error_of(read_nvbandwidth, R"j({"nvbandwidth": {"error": "x"}})j") ==
        "test.log: nvbandwidth's JSON without a matrix in any test case");
}
