// perftest: samples (figures read off the files by eye) and every format on made-up lines.
#include <doctest/doctest.h>

#include "calibrate/readers/perftest.h"
#include "tests/calibrate/readers/support.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::calibrate;       // NOLINT

namespace {

PerftestLog read(const std::string& text) { return good(read_perftest, text); }

const std::string kDashes(87, '-');
std::string banner(const std::string& test) {
  return kDashes + "\n                    " + test +
         "\n Dual-port       : OFF\t\tDevice         : mlx5_0\n"
         " Number of qps   : 4\t\tTransport type : IB\n Mtu             : 4096[B]\n"
         " Data ex. method : rdma_cm \tTOS    : 41\n" +
         kDashes + "\n";
}
const std::string kGbits =
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n";

}  // namespace

TEST_CASE("perftest samples: bandwidths in Gb/s, repeated reports") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const PerftestLog a = sample(read_perftest, "perf/052");
  const PerftestTable& table = a.tables.at(0);
  CHECK(table.test == "RDMA_Write BW Test");
  CHECK(table.program == "ib_write_bw");
  CHECK(table.setting("Device") == "rocep1s0f0");
  CHECK(table.setting("Number of qps") == "1");
  CHECK(table.setting("Transport type") == "IB");
  CHECK(table.setting("Link type") == "Ethernet");
  CHECK(table.setting("Data ex. method") == "Ethernet");
  CHECK(table.local.at(0) == "LID 0000 QPN 0x0129 PSN 0x57279d");
  REQUIRE(table.rows.size() == 5);
  CHECK(table.rows[0].bytes == 65536);
  CHECK(table.rows[0].iterations == 882805);
  CHECK_FALSE(table.rows[0].peak.has_value());  // 0.00: not measured
  CHECK(*table.rows[3].average == doctest::Approx(92.56 / 8));
  CHECK(table.rows[3].line == 28);
  CHECK(notes_text(a.notes).empty());
  const auto all = measurements(a);
  REQUIRE(all.size() == 5);
  CHECK(all[0].pattern == MessagePattern::stream);
  CHECK(all[0].devices == std::vector<std::string>{"rocep1s0f0"});
  CHECK(sample(read_perftest, "perf/053").tables.at(0).rows.size() == 6);

  const PerftestLog post = sample(read_perftest, "perf/055");
  CHECK(post.tables.at(0).test == "RDMA_Write Post List BW Test");
  CHECK(post.tables[0].setting("Post List") == "128");
  CHECK(*post.tables[0].rows.at(0).average == doctest::Approx(0.48 / 8));

  const PerftestLog oci = sample(read_perftest, "perf/056");
  CHECK(oci.tables.at(0).setting("TOS") == "41");
  CHECK(oci.tables[0].setting("rdma_cm QPs") == "ON");
  CHECK(oci.tables[0].local.size() == 4);
  CHECK(*oci.tables[0].rows.at(0).peak == doctest::Approx(98.01 / 8));
}

TEST_CASE("perftest samples: both ends in one file are one run, a banner alone is an error") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const PerftestLog log = sample(read_perftest, "perf/057");
  REQUIRE(log.tables.size() == 2);
  CHECK_FALSE(log.tables[0].other_end);
  CHECK(log.tables[1].other_end);
  CHECK(log.tables[0].unit == "MB/sec");
  CHECK(*log.tables[0].rows.at(0).average == doctest::Approx(24056.72 * 1048576 / 1e9));
  CHECK(measurements(log).size() == 1);
  CHECK(mentions(log.notes, "the same run from its other end"));
  const std::string head = sample_path("perf/054");
  CHECK(error_of(read_perftest, text_of(head), "head.txt") ==
        "head.txt:20: perftest's banner, but no results after it: the other end never came, or "
        "prints them");
}

TEST_CASE("perftest text: latencies, by iterations and by duration") {
  const std::string columns =
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
      "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n";
  const PerftestLog log = read(banner("RDMA_Read Latency Test") + columns +
                               " 2       1000          1.71           3.16         1.78     \t"
                               "       1.79        \t0.05   \t\t1.90    \t\t3.10   \n");
  const PerftestRow& row = log.tables.at(0).rows.at(0);
  CHECK(row.least == 1.71);
  CHECK(row.typical == 1.78);
  CHECK(row.p99 == 1.9);
  CHECK(row.p999 == 3.1);
  CHECK(log.tables[0].program == "ib_read_lat");
  const auto read_lat = measurements(log);
  CHECK(read_lat.at(0).pattern == MessagePattern::round_trip);
  CHECK(read_lat[0].us == 1.78);

  const PerftestLog timed = read(banner("Send Latency Test") +
                                 " #bytes        #iterations       t_avg[usec]    tps average\n"
                                 " 64            500000            2.50           200000.00\n");
  CHECK(timed.tables.at(0).program == "ib_send_lat");
  CHECK(timed.tables[0].rows.at(0).transactions == 200000);
  CHECK(measurements(timed).at(0).us == 2.5);
  CHECK(measurements(timed)[0].pattern == MessagePattern::ping_pong);

  std::string cycles = columns;
  for (std::size_t at; (at = cycles.find("usec")) != std::string::npos;)
    cycles.replace(at, 4, "cycles");
  const PerftestLog counted =
      read(banner("Send Latency Test") + cycles + " 2 1000 4000 5000 4100 4200 10 4900 5000\n");
  CHECK(mentions(counted.notes, "latencies in CPU cycles"));
  CHECK(measurements(counted).empty());
}

TEST_CASE("perftest text: QoS, CPU, ports, bidirectional, MiB") {
  const PerftestLog qos = read(banner("RDMA_Write BW Test") +
                               " #bytes    #sl      #iterations    BW peak[MiB/sec]    BW "
                               "average[MiB/sec]   MsgRate[Mpps]\n"
                               " 65536    3           5000           6000.00            "
                               "5960.46                  0.095367\n");
  CHECK(qos.tables.at(0).rows.at(0).service_level == 3);
  CHECK(qos.tables[0].rows[0].iterations == 5000);
  CHECK(*qos.tables[0].rows[0].average == doctest::Approx(5960.46 * 1048576 / 1e9));
  CHECK(notes_text(qos.notes).empty());
  const PerftestLog cpu =
      read(banner("Send Bidirectional BW Test") + kGbits.substr(0, kGbits.size() - 1) +
           "    CPU_Util[%]\n 65536 5000 0.00 160.00 0.305176 \t    12.50\n");
  CHECK(cpu.tables.at(0).rows.at(0).cpu_percent == 12.5);
  CHECK(cpu.tables[0].bidirectional);
  CHECK(measurements(cpu).at(0).pattern == MessagePattern::bidirectional);
  const PerftestLog ports =
      read(banner("RDMA_Write BW Test") +
           " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]   BW "
           "Port1[Gb/sec]   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]\n"
           " 65536 5000 0.00 160.00 0.305176 90.00 0.171661 70.00 0.133514\n");
  CHECK(*ports.tables.at(0).rows.at(0).port1 == doctest::Approx(90.0 / 8));
  CHECK(*ports.tables[0].rows[0].port2 == doctest::Approx(70.0 / 8));
  CHECK(*ports.tables[0].rows[0].message_rate == 0.305176);
}

TEST_CASE("perftest text: traps") {
  const std::string row = " 65536      5000             98.02              98.02  \t   0.186958\n";
  const PerftestLog noise =
      read("[pid = 1, dev = 0] device name = [NVIDIA A30]\n" + banner("RDMA_Write BW Test") +
           kGbits + "Conflicting CPU frequency values detected: 1500.000000 != 3300.016000.\n" +
           row + " Completion with error at client\n");
  CHECK(noise.tables.at(0).rows.size() == 1);
  CHECK(noise.tables[0].gpu == "NVIDIA A30");
  CHECK(mentions(noise.notes, "perftest reports: Completion with error at client"));
  // 98.02 in MiB/s cannot have 0.187 million messages of 64 KiB.
  std::string other = kGbits;
  for (std::size_t at; (at = other.find("Gb/sec")) != std::string::npos;)
    other.replace(at, 6, "MB/sec");
  CHECK(mentions(read(banner("RDMA_Write BW Test") + other + row).notes,
                 "are 12.252 GB/s, the average is 0.103: other units?"));
  other.replace(other.find("average[MB/sec"), 14, "average[KB/sec");
  const std::string unknown = banner("RDMA_Write BW Test") + other + row;
  CHECK(error_of(read_perftest, unknown).find("no results after it") != std::string::npos);
  const PerftestLog short_row = read(banner("RDMA_Write BW Test") + kGbits + row + " 131072 50\n");
  CHECK(mentions(short_row.notes, "row of 2 fields where 5 are expected: left out"));
  const PerftestLog down = read(banner("RDMA_Write BW Test") + kGbits + row +
                                " 2 5000 0.00 0.10 6.250000\n 4 5000 0.00 0.00 0.000000\n");
  CHECK(mentions(down.notes, "sizes go down, from 65536 to 2"));
  CHECK(mentions(down.notes, "bandwidth of 0 at 4 bytes: not used"));
  CHECK(measurements(down).size() == 2);
  std::string novel = kGbits;
  novel.replace(novel.find("MsgRate[Mpps]"), 13, "Novelty[x]  MsgRate[Mpps]");
  CHECK(error_of(read_perftest, banner("RDMA_Write BW Test") + novel + row) ==
        "test.log:8: perftest's results, but with columns that are not known");
  const PerftestLog none = read(kGbits + row);
  CHECK(mentions(none.notes, "no banner says which test this is"));
  // Two banners and two headers interleaved, one row.
  const PerftestLog mixed = read(banner("RDMA_Write BW Test") + kGbits + kGbits + row);
  CHECK(mixed.tables.size() == 1);
  CHECK(error_of(read_perftest, "# nThread 1 nGpus 1\n").find("this is an nccl-tests log") !=
        std::string::npos);
}

TEST_CASE("perftest json: the unit follows from average and message rate") {
  const auto json = [](const std::string& average) {
    return R"({"test_info": {"test": "RDMA_Write BW Test", "Device": "mlx5_0"}, "results": {"MsgSize": 65536,)"
           R"("n_iterations": 5000, "BW_peak": 0.0, "BW_average": )" +
           average + R"(, "MsgRate": 0.186958}})";
  };
  const PerftestLog gbits = read(json("98.02"));
  CHECK(*gbits.tables.at(0).rows.at(0).average == doctest::Approx(98.02 / 8));
  CHECK(gbits.tables[0].unit == "Gb/sec");
  CHECK(gbits.tables[0].program == "ib_write_bw");
  CHECK(measurements(gbits).at(0).devices == std::vector<std::string>{"mlx5_0"});
  const PerftestLog mib = read(json("11684.88"));
  CHECK(*mib.tables.at(0).rows.at(0).average == doctest::Approx(12.2525).epsilon(1e-4));
  CHECK(error_of(read_perftest, json("5")).find("agree neither as Gb/s nor as MiB/s") !=
        std::string::npos);
  CHECK(error_of(read_perftest, R"({"test_info": {}})") ==
        "test.log: perftest's JSON without results");
  const PerftestLog latency =
      read(R"({"results": [{"MsgSize": 2, "n_iterations": 10, "t_min": 1.0, "t_avg": 1.5},)"
           R"({"MsgSize": 4, "t_avg": null}]})");
  CHECK(latency.tables.at(0).latency);
  CHECK(latency.tables[0].rows.size() == 1);
  CHECK(mentions(latency.notes, "a result without size or figure"));
}
