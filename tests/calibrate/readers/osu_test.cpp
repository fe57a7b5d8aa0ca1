// OSU micro-benchmarks: samples read by eye, and every format on made-up lines.
#include <doctest/doctest.h>

#include "calibrate/readers/osu.h"
#include "calibrate/readers/osu_command.h"
#include "tests/calibrate/readers/support.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::calibrate;       // NOLINT
using railyard::sim::Collective;

TEST_CASE("osu samples: point to point") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  struct Expected {
    const char* name;
    const char* accelerator;
    const char* placement;
    std::size_t rows;
    double last;
  };
  const Expected all[] = {
      {"perf/031", "", "H H", 23, 23906.16},      {"perf/032", "", "H H", 23, 24037.14},
      {"perf/033", "CUDA", "D D", 23, 115214.94}, {"perf/034", "CUDA", "D D", 23, 23974.34},
      {"perf/039", "CUDA", "D D", 23, 23989.54},  {"perf/048", "ROCM", "D D", 6, 40730.63}};
  for (const Expected& expected : all) {
    CAPTURE(expected.name);
    const OsuLog log = sample(read_osu, expected.name);
    REQUIRE(log.tables.size() == 1);
    const OsuTable& table = log.tables[0];
    CHECK(table.figure == OsuFigure::bandwidth);
    CHECK(table.accelerator == expected.accelerator);
    CHECK(table.placement == expected.placement);
    CHECK(table.rows.size() == expected.rows);
    CHECK(table.rows.back().bytes == 4194304);
    CHECK(table.rows.back().values[0] == expected.last);
    CHECK(notes_text(log.notes).empty());
    const auto measured = measurements(log);
    REQUIRE(measured.size() == expected.rows);
    CHECK(measured.back().pattern == MessagePattern::stream);
    CHECK(*measured.back().gb_per_s == doctest::Approx(expected.last / 1e3));
  }
  const OsuLog one_node = sample(read_osu, "perf/031");
  CHECK(one_node.tables[0].ranks == 2);
  CHECK(one_node.tables[0].nodes == 1);
  CHECK(one_node.tables[0].version == "7.5");
  CHECK(one_node.tables[0].datatype == "MPI_CHAR.");
  CHECK(sample(read_osu, "perf/032").tables[0].nodes == 2);
  CHECK(sample(read_osu, "perf/039").tables[0].rows[0].valid == true);
}

TEST_CASE("osu samples: collectives") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const OsuLog alltoall = sample(read_osu, "perf/036");
  CHECK(alltoall.tables.at(0).collective == Collective::all_to_all);
  CHECK(alltoall.tables[0].ranks == 8);
  CHECK(alltoall.tables[0].rows.size() == 21);
  const auto measured = measurements(alltoall);
  CHECK(measured.back().bytes == 8 * 1048576);  // OSU's size is one message of each rank
  CHECK(measured.back().us == 5545.28);
  CHECK(sample(read_osu, "perf/043").tables.at(0).rows.size() == 21);
  CHECK(sample(read_osu, "perf/044").tables.at(0).rows[20].values[0] == 5688.27);

  const OsuLog sweep = sample(read_osu, "perf/030");
  CHECK(sweep.tables.size() == 24);
  CHECK(sweep.tables[0].collective == Collective::all_reduce);
  CHECK(sweep.tables[23].rows.at(0).bytes == 536870912);
  CHECK(sweep.tables[23].rows[0].values[0] == 1222997.49);
  CHECK(mentions(sweep.notes, "no row"));  // the run of 1 GiB never finished
  CHECK(measurements(sweep).size() == 24);

  const std::string crashed = text_of(sample_path("perf/037"));
  CHECK(error_of(read_osu, crashed, "crash.txt") ==
        "crash.txt:7: an OSU table without a row: the program crashed, or the log is cut off");
}

TEST_CASE("osu text: columns of -f, non-blocking tests, one-sided and multi-pair tests") {
  const OsuLog full =
      good(read_osu,
           "$ mpirun -np 16 ./osu_allgather -f\n# OSU MPI Allgather Latency Test v5.9\n"
           "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
           "1024                    10.50              9.00             12.00         1000\n");
  CHECK(full.tables.at(0).columns.size() == 4);
  CHECK(full.tables[0].rows.at(0).values[2] == 12.0);
  CHECK(full.tables[0].collective == Collective::all_gather);
  CHECK(measurements(full).at(0).bytes == 16384);
  CHECK(measurements(full)[0].ranks == 16);
  const OsuLog overlap = good(
      read_osu,
      "# OSU MPI-CUDA Non-blocking Allreduce Latency Test v7.5\n# Size           Overall(us)    "
      "   Compute(us)    Pure Comm.(us)        Overlap(%)\n4  30.0  20.0  15.0  33.3\n");
  CHECK(overlap.tables.at(0).figure == OsuFigure::other);
  CHECK(overlap.tables[0].columns[2] == "Pure Comm.(us)");
  CHECK(mentions(overlap.notes, "kept, but not measured"));
  CHECK(measurements(overlap).empty());
  const OsuLog both = good(read_osu,
                           "# OSU MPI Bi-Directional Bandwidth Test v5.9\n"
                           "# Size      Bandwidth (MB/s)\n1048576  40000.00\n");
  CHECK(measurements(both).at(0).pattern == MessagePattern::bidirectional);
  const OsuLog latency = good(read_osu,
                              "# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n"
                              "0                       1.02\n8                       1.10\n");
  CHECK(latency.tables.at(0).rows.size() == 2);
  CHECK(measurements(latency).at(0).us == 1.10);  // 0 bytes are not used
  CHECK(measurements(latency)[0].pattern == MessagePattern::ping_pong);
  const OsuLog pairs =
      good(read_osu,
           "# OSU MPI Multiple Bandwidth / Message Rate Test v5.9\n"
           "# [ pairs: 4 ] [ window size: 64 ]\n# Size                  MB/s        "
           "Messages/s\n1024  8000.00  7812500.00\n");
  CHECK(pairs.tables.at(0).figure == OsuFigure::message_rate);
  CHECK(measurements(pairs).at(0).shared);
}

TEST_CASE("osu text: traps") {
  const std::string head =
      "# OSU MPI All-to-All Personalized Exchange Latency Test v7.5\n"
      "# Size       Avg Latency(us)        Validation\n";
  const OsuLog log =
      good(read_osu, head +
                         "4 10.0 Pass\n8 0.00 Pass\n16 12.0 Fail\n2 9.0 Pass\n3 9.0\n"
                         "srun: error: node1: task 0: Segmentation fault\n");
  CHECK(mentions(log.notes, "does not say how many ranks took part"));
  CHECK(mentions(log.notes, "4: no figure above 0 at 8 bytes"));
  CHECK(mentions(log.notes, "5: validation failed at 16 bytes"));
  CHECK(mentions(log.notes, "6: sizes go down, from 16 to 2"));
  CHECK(mentions(log.notes, "7: not a row of this table, left out: \"3 9.0\""));
  CHECK(mentions(log.notes, "8: trouble: srun: error"));
  CHECK(measurements(log).empty());
  CHECK(error_of(read_osu, "# nThread 1 nGpus 1\n").find("expected an OSU log") !=
        std::string::npos);
}

TEST_CASE("osu command lines") {
  const OsuCommand a =
      osu_command("$ srun --mpi=pmi2 -t00:05:00 -n2 -N1 /usr/local/pt2pt/osu_bw D H");
  CHECK(a.program == "osu_bw");
  CHECK(a.placement == "D H");
  CHECK(a.ranks == 2);
  CHECK(a.nodes == 1);
  const OsuCommand b = osu_command("$ srun -N2 --ntasks-per-node=4 ./osu_alltoall -d cuda");
  CHECK(b.ranks == 8);
  CHECK(b.nodes == 2);
  CHECK(osu_command("mpirun -np 32 osu_allreduce -n 5").ranks == 32);
  CHECK(osu_command("$ srun --ntasks 3 --nodes=3 osu_gather").nodes == 3);
  CHECK(osu_command("frame /x/osu_iallreduce[0x404e98]").program.empty());
  CHECK(osu_command("osu_latency").ranks == -1);
}
