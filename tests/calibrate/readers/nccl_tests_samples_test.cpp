// The nccl-tests logs of the wild. Figures were read off the files by eye.
#include <doctest/doctest.h>

#include "calibrate/readers/nccl_tests.h"
#include "tests/calibrate/readers/support.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::calibrate;       // NOLINT
using railyard::sim::Collective;

TEST_CASE("nccl-tests samples: GH200 over two nodes, V3 header indented in a page") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const NcclTestsLog log = sample(read_nccl_tests, "perf/004");
  REQUIRE(log.tables.size() == 1);
  const NcclTestsTable& table = log.tables[0];
  CHECK(table.program == "all_reduce_perf");
  CHECK(table.collective == Collective::all_reduce);
  CHECK(table.collective_from == NcclTestsEvidence::header);
  CHECK(table.threads == 1);
  CHECK(table.gpus_per_thread == 1);
  CHECK(table.min_bytes == 8);
  CHECK(table.max_bytes == 134217728);
  CHECK(table.step_factor == 2);
  CHECK(table.step_bytes == -1);
  CHECK(table.warmup == 1);
  CHECK(table.iterations == 20);
  CHECK(table.aggregated == 1);
  CHECK(table.graph == 0);
  CHECK(table.validated == true);
  CHECK(table.rank_count == 8);
  CHECK(table.node_count == 2);
  CHECK(table.process_count == 8);
  CHECK(table.group_count == 1);
  CHECK(table.ranks[5].host == "node03");
  CHECK(table.ranks[5].bus == "0019:01:00");
  CHECK(table.ranks[5].gpu == "NVIDIA GH200 120GB");
  CHECK(table.ranks[5].line == 11);
  REQUIRE(table.rows.size() == 25);
  CHECK(table.rows[0].line == 18);
  CHECK(table.rows[0].redop == "sum");
  CHECK_FALSE(table.rows[0].root.has_value());
  CHECK(table.rows[24].bytes == 134217728);
  CHECK(table.rows[24].out_of_place->us == 43293);
  CHECK(table.rows[24].in_place->us == 43396);
  CHECK(table.rows[24].in_place->algbw == 3.09);
  CHECK(table.rows[24].in_place->busbw == 5.41);
  CHECK(table.rows[24].in_place->wrong == 0);
  CHECK(table.average_busbw == 1.58767);
  CHECK(table.out_of_bounds == 0);
  CHECK(notes_text(log.notes).empty());

  const std::vector<Measurement> all = measurements(log);
  REQUIRE(all.size() == 50);
  CHECK(all[1].in_place);
  CHECK(all[1].us == 53.44);
  CHECK(all[1].bytes == 8);
  CHECK(all[1].ranks == 8);
  CHECK(all[1].nodes == 2);
  CHECK(all[1].devices == std::vector<std::string>{"NVIDIA GH200 120GB"});
  CHECK(all[1].line == 18);
  CHECK(all[1].file == log.source);
}

TEST_CASE("nccl-tests samples: no rank lines, what the figures tell") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  for (const char* name : {"perf/005", "perf/006"}) {
    CAPTURE(name);
    const NcclTestsLog log = sample(read_nccl_tests, name);
    REQUIRE(log.tables.size() == 1);
    CHECK(log.tables[0].rows.size() == 11);
    CHECK(log.tables[0].rank_count == 16);  // 8388608 / (131072 x 4)
    CHECK(log.tables[0].rank_count_from == NcclTestsEvidence::figures);
    CHECK_FALSE(log.tables[0].collective.has_value());
    CHECK(mentions(log.notes, "does not say which collective this is: AllGather or AllToAll"));
    CHECK(mentions(log.notes, "no ranks are listed; the figures are those of 16"));
    CHECK(measurements(log).size() == 22);
  }
  // #wrong is N/A without validation.
  CHECK_FALSE(sample(read_nccl_tests, "perf/005").tables[0].rows[0].out_of_place->wrong);

  const NcclTestsLog nebius = sample(read_nccl_tests, "perf/007");
  CHECK(nebius.tables[0].rows.size() == 31);
  CHECK(nebius.tables[0].collective == Collective::all_reduce);
  CHECK(nebius.tables[0].rank_count == 16);  // 467.54 / 249.36 = 1.875 = 2 x 15 / 16
  CHECK(nebius.tables[0].rows[30].in_place->us == 34381.0);

  const NcclTestsLog oci = sample(read_nccl_tests, "perf/009");
  const NcclTestsTable& amd = oci.tables[0];
  CHECK(amd.version == "develop:a52452e");
  CHECK(amd.rows.size() == 5);
  CHECK(amd.rank_count == 16);
  CHECK(amd.node_count == 2);
  CHECK(amd.ranks.size() == 4);
  CHECK(amd.ranks[1].bus == "0000:da:00");
  CHECK(amd.ranks[1].gpu.empty());
  CHECK(mentions(oci.notes, "4 of 16 ranks are listed"));
}

TEST_CASE("nccl-tests samples: V1 columns tell the collective") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  struct Expected {
    const char* name;
    std::optional<Collective> collective;
    std::size_t empty_rows;
    double last_us, average;
  };
  const Expected all[] = {
      {"perf/014", Collective::all_gather, 5, 32669, 58.2651},
      {"perf/015", Collective::all_reduce, 2, 63959, 68.4048},
      {"perf/017", Collective::broadcast, 2, 36599, 64.8653},
      {"perf/018", Collective::reduce, 2, 37539, 65.018},
      {"perf/019", Collective::reduce_scatter, 5, 32502, 60.168},
  };
  for (const Expected& expected : all) {
    CAPTURE(expected.name);
    const NcclTestsLog log = sample(read_nccl_tests, expected.name);
    REQUIRE(log.tables.size() == 1);
    const NcclTestsTable& table = log.tables[0];
    CHECK(table.collective == expected.collective);
    CHECK(table.rows.size() == 34);
    CHECK(table.rank_count == 8);
    CHECK(table.node_count == 1);
    CHECK(table.process_count == 1);
    CHECK(table.gpus_per_thread == 8);
    CHECK(table.error_column);
    CHECK(table.validated == false);
    CHECK(table.rows.back().bytes == 8589934592);
    CHECK(table.rows.back().in_place->us == expected.last_us);
    CHECK(table.average_busbw == expected.average);
    CHECK(mentions(log.notes, std::to_string(expected.empty_rows) + " rows of 0 bytes"));
    CHECK(log.notes.size() == 1);
    CHECK(measurements(log).size() == 2 * (34 - expected.empty_rows));
  }
  const NcclTestsLog reduce = sample(read_nccl_tests, "perf/018");
  CHECK(reduce.tables[0].rows[5].root == 0);
  CHECK(reduce.tables[0].rows[5].redop == "sum");
}

TEST_CASE("nccl-tests samples: 25 runs of one size each in one file") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const NcclTestsLog log = sample(read_nccl_tests, "perf/011");
  REQUIRE(log.tables.size() == 25);
  for (std::size_t i = 0; i < 25; ++i) {
    const NcclTestsTable& table = log.tables[i];
    CHECK(table.rows.size() == 1);
    CHECK(table.rows[0].bytes == std::int64_t{64} << i);
    CHECK(table.rows[0].out_of_place.has_value());
    CHECK_FALSE(table.rows[0].in_place.has_value());
    CHECK(table.rank_count == 32);
    CHECK(table.node_count == 4);
    CHECK(table.process_count == 4);
    CHECK(table.ranks[31].gpu == "NVIDIA GeForce RTX 3090");
    CHECK(table.collective == Collective::all_reduce);
  }
  CHECK(log.tables[24].rows[0].out_of_place->us == 515875);
  CHECK(log.tables[24].rows[0].out_of_place->busbw == 4.03);
  CHECK(measurements(log).size() == 25);
}

TEST_CASE("nccl-tests samples: rows among NCCL's own lines") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const NcclTestsLog a = sample(read_nccl_tests, "nccl-logs/001");
  CHECK(a.tables[0].rows.size() == 3);
  CHECK(a.tables[0].rows[2].in_place->us == 2793.6);
  CHECK(a.tables[0].collective == Collective::all_reduce);
  CHECK(a.tables[0].rank_count == 2);
  const NcclTestsLog b = sample(read_nccl_tests, "nccl-logs/002");
  CHECK(b.tables[0].collective_from == NcclTestsEvidence::command);
  const NcclTestsLog c = sample(read_nccl_tests, "nccl-logs/003");
  CHECK(c.tables[0].collective == Collective::send_recv);
  CHECK(c.tables[0].rows[0].out_of_place->wrong == 0);
  CHECK_FALSE(c.tables[0].rows[0].in_place->wrong.has_value());
  const NcclTestsLog d = sample(read_nccl_tests, "nccl-logs/019");
  CHECK(d.tables[0].rows.size() == 11);
  CHECK(d.tables[0].rank_count == 4);
  CHECK(d.tables[0].process_count == 4);
}

TEST_CASE("nccl-tests samples: rows torn over many lines") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  // Every row of 017 begins with "... sum -1node00:64904:64904 [1] NCCL INFO", goes on behind 92
  // lines of NCCL's, and ends behind 66 more.
  const NcclTestsLog log = sample(read_nccl_tests, "nccl-logs/017");
  REQUIRE(log.tables.size() == 1);
  const NcclTestsTable& table = log.tables[0];
  REQUIRE(table.rows.size() == 11);
  CHECK(table.rows[0].line == 1666);
  CHECK(table.rows[0].out_of_place->us == 83.33);
  CHECK(table.rows[0].out_of_place->busbw == 100.66);
  CHECK(table.rows[0].in_place->us == 80.98);
  CHECK(table.rows[0].in_place->algbw == 103.59);
  CHECK(table.rows[10].bytes == 8589934592);
  CHECK(table.average_busbw == 178.078);
  CHECK(table.nccl == "2.27.7+cuda13.0");
  CHECK(table.ranks[1].bus == "0000:65:00");
  CHECK(notes_text(log.notes).empty());

  // 010: only the out-of-place half was measured; the last run is cut off.
  const NcclTestsLog torn = sample(read_nccl_tests, "nccl-logs/010");
  CHECK(torn.tables[0].rows[0].out_of_place->us == 413.6);
  CHECK(torn.tables[0].rows[0].out_of_place->wrong == 2e-7);
  CHECK_FALSE(torn.tables[0].rows[0].in_place.has_value());
  CHECK(torn.tables[0].rank_count == 32);
  CHECK(torn.tables[0].collective == Collective::all_reduce);
}
