// nccl-tests' JSON file. The text follows the writer's keys (nccl-tests 2.19, version 2).
#include <doctest/doctest.h>

#include "calibrate/readers/nccl_tests.h"
#include "tests/calibrate/readers/support.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::calibrate;       // NOLINT

namespace {

const std::string kStart =
    R"({"version":2,"start_time":"2026-01-01 00:00:00","args":["\/opt\/bin\/all_reduce_perf","-b","8"],"env":["A=B"],"nccl_version":22809,)"
    R"("config":{"nthreads":1,"ngpus":1,"minimum_bytes":8,"maximum_bytes":16777216,"step_factor":2,"warmup_iters":1,"iterations":20,"aggregated_iterations":1,"validation":1,"graph":0,"devices":[)"
    R"({"rank":0,"group":0,"pid":5,"hostname":"a","device":0,"device_hex":"0000:17:00","device_info":"NVIDIA H100"},)"
    R"({"rank":1,"group":0,"pid":6,"hostname":"b","device":0,"device_hex":"0000:17:00","device_info":"NVIDIA H100"}]},)";
const std::string kResults =
    R"("results":[{"size":8388608,"count":2097152,"type":"float","redop":"sum","root":"    -1",)"
    R"("out_of_place":{"time":100.000000,"alg_bw":83.886080,"bus_bw":83.886080,"nwrong":0.000000},)"
    R"("out_of_place_per_iter":{"min_us":90.0,"max_us":110.0,"avg_us":100.0,"p99_us":109.0,"cv_pct":2.5},)"
    R"("in_place":{"time":104.857600,"alg_bw":80.000000,"bus_bw":80.000000,"nwrong":null},"actual_iterations":20,"experiment_name":""},)"
    R"({"size":16777216,"count":4194304,"type":"float","redop":"sum","root":"    -1","out_of_place":null,)"
    R"("in_place":{"time":200.000000,"alg_bw":83.886080,"bus_bw":83.886080,"nwrong":"nan"}}],)";
const std::string kEnd =
    R"("out_of_bounds":{"count":0,"okay":"true"},"average_bus_bandwidth":{"bandwidth":82.590720,"okay":"unchecked"},"errors":["oops"],"end_time":"x"})";

}  // namespace

TEST_CASE("nccl-tests json: rows, ranks and versions") {
  const NcclTestsLog log = good(read_nccl_tests, kStart + kResults + kEnd);
  const NcclTestsTable& table = log.tables.at(0);
  CHECK(table.program == "all_reduce_perf");
  CHECK(table.collective == railyard::sim::Collective::all_reduce);
  CHECK(table.nccl == "2.28.9");
  CHECK(table.node_count == 2);
  CHECK(table.rank_count == 2);
  CHECK(table.max_bytes == 16777216);
  CHECK(table.step_factor == 2);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].out_of_place->us == 100);
  CHECK(table.rows[0].out_of_place->iterations->p99 == 109);
  CHECK(table.rows[0].in_place->algbw == 80);
  CHECK_FALSE(table.rows[0].in_place->wrong.has_value());
  CHECK_FALSE(table.rows[1].out_of_place.has_value());
  CHECK(notes_text(log.notes) == "0: error at the end: oops\n");
  const auto all = measurements(log);
  REQUIRE(all.size() == 3);
  CHECK(all[2].us == 200);
  CHECK(all[2].nodes == 2);
}

TEST_CASE("nccl-tests json: host times, bad rows, cut files") {
  std::string host = kStart + kResults + kEnd;
  host.replace(host.find("\"time\""), 6, "\"cpu_time\"");
  CHECK(mentions(good(read_nccl_tests, host).notes, "times are the host's"));
  std::string bad = kStart + kResults + kEnd;
  bad.replace(bad.find("\"size\":8388608"), 14, "\"size\":\"big\"");
  CHECK(mentions(good(read_nccl_tests, bad).notes, "results[0] has no size, count and time"));
  const std::string cut = kStart + kResults.substr(0, 300);
  CHECK(error_of(read_nccl_tests, cut).find("the file ends in the middle of its JSON: cut off?") !=
        std::string::npos);
  CHECK(error_of(read_nccl_tests, "{\n\"bus_bw\": oops}") ==
        "test.log:2:11: not JSON here: \"oops}\"");
  CHECK(error_of(read_nccl_tests, "{\"nccl_version\":1,\"args\":[]}") ==
        "test.log: nccl-tests' JSON without \"results\"");
  CHECK(error_of(read_nccl_tests, "{\"bus_bw\":1,\"results\":[{}]}") ==
        "test.log: \"results\" holds no row that can be read");
  CHECK(error_of(read_nccl_tests, "{\"bus_bw\": 1e999}")
            .find("test.log: a number of its JSON is out of range") == 0);
  std::string deep = "{\"bus_bw\":";
  for (int i = 0; i < 100; ++i) deep += "[";
  CHECK(error_of(read_nccl_tests, deep) == "test.log:1: JSON of more than 64 levels");
}
