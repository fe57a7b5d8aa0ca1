#include "tools/cli/result_json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sim/version.h"
#include "tests/tools/helpers.h"
#include "tools/cli/csv.h"

namespace railyard::cli {
namespace {

using nlohmann::json;

json parsed(const scenarios::RunResult& result) {
  return json::parse(result_json(tests::small_scenario(), result));
}

}  // namespace

TEST_CASE("result.json: what it was made from") {
  const std::string text = result_json(tests::small_scenario(), tests::ddp_result());
  CHECK(text.starts_with(kResultMarker));
  const json out = json::parse(text);
  CHECK(out.at("railyard_result") == 1);
  CHECK(out.at("program_version") == sim::kVersion);
  CHECK(out.at("scenario") == "small");
  CHECK(out.at("seed") == 1);
  CHECK(out.at("inputs").is_array());
  // The resolved text gives the same scenario again.
  const auto again = scenarios::scenario_from_text(out.at("resolved_yaml").get<std::string>(),
                                                   "again.yaml", {.read_files = false});
  REQUIRE(again.ok());
  CHECK(scenarios::resolved_yaml(again.value()) == out.at("resolved_yaml"));
  CHECK(out.at("counts") ==
        json{{"messages", 1200}, {"events", 3456}, {"solves", 78}, {"replays", 9}});
  CHECK(out.at("trace_hash") == "fedcba9876543210");
  CHECK(out.at("outcome") == "complete");
}

TEST_CASE("result.json: a training step") {
  const json out = parsed(tests::ddp_result());
  CHECK(out.at("step_time_us") == 9500.0);
  CHECK(out.at("objective_us") == 9500.0);
  CHECK(out.at("exposed_communication_us") == 1000.0);
  CHECK(out.at("exposing_bucket") == 1);
  CHECK(out.at("buckets_bytes") == json{1048576, 26214400});
  CHECK(out.at("buckets_bytes_by_iteration").size() == 3);
  CHECK(out.at("buckets_bytes_by_iteration")[0] == json{27262976});
  CHECK(out.at("iterations_us") == json{11000.0, 10500.0, 9500.0});
  CHECK(out.at("buckets")[1].at("end_us") == 9000.0);
  CHECK(out.at("buckets")[1].at("protocol") == "Simple");
  CHECK(out.at("sensitivity")[0].at("what") == "nvlink bandwidth");
  CHECK(out.at("busiest_links")[0].at("achievable_gb_per_s") == 240.0);
  CHECK(out.at("idle_links")[0].at("idle") == 16);
  CHECK_FALSE(out.contains("collectives"));
  CHECK_FALSE(out.contains("flows"));
}

TEST_CASE("result.json: collectives and flows") {
  const json calls = parsed(tests::collective_result());
  CHECK(calls.at("collectives").size() == 3);
  CHECK(calls.at("collectives")[0].at("time_us") == 12.345);
  CHECK(calls.at("collectives")[2].at("collective") == "AllGather");
  CHECK_FALSE(calls.contains("step_time_us"));
  const json flows = parsed(tests::flow_result());
  CHECK(flows.at("flows").size() == 4);
  CHECK(flows.at("flow_statistics").at("mean_us") == 25.0);
  CHECK(flows.at("flow_statistics").at("p99_us") == 40.0);
}

TEST_CASE("result.json: how a run ended") {
  auto result = tests::collective_result();
  result.unfinished = {"rank 0 waits"};
  CHECK(parsed(result).at("outcome") == "would hang");
  CHECK(parsed(result).at("unfinished") == json{"rank 0 waits"});
  result.unfinished.clear();
  result.outcome = sim::EventQueue::Outcome::limit;
  CHECK(parsed(result).at("outcome") == "limit");
}

TEST_CASE("result.json: bytes that are not text do not break it") {
  auto result = tests::collective_result();
  result.notes = {"bad \xff byte"};
  CHECK(parsed(result).at("notes")[0] == "bad \xef\xbf\xbd byte");
}

TEST_CASE("csv: cells are quoted where they must be") {
  CHECK(csv_cell("plain") == "plain");
  CHECK(csv_cell("a,b") == "\"a,b\"");
  CHECK(csv_cell("say \"x\"") == "\"say \"\"x\"\"\"");
  CHECK(csv_line({"a", "", "c"}) == "a,,c\n");
}

TEST_CASE("csv: every table has its title line and a line per row") {
  CHECK(buckets_csv(*tests::ddp_result().ddp) ==
        "bucket,size_bytes,parameters,ready_us,start_us,end_us,algorithm,protocol,channels,"
        "busbw_gb_per_s,exposed_us\n"
        "0,1048576,3,4000,4010,5000,Ring,Simple,24,123.456,0\n"
        "1,26214400,3,7000,7010,9000,Ring,Simple,24,123.456,1000\n");
  const auto calls = tests::lines(collectives_csv(tests::collective_result().collectives));
  REQUIRE(calls.size() == 4);
  CHECK(calls[1] == "AllReduce,world,8,1024,256,float,-1,Tree,LL,2,12.345,0.0829,0.145,0");
  CHECK(links_csv(tests::ddp_result().busiest_links) ==
        "link,class,bytes,achievable_gb_per_s,utilization\n"
        "node0/gpu0->node0/nvswitch0,nvlink,3221225472,240,0.25\n"
        "node0/nic0->leaf/0,nic,1048576,50,0.125\n");
  CHECK(tests::lines(flows_csv(tests::flow_result().flows))[1] == "0,1,1048576,5,15,10");
}

}  // namespace railyard::cli
