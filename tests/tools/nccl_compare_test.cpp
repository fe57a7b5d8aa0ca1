#include "tools/cli/nccl_compare.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/paths.h"
#include "tests/skip.h"

using namespace railyard::cli;  // NOLINT: a test's own names
namespace nccl_log = railyard::calibrate::nccl_log;
namespace sim = railyard::sim;

namespace {

nccl_log::Log read(std::string_view text) {
  auto log = nccl_log::read_text(text, "job.log");
  REQUIRE(log.ok());
  return std::move(log).value();
}

// Two ranks on one host, everything said once.
constexpr std::string_view kLog =
    "NCCL version 2.27.7+cuda13.0\n"
    "n:1:2 [0] NCCL INFO comm 0xa rank 0 nranks 2 cudaDev 0 busId 1000 commId 0x77 - Init START\n"
    "n:1:3 [1] NCCL INFO comm 0xb rank 1 nranks 2 cudaDev 1 busId 2000 commId 0x77 - Init START\n"
    "n:1:2 [0] NCCL INFO NCCL_PROTO set by environment to Simple\n"
    "n:1:2 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 1, bw 20.0/20.0, type NVL/PIX, "
    "sameChannels 1\n"
    "n:1:2 [0] NCCL INFO  0 : GPU/0-1000 GPU/0-2000\n"
    "n:1:2 [0] NCCL INFO Channel 00/02 : 0 1\n"
    "n:1:2 [0] NCCL INFO Channel 01/02 : 0 1\n"
    "n:1:3 [1] NCCL INFO Ring 00 : 0 -> 1 -> 0\n"
    "n:1:2 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1\n"
    "n:1:2 [0] NCCL INFO NVLS Head  0:  0\n"
    "n:1:2 [0] NCCL INFO P2P Chunksize set to 524288\n"
    "n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
    "n:1:3 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] [send] via NET/IB/3(0)/GDRDMA\n"
    "n:1:2 [0] NCCL INFO 2 coll channels, 2 collnet channels, 0 nvls channels, 4 p2p channels, 4 "
    "p2p channels per peer\n"
    "n:1:2 [0] NCCL INFO   Algorithm   |   Tree   |   Ring   |\n"
    "n:1:2 [0] NCCL INFO  Max NThreads | 512 | 640 | 512 | 512 | 640 | 256 |\n"
    "n:1:2 [0] NCCL INFO     AllReduce | 8.0/ 37.9 | 16.5/ 112.0 | 16.4/ 144.0 | 7.8/ 87.7 | 17.8/ "
    "220.8 | 15.2/ 240.0 |\n"
    "n:1:2 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1024 datatype 9 op 3 "
    "root 0 comm 0xa [nranks=2] stream 0x5\n"
    "n:1:2 [0] NCCL INFO AllReduce: 2048 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}\n"
    "n:1:2 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n"
    "n:1:2 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo 1 proto 0 time 8.125\n";

sim::TreeEdges edges(std::int32_t up, std::int32_t down) {
  sim::TreeEdges tree;
  tree.up = up;
  tree.down[0] = down;
  return tree;
}

nccl_log::Tuning table() {
  nccl_log::Tuning tuning;
  const double cells[2][3][2] = {{{8.04, 37.88}, {16.5, 112}, {16.4, 144}},
                                 {{7.8, 87.7}, {17.8, 220.8}, {15.2, 240}}};
  const std::int64_t threads[2][3] = {{512, 640, 512}, {512, 640, 256}};
  for (std::size_t a = 0; a < 2; ++a) {
    for (std::size_t p = 0; p < 3; ++p) {
      tuning.cells[std::size_t(nccl_log::Function::all_reduce)][a][p] = {cells[a][p][0],
                                                                         cells[a][p][1]};
      tuning.max_threads[a][p] = threads[a][p];
    }
  }
  return tuning;
}

// Says what kLog says.
NcclPrediction same_plan() {
  NcclPrediction plan;
  plan.version = "2.27.7";
  plan.variables = {{"NCCL_PROTO", "Simple"}};
  plan.ranks = 2;
  plan.nodes = 1;
  plan.channels = 2;
  plan.nvls_channels = 0;
  plan.p2p_channels = 4;
  plan.p2p_channels_per_peer = 4;
  plan.p2p_chunk = 524288;
  sim::ChannelGraph ring;
  ring.bw_intra = ring.bw_inter = 20;
  ring.type_intra = sim::PathType::nvl;
  ring.type_inter = sim::PathType::pix;
  ring.same_channels = true;
  ring.channels.push_back({.gpus = {0, 1}});
  plan.searches = {{ring}};
  plan.node_of = {0, 0};
  plan.rings = {{0, 1}, {1, 0}};
  plan.trees = {{edges(-1, 1), edges(0, -1)}, {edges(1, -1), edges(-1, 0)}};
  plan.nvls_heads = {{0}};
  plan.tuning = table();
  plan.transport = [](const nccl_log::Edge& edge) {
    if (edge.from == 0) return std::optional(NcclPrediction::Transport{});
    return std::optional(NcclPrediction::Transport{nccl_log::Transport::net, 3, 0, true});
  };
  plan.choose = [](const NcclPrediction::Call& call) -> sim::Result<NcclPrediction::Choice> {
    // 1024 bf16 max as called; 1024 floats, assumed for the 4096 bytes whose call is not logged.
    CHECK(call.count == 1024);
    if (call.datatype == 9) {
      CHECK(call.op == 3);
      return NcclPrediction::Choice{nccl_log::Algorithm::tree, nccl_log::Protocol::ll, 7, 0, 0};
    }
    return NcclPrediction::Choice{nccl_log::Algorithm::ring, nccl_log::Protocol::ll, 8.12501, 0, 1};
  };
  return plan;
}

const Agreement& kind(const Comparison& comparison, std::string_view name) {
  for (const Agreement& agreement : comparison.kinds)
    if (agreement.kind == name) return agreement;
  FAIL("no such kind: " << name);
  return comparison.kinds.at(0);
}

Comparison changed(const std::function<void(NcclPrediction&)>& change) {
  NcclPrediction plan = same_plan();
  change(plan);
  return compare(plan, read(kLog), 0);
}

}  // namespace

TEST_CASE("compare: a plan that says what the log says") {
  const Comparison comparison = compare(same_plan(), read(kLog), 0);
  CHECK(comparison.agrees());
  CHECK(comparison.notes.empty());
  CHECK(to_text(comparison) ==
        "searches                      1 agree,    0 differ\n"
        "search channels               1 agree,    0 differ\n"
        "channel counts                5 agree,    0 differ\n"
        "ring orders                   2 agree,    0 differ\n"
        "ring neighbours               1 agree,    0 differ\n"
        "trees                         2 agree,    0 differ\n"
        "NVLS heads                    1 agree,    0 differ\n"
        "transports                    2 agree,    0 differ\n"
        "cost table                    6 agree,    0 differ\n"
        "threads                       6 agree,    0 differ\n"
        "algorithm and protocol        3 agree,    0 differ\n"
        "channels of a call            2 agree,    0 differ\n"
        "NCCL's estimates              1 agree,    0 differ\n");
}

TEST_CASE("compare: every kind of difference is found and cites its line") {
  const auto difference = [](std::string_view name,
                             const std::function<void(NcclPrediction&)>& change) {
    const Comparison comparison = changed(change);
    CHECK_FALSE(comparison.agrees());
    const Agreement& agreement = kind(comparison, name);
    REQUIRE(agreement.differed >= 1);
    const Difference& first = agreement.first.at(0);
    return first.what + ": " + first.planned + " | " + first.logged + " @" +
           std::to_string(first.line);
  };
  CHECK(difference("searches", [](NcclPrediction& p) { p.searches[0][0].bw_inter = 24; }) ==
        "ring search of rank 0: 1 channels, bw 20/24, NVL/PIX, crossNic 0, sameChannels 1 | 1 "
        "channels, bw 20/20, NVL/PIX, crossNic 0, sameChannels 1 @5");
  CHECK(difference("search channels", [](NcclPrediction& p) {
          p.searches[0][0].channels[0].gpus = {1, 0};
        }) == "ring search of rank 0 channel 0: 1 0 by nets -1 -1 | 0 1 by nets -1 -1 @6");
  CHECK(difference("channel counts", [](NcclPrediction& p) { p.channels = 24; }) ==
        "collective channels of rank 0: 24 | 2 @15");
  CHECK(difference("ring neighbours", [](NcclPrediction& p) {
          p.rings[0] = {0, 2, 1};
        }) == "ring of channel 0 at rank 1: 2 -> 1 -> 0 | 0 -> 1 -> 0 @9");
  CHECK(difference("ring orders", [](NcclPrediction& p) {
          p.rings[1] = {0, 2, 1};
        }) == "ring of channel 1: 0 2 1 | 0 1 @8");
  CHECK(difference("trees", [](NcclPrediction& p) { p.trees[1][0].up = -1; }) ==
        "tree of channel 1 at rank 0: up -1, down  | up 1, down  @10");
  CHECK(difference("NVLS heads", [](NcclPrediction& p) { p.nvls_heads = {{1}}; }) ==
        "NVLS head 0: 1 | 0 @11");
  CHECK(difference("transports", [](NcclPrediction& p) {
          p.transport = [](const nccl_log::Edge&) {
            return std::optional(NcclPrediction::Transport{});
          };
        }) == "channel 0 from 1 to 0: P2P | NET/3(0)/GDRDMA @14");
  CHECK(difference("cost table", [](NcclPrediction& p) {
          p.tuning->cells[4][0][0]->latency = 8.06;
        }) == "AllReduce Tree LL: 8.1/37.9 | 8.0/37.9 @16");
  CHECK(difference("threads", [](NcclPrediction& p) { p.tuning->max_threads[1][2] = 512; }) ==
        "most threads of Ring Simple: 512 | 256 @16");
  const auto choose = [](NcclPrediction::Choice choice) {
    return [choice](NcclPrediction& plan) {
      plan.choose = [choice](const NcclPrediction::Call&) { return sim::Result(choice); };
    };
  };
  using nccl_log::Algorithm;
  using nccl_log::Protocol;
  CHECK(difference("algorithm and protocol", choose({Algorithm::ring, Protocol::ll})) ==
        "AllReduce of 2048 bytes: Ring/LL | Tree/LL @20");
  CHECK(difference("channels of a call", choose({Algorithm::ring, Protocol::ll, 8.125, 0, 3})) ==
        "AllReduce of 4096 bytes: 0..3 | 0..1 @21");
  CHECK(difference("NCCL's estimates", choose({Algorithm::ring, Protocol::ll, 9, 0, 1})) ==
        "AllReduce of 4096 bytes: 9.000000 | 8.125000 @22");
  CHECK(difference("algorithm and protocol", [](NcclPrediction& plan) {
          plan.choose = [](const NcclPrediction::Call&) {
            return sim::Result<NcclPrediction::Choice>(sim::bad_input("none left"));
          };
        }) == "AllReduce of 2048 bytes: none left | Tree/LL @20");
}

TEST_CASE("compare: what a plan does not say of a network is not held against it") {
  const auto transports = [](NcclPrediction::Transport planned) {
    const Comparison comparison = changed([&](NcclPrediction& plan) {
      plan.transport = [planned](const nccl_log::Edge& edge) {
        return edge.from == 1 ? std::optional(planned) : std::nullopt;
      };
    });
    CHECK(kind(comparison, "transports").not_comparable == 1);
    return kind(comparison, "transports").agreed;
  };
  using nccl_log::Transport;
  CHECK(transports({Transport::net, {}, {}, {}}) == 1);
  CHECK(transports({Transport::net, 3, {}, {}}) == 1);
  CHECK(transports({Transport::net, 2, {}, {}}) == 0);
  CHECK(transports({Transport::net, {}, -1, {}}) == 0);
  CHECK(transports({Transport::net, {}, {}, false}) == 0);
  CHECK(transports({Transport::shm, {}, {}, {}}) == 0);
}

TEST_CASE("compare: notes say what explains differences") {
  const Comparison comparison = changed([](NcclPrediction& plan) {
    plan.version = "2.30.7";
    plan.variables = {{"NCCL_PROTO", "LL"}};
    plan.ranks = 4;
    plan.nodes = 2;
  });
  REQUIRE(comparison.notes.size() == 3);
  CHECK(comparison.notes[0] ==
        "the plan is for NCCL 2.30.7, the log is of 2.27.7+cuda13.0 (line 1)");
  CHECK(comparison.notes[1] == "the plan has 4 ranks, the log's communicator 2");
  CHECK(comparison.notes[2] == "the job ran with NCCL_PROTO=Simple (line 4), the plan has LL");
  const Comparison unset = changed([](NcclPrediction& plan) { plan.variables.clear(); });
  CHECK(unset.notes.at(0) ==
        "the job ran with NCCL_PROTO=Simple (line 4), the plan does not set it");
}

TEST_CASE("compare: many differences are counted, the first are shown") {
  std::string text =
      "n:1:2 [0] NCCL INFO comm 0xa rank 0 nranks 2 cudaDev 0 busId 1000 commId 0x77 - Init "
      "START\n";
  NcclPrediction plan;
  for (int c = 0; c < 9; ++c) {
    text += "n:1:2 [0] NCCL INFO Ring 0" + std::to_string(c) + " : 1 -> 0 -> 1\n";
    plan.rings.push_back({0, 1, 2});
  }
  const Comparison comparison = compare(plan, read(text), 0);
  REQUIRE(comparison.kinds.size() == 1);
  CHECK(comparison.kinds[0].differed == 9);
  CHECK(comparison.kinds[0].first.size() == kDifferencesShown);
  CHECK(to_text(comparison).find("  and 4 more\n") != std::string::npos);
  CHECK(to_text(comparison)
            .find("  ring of channel 0 at rank 0: planned 2 -> 0 -> 1, the log has 1 -> 0 -> 1 "
                  "(job.log:2)\n") != std::string::npos);
}

TEST_CASE("compare: what cannot be compared is counted apart, and nothing at all is said") {
  const nccl_log::Log log = read(
      "n:1:2 [0] NCCL INFO comm 0xa rank 0 nranks 3 cudaDev 0 busId 1000 commId 0x77 - Init START\n"
      "n:1:2 [0] NCCL INFO Channel 00/02 : 0 1\n"
      "n:1:2 [0] NCCL INFO AllReduce: 3 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n");
  NcclPrediction plan = same_plan();
  const Comparison comparison = compare(plan, log, 0);
  CHECK(kind(comparison, "ring orders").not_comparable == 1);  // cut: two of three ranks
  CHECK(kind(comparison, "algorithm and protocol").not_comparable == 1);
  CHECK(comparison.compared() == 0);
  CHECK(to_text(comparison).find("nothing to compare: the log shows none of the decisions") !=
        std::string::npos);
  CHECK(to_text(comparison).find("note: the log has 1 of 3 ranks\n") != std::string::npos);
}

TEST_CASE("compare: 2 x 8 H100, rings and trees by NCCL's rules against a real log") {
  const std::string path =
      std::string(RAILYARD_SHARED_DIR) + "/samples/nccl-logs/009-nebius-2x8-h100-mlperf-sd.log";
  if (!std::filesystem::exists(path)) RAILYARD_SKIP("no samples/nccl-logs");
  const auto log = nccl_log::read_file(path);
  REQUIRE(log.ok());
  // One channel per NIC: channel c enters a node at GPU c and leaves it at GPU c + 1, going down.
  NcclPrediction plan;
  plan.channels = plan.nvls_channels = plan.p2p_channels = 16;
  plan.p2p_channels_per_peer = 2;
  for (std::uint32_t c = 0; c < 16; ++c) {
    std::vector<std::uint32_t> ring;
    for (std::uint32_t node = 0; node < 2; ++node)
      for (std::uint32_t i = 0; i < 8; ++i) ring.push_back(node * 8 + (c + 16 - i) % 8);
    plan.rings.push_back(ring);
  }
  for (std::int32_t head = 0; head < 8; ++head) plan.nvls_heads.push_back({head, head + 8});
  const std::size_t main = main_communicator(log.value());
  const Comparison comparison = compare(plan, log.value(), main);
  CHECK(kind(comparison, "ring orders").agreed == 16);
  CHECK(kind(comparison, "NVLS heads").agreed == 8);
  CHECK(kind(comparison, "channel counts").agreed == 15 * 4);
  CHECK(comparison.agrees());
}
