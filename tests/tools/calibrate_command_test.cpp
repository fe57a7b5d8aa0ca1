#include "tools/cli/calibrate_command.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/helpers.h"

namespace railyard::tests {
namespace {

using nlohmann::json;

constexpr const char* kTable =
    "# Collective test starting: all_reduce_perf\n"
    "#  Rank  0 Group  0 Pid  10 on  hosta device  0 [0000:17:00] NVIDIA H100\n"
    "#  Rank  1 Group  0 Pid  11 on  hostb device  0 [0000:17:00] NVIDIA H100\n"
    "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    " 1048576 262144 float sum -1 100.0 10.49 10.49 0 110.0 9.53 9.53 0\n"
    " 2097152 524288 float sum -1 200.0 10.49 10.49 0 0.00 10.49 10.49 0\n"
    "# Avg bus bandwidth    : 10.25\n";

std::string trace(int rank, int us) {
  return R"j({"distributedInfo":{"rank":)j" + std::to_string(rank) +
         R"j(,"world_size":2},"traceEvents":[{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce(x)","ts":5,"dur":)j" +
         std::to_string(us) +
         R"j(,"args":{"Collective name":"allreduce","In msg nelems":1000,"Group size":2,"dtype":"Float","Process Group Name":"0"}}]})j";
}

TEST_CASE("calibrate read: what each file is, holds and lacks") {
  const TemporaryDirectory directory;
  const std::string table = directory.write("a.log", kTable);
  const std::string osu = directory.write(
      "b.txt", "# OSU MPI Bandwidth Test v7.5\n# Size      Bandwidth (MB/s)\n1024  2000.00\n");
  const auto report = cli::calibrate_read_report({.files = {table, osu}});
  CHECK(report.complaints.empty());
  const auto all = lines(report.text);
  REQUIRE(all.size() == 7);
  CHECK(all[0] == table +
                      ": an nccl-tests log (line 1: \"# Collective test starting: "
                      "all_reduce_perf\")");
  CHECK(all[1] ==
        "  all_reduce_perf: AllReduce (by header), 2 ranks on 2 nodes, NVIDIA H100; 2 "
        "rows, 1 MiB to 2 MiB; type float; 2 processes");
  CHECK(all[2] == "  3 measurements can be used");
  CHECK(all[3] == "  note: " + table + ":6: time 0 for 2097152 bytes: not used");
  CHECK(contains(all[5], "MPI Bandwidth Test; 1 row, 1 KiB to 1 KiB; OSU 7.5"));
}

TEST_CASE("calibrate read: --json holds every measurement, traces are merged") {
  const TemporaryDirectory directory;
  const std::string table = directory.write("a.log", kTable);
  const std::string zero = directory.write("rank0.json", trace(0, 90));
  const std::string one = directory.write("rank1.json", trace(1, 40));
  const auto report = cli::calibrate_read_report({.files = {table, zero, one}, .json = true});
  const json out = json::parse(report.text);
  REQUIRE(out["files"].size() == 3);
  const json& first = out["files"][0];
  CHECK(first["kind"] == "nccl-tests");
  CHECK(first["sections"][0]["collective"] == "AllReduce");
  CHECK(first["sections"][0]["ranks"] == 2);
  CHECK(first["sections"][0]["most_bytes"] == 2097152);
  REQUIRE(first["measurements"].size() == 3);
  CHECK(first["measurements"][1]["in_place"] == true);
  CHECK(first["measurements"][1]["us"] == 110.0);
  CHECK(first["measurements"][1]["gb_per_s"].is_null());
  CHECK(first["notes"][0]["line"] == 6);
  CHECK(out["files"][1]["kind"] == "kineto");
  REQUIRE(out["merged_traces"]["measurements"].size() == 1);
  CHECK(out["merged_traces"]["measurements"][0]["us"] == 40.0);
  CHECK(out["merged_traces"]["notes"].empty());
  const auto text = cli::calibrate_read_report({.files = {zero, one}}).text;
  CHECK(contains(text,
                 "all traces, the shortest of the ranks for each call: 1 calls, 1 "
                 "measurements"));
  CHECK(contains(cli::calibrate_read_report({.files = {zero}}).text,
                 "note: group 0 has 2 ranks, 1 of them are here: durations may contain waiting"));
}

TEST_CASE("calibrate read: a file that is none, or missing, does not hide the others") {
  const TemporaryDirectory directory;
  const std::string table = directory.write("a.log", kTable);
  const std::string other = directory.write("b.txt", "hello\n");
  const std::string debug = directory.write("c.txt", "h:1:2 [0] NCCL INFO Bootstrap\n");
  const auto report =
      cli::calibrate_read_report({.files = {other, directory.path("none.log"), debug, table}});
  REQUIRE(report.complaints.size() == 3);
  CHECK(report.complaints[0] ==
        other +
            ": this is a log of no tool known here (known: nccl-tests, perftest, nvbandwidth, "
            "p2pBandwidthLatencyTest, OSU, Kineto traces)");
  CHECK(contains(report.complaints[1], "none.log"));
  CHECK(report.complaints[2] == debug +
                                    ":1: this is a log of NCCL_DEBUG=INFO without measurements; "
                                    "`railyard nccl compare` reads it");
  CHECK(contains(report.text, "all_reduce_perf: AllReduce"));
  const Outcome outcome = run_program(directory, {"calibrate", "read", "b.txt", "a.log"});
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.out, "3 measurements can be used"));
  CHECK(contains(outcome.err, "railyard: b.txt: this is a log of no tool known here"));
  CHECK(run_program(directory, {"calibrate", "read", "a.log"}).status == 0);
  CHECK(run_program(directory, {"calibrate", "read"}).status == 2);
  CHECK(json::parse(run_program(directory, {"calibrate", "read", "a.log", "--json"}).out)["files"]
            .size() == 1);
}

}  // namespace
}  // namespace railyard::tests
