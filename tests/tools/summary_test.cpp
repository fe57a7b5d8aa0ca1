#include "tools/cli/summary.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/tools/helpers.h"
#include "tools/cli/flow_statistics.h"

namespace railyard::cli {

using namespace sim::literals;

TEST_CASE("summary: a training step") {
  // 8 ms of 9.5 ms is 84.2 %; 8 / 7.8 - 1 = 2.6 %; 1 - 1 / 4 = 75 %; 9.5 - 8 - 1 = 0.5 ms.
  CHECK(
      summary_ddp(*tests::ddp_result().ddp, {}) ==
      "resnet50, 25,557,032 parameters\n"
      "\n"
      "Step time        9.500 ms  26947 samples/s, bound by compute\n"
      "  forward        2.500 ms\n"
      "  backward           5 ms\n"
      "  the rest         500 us  reductions still under way, optimizer\n"
      "\n"
      "  compute            8 ms  84.2 % of the step; 2.6 % slower than without communication\n"
      "  communication      4 ms  75.0 % of it behind compute\n"
      "    exposed          1 ms  10.5 % of the step, the largest part by bucket 1\n"
      "  neither          500 us  launches, host work, gaps between kernels\n"
      "\n"
      "Iterations\n"
      "  1     11 ms   1 bucket  before the buckets are rebuilt\n"
      "  2  10.50 ms  2 buckets  buckets rebuilt before it\n"
      "  3  9.500 ms  2 buckets  steady\n"
      "\n"
      "Gradient buckets of the steady iteration, times from its start\n"
      "  #    size  tensors  ready ms  start ms  end ms  algorithm    ch  busbw GB/s  exposed ms\n"
      "  0   1 MiB        3     4.000     4.010   5.000  Ring Simple  24      123.46       0.000\n"
      "  1  25 MiB        3     7.000     7.010   9.000  Ring Simple  24      123.46       "
      "1.000\n");
}

TEST_CASE("summary: of many buckets both ends are shown") {
  auto ddp = *tests::ddp_result().ddp;
  ddp.buckets.assign(100, ddp.buckets.front());
  const std::string text = summary_ddp(ddp, {});
  CHECK(tests::contains(text, "\n   15 "));
  CHECK_FALSE(tests::contains(text, "\n   16 "));
  CHECK(tests::contains(text, "\n  ...\n   84 "));
  CHECK(tests::contains(text, "\n   99 "));
  CHECK(tests::contains(text, "  68 of 100 buckets are not shown: --full shows all\n"));
  const auto full = tests::lines(summary_ddp(ddp, {.full = true}));
  CHECK(std::count_if(full.begin(), full.end(), [](const std::string& line) {
          return tests::contains(line, "Ring Simple");
        }) == 100);
}

TEST_CASE("summary: collectives by block") {
  CHECK(
      summary_collectives(tests::collective_result(), {}) ==
      "\n"
      "AllReduce of float, 8 ranks\n"
      "  size (B)  elements  algorithm  protocol  channels  time (us)  algbw (GB/s)  busbw (GB/s)\n"
      "      1024       256  Tree       LL               2      12.35          0.08          0.14\n"
      "      2048       512  Tree       LL               2      123.5        165.89        290.30\n"
      "  average busbw 145.22 GB/s\n"
      "\n"
      "AllGather of half, 8 ranks\n"
      "    size (B)   elements  algorithm  protocol  channels  time (us)  algbw (GB/s)  busbw "
      "(GB/s)\n"
      "  8589934592  536870912  Tree       LL               2      42713        201.11        "
      "188.54\n");
}

TEST_CASE("summary: flows") {
  // Times 10, 20, 30, 40 us: mean 25, nearest-rank median 20, 99th percentile 40.
  CHECK(summary_flows(tests::flow_result(), {}) ==
        "\n"
        "Traffic\n"
        "  flows           4  4 MiB in all\n"
        "  makespan    40 us  first start to last end\n"
        "  completion  25 us  mean\n"
        "              20 us  median\n"
        "              40 us  99th percentile\n"
        "              40 us  longest\n"
        "  slowest  from rank  to rank   size  start   took    GB/s\n"
        "       #3          3        0  1 MiB   5 us  40 us   26.21\n"
        "       #2          2        3  1 MiB   5 us  30 us   34.95\n"
        "       #1          1        2  1 MiB   5 us  20 us   52.43\n"
        "       #0          0        1  1 MiB   5 us  10 us  104.86\n");
  CHECK(flow_statistics({}).flows == 0);
  CHECK(slowest_flows(tests::flow_result().flows, 2) == std::vector<std::size_t>{3, 2});
}

TEST_CASE("summary: links") {
  CHECK(summary_links(tests::ddp_result(), {}) ==
        "\n"
        "Busiest links (used: share of what the link could carry in the whole run)\n"
        "  link                         class   carried  can carry    used\n"
        "  node0/gpu0->node0/nvswitch0  nvlink    3 GiB   240 GB/s  25.0 %\n"
        "  node0/nic0->leaf/0           nic       1 MiB    50 GB/s  12.5 %\n"
        "  Carried nothing: 16 of 16 pcie links (node0/gpu0->node0/pcie0)\n");
}

TEST_CASE("summary: links that read the same are shown once") {
  auto result = tests::ddp_result();
  result.busiest_links.assign(10, result.busiest_links.front());
  result.idle_links.clear();
  CHECK(tests::lines(summary_links(result, {})).size() == 4);
  CHECK(tests::contains(summary_links(result, {}), "node0/gpu0->node0/nvswitch0 and 9 like it  "));
}

TEST_CASE("summary: sensitivity is sorted by effect") {
  // 8.74 / 9.5 = 0.92; 9.405 / 9.5 = 0.99.
  auto scenario = tests::small_scenario();
  scenario.ddp.emplace();
  const auto rows = tests::ddp_result().sensitivity;
  CHECK(summary_sensitivity(scenario, rows, {}) ==
        "\n"
        "What changes the step time (9.500 ms), each by itself\n"
        "  compute speed     +10 %  -8.0 %  -760 us\n"
        "  nvlink bandwidth  +10 %  -1.0 %   -95 us\n"
        "  no effect: smp bandwidth\n");
  scenario.ddp.reset();
  CHECK(tests::contains(summary_sensitivity(scenario, rows, {}), "What changes the total time"));
  scenario.collectives.clear();
  CHECK(tests::contains(summary_sensitivity(scenario, rows, {}), "until the last flow ends"));
  CHECK(summary_sensitivity(scenario, {}, {}).empty());
}

TEST_CASE("summary: everything fits a hundred columns, headings are bold on a terminal only") {
  const auto scenario = tests::small_scenario();
  for (const auto& result :
       {tests::ddp_result(), tests::collective_result(), tests::flow_result()}) {
    const std::string text = summary(scenario, result, {});
    for (const std::string& line : tests::lines(text)) CHECK(line.size() <= kWidth);
    CHECK_FALSE(tests::contains(text, "\033"));
    CHECK(tests::contains(text, "parameters a100-dgx\n"));
  }
  CHECK(tests::contains(summary(scenario, tests::ddp_result(), {.bold = true}),
                        "\033[1mNotes\033[0m"));
}

TEST_CASE("summary: a hang names who waits") {
  scenarios::RunResult result;
  result.unfinished = {"rank 1 waits for rank 0"};
  CHECK(summary_hang(result) ==
        "the simulated job would hang: 1 operation never ends\n  rank 1 waits for rank 0\n");
  result.unfinished.resize(30, "x");
  CHECK(tests::contains(summary_hang(result), "  ... and 10 more\n"));
}

}  // namespace railyard::cli
