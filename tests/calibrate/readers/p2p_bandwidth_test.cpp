// p2pBandwidthLatencyTest: samples read by eye, and its traps.
#include <doctest/doctest.h>

#include "calibrate/readers/p2p_bandwidth.h"
#include "tests/calibrate/readers/support.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::calibrate;       // NOLINT

TEST_CASE("p2p bandwidth samples") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const P2pBandwidthLog log = sample(read_p2p_bandwidth, "perf/049");
  REQUIRE(log.devices.size() == 2);
  CHECK(log.devices[1].name == "NVIDIA GeForce RTX 2080 Ti");
  CHECK(log.devices[1].bus == "b5");
  CHECK(log.without_access.size() == 2);
  CHECK(notes_text(log.notes) ==
        "0: no peer access, P2P=Enabled goes through the host: 0 to 1, 1 to 0\n");
  REQUIRE(log.matrices.size() == 8);  // 4 of bandwidth, 2 x (GPU, CPU) of latency
  CHECK(log.matrices[0].title == "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)");
  CHECK_FALSE(log.matrices[0].enabled);
  CHECK(log.matrices[0].matrix.cells[1][0] == 5.70);
  CHECK(log.matrices[3].bidirectional);
  CHECK(log.matrices[3].enabled);
  CHECK(log.matrices[3].matrix.cells[0][1] == 6.10);
  CHECK(log.matrices[4].latency);
  CHECK(log.matrices[4].matrix.cells[0][1] == 14.76);
  CHECK(log.matrices[5].host_time);
  CHECK(log.matrices[5].matrix.cells[0][1] == 11.08);
  const auto all = measurements(log);
  REQUIRE(all.size() == 4 * 6);
  CHECK(all[1].gb_per_s == 5.71);
  CHECK(all[1].from == 0);
  CHECK(all[1].to == 1);
  CHECK(all[1].line == 17);

  const P2pBandwidthLog v100 = sample(read_p2p_bandwidth, "perf/051");
  CHECK(v100.matrices.size() == 8);
  CHECK(v100.without_access.empty());
  CHECK(notes_text(v100.notes).empty());
  CHECK(v100.matrices[6].matrix.cells[1][0] == 1.74);
}

TEST_CASE("p2p bandwidth: traps") {
  const std::string matrix =
      "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1 \n"
      "     0 771.60  12.22 \n";
  const P2pBandwidthLog cut = good(read_p2p_bandwidth, matrix);
  CHECK(mentions(cut.notes, "2: 1 of 2 rows of this matrix are there: cut off"));
  const P2pBandwidthLog zero = good(read_p2p_bandwidth, matrix + "     1 0.00 774.28\n");
  CHECK(mentions(zero.notes, "1 cells are 0: not used"));
  CHECK(measurements(zero).size() == 3);
  const P2pBandwidthLog empty =
      good(read_p2p_bandwidth, "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n" + matrix);
  CHECK(mentions(empty.notes, "1: a matrix without figures: cut off"));
  CHECK(error_of(read_p2p_bandwidth, "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n")
            .find("but it holds no results") != std::string::npos);
  CHECK(
      error_of(read_p2p_bandwidth, "Running host_to_device_memcpy_ce.\n") ==
      "test.log:1: this is an nvbandwidth log (\"Running host_to_device_memcpy_ce.\"), expected a "
      "log of p2pBandwidthLatencyTest");
}
