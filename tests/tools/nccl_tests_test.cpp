// The format is nccl-tests' src/common.cu (2.17): "%12li  %12li  %8s  %6s  %6s" then twice
// "  %7s  %6.2f  %6.2f  %5s"; the golden rows are from a published log of all_reduce_perf.
#include "tools/cli/nccl_tests.h"

#include <doctest/doctest.h>

#include <sstream>

#include "tests/tools/helpers.h"

namespace railyard::cli {
namespace {

using namespace sim::literals;

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

std::string text() {
  return nccl_tests_text(tests::collective_result().collectives, {{0, "node0", 0, "dgx-a100"}});
}

}  // namespace

TEST_CASE("nccl-tests: times are written as nccl-tests writes them") {
  CHECK(nccl_tests_time(12'345_ns) == "12.35");
  CHECK(nccl_tests_time(857'600_ns) == "857.6");
  CHECK(nccl_tests_time(5'532'700_ns) == "5532.7");
  CHECK(nccl_tests_time(42'713'400_ns) == "42713");
}

TEST_CASE("nccl-tests: titles stand where nccl-tests puts them") {
  const auto all = tests::lines(text());
  const std::string titles =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong";
  const std::string units =
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
      "(us)  (GB/s)  (GB/s)       ";
  const std::string places =
      "#                                                              out-of-place                "
      "       in-place          ";
  CHECK(std::count(all.begin(), all.end(), titles) == 2);
  CHECK(std::count(all.begin(), all.end(), units) == 2);
  CHECK(std::count(all.begin(), all.end(), places) == 2);
}

TEST_CASE("nccl-tests: rows are those of a real log") {
  scenarios::CollectiveRow row;
  row.size = sim::bytes(134217728);
  row.count = 33554432;
  row.dtype = "float";
  row.time = 857'600_ns;
  row.algbw = 156.51;
  row.busbw = 156.51;
  // "   134217728      33554432     float     sum      -1    857.6  156.51  156.51      0 ..." of
  // the log, with N/A for the check that was not made.
  CHECK(tests::contains(nccl_tests_text({row}, {}),
                        "\n   134217728      33554432     float     sum      -1    857.6  156.51  "
                        "156.51    N/A    857.6  156.51  156.51    N/A\n"));
}

TEST_CASE("nccl-tests: a parser of its columns finds every number") {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : tests::lines(text()))
    if (!line.empty() && line[0] != '#') rows.push_back(words(line));
  REQUIRE(rows.size() == 3);
  for (const auto& row : rows) REQUIRE(row.size() == 13);
  CHECK(rows[0] == std::vector<std::string>{"1024", "256", "float", "sum", "-1", "12.35", "0.08",
                                            "0.14", "N/A", "12.35", "0.08", "0.14", "N/A"});
  CHECK(rows[1][5] == "123.5");
  CHECK(rows[2][3] == "none");  // AllGather reduces nothing
  CHECK(rows[2][2] == "half");
  CHECK(rows[2][5] == "42713");
}

TEST_CASE("nccl-tests: head and foot") {
  const std::string all = text();
  CHECK(tests::contains(all,
                        "# nThread 1 nGpus 1 minBytes 1024 maxBytes 2048 step: 2(factor) "
                        "warmup iters: 0 iters: 1 agg iters: 1 validation: 0 graph: 0\n"));
  CHECK(tests::contains(all,
                        "#  Rank  0 Group  0 Pid      0 on      node0 device  0 [0000:00:00] "
                        "dgx-a100\n"));
  CHECK(tests::contains(all, "# Collective test starting: all_gather_perf\n"));
  CHECK(tests::contains(all, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 145.224 \n"));
  CHECK(tests::contains(all, ", not measured\n"));
}

TEST_CASE("nccl-tests: collectives, types and groups are separate programs") {
  auto rows = tests::collective_result().collectives;
  CHECK(collective_blocks(rows).size() == 2);
  rows[1].group = "tp";
  CHECK(collective_blocks(rows).size() == 3);
  CHECK(collective_blocks({}).empty());
}

}  // namespace railyard::cli
