// `kv:` from the text to the result: back-ends, NICs, neighbours on them, memory, errors.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "scenarios/kv_result.h"
#include "tests/scenarios/helpers.h"
#include "tests/scenarios/run_helpers.h"
#include "tests/time_limit.h"

namespace railyard::scenarios {
namespace {

using tests::error_of;
using tests::full_scenario;
using tests::good_run;

// One GPU here, one there, 400 Gb/s between them; a request of 16 MiB: 128 tokens of llama3-8b take
// 9 blocks with the slot of the first output.
std::string two_nodes(std::string_view transfer, std::string_view more = "") {
  return fmt::format(R"(railyard: 1
cluster:
  machine: hgx-h100
  nodes: 2
  fabric: {{kind: rail-optimised}}
kv:
  model: llama3-8b
  prefill: {{ranks: 1, tensor_parallel: 1}}
  decode: {{ranks: 1, tensor_parallel: 1, first_rank: 8}}
  requests: {{count: 2, clients: 1, input_tokens: 128, output_tokens: 2}}
  transfer: {{{}}}
{})",
                     transfer, more);
}

const KvResult& kv_of(const RunResult& result) {
  REQUIRE(result.kv);
  return *result.kv;
}

constexpr std::int64_t kMoved = 9 * 16 * 131'072;

// Of the second request: no handshake.
KvRequestRow second(const std::string& text) {
  const RunResult result = good_run(full_scenario(text));
  REQUIRE(kv_of(result).requests.size() == 2);
  CHECK(kv_of(result).requests[1].moved.raw() == kMoved);
  return kv_of(result).requests[1];
}

TEST_CASE("kv: RDMA takes the NIC's rate, all NICs that of the slowest way to one") {
  const std::string costs = "request_overhead: 0us, descriptor_cost: 0us";
  const KvRequestRow one = second(two_nodes("backend: rdma, " + costs));
  // 48 of 50 GB/s (the profile's share of the line rate).
  CHECK(sim::to_seconds(one.wire) * 48e9 == doctest::Approx(kMoved).epsilon(0.02));
  CHECK(one.descriptors == 64);
  // All eight NICs of the node: half of the data cross to the other socket at 22 GB/s, the slowest
  // part.
  const KvRequestRow all = second(two_nodes("backend: rdma, nics: all, " + costs));
  CHECK(sim::to_seconds(all.wire) * 22e9 == doctest::Approx(kMoved / 2).epsilon(0.03));
}

TEST_CASE("kv: descriptors bound the rate where blocks are not joined") {
  const KvRequestRow row = second(two_nodes("join_blocks: false, descriptor_cost: 10us"));
  CHECK(row.descriptors == 64 * 9);
  CHECK(sim::to_us(row.posting) == doctest::Approx(10 * 64 * 9));
  CHECK(sim::to_us(row.wire) == doctest::Approx(10 * (64 * 9 - 1)).epsilon(0.01));
}

TEST_CASE("kv: TCP goes at its sockets' rate, storage twice at its own") {
  const KvRequestRow tcp = second(two_nodes("backend: tcp, sockets: 3"));
  CHECK(sim::to_seconds(tcp.wire) * 11.25e9 == doctest::Approx(kMoved).epsilon(0.02));
  const KvRequestRow storage = second(
      two_nodes("backend: storage, storage_bandwidth: 5GB/s, storage_read_bandwidth: 10GB/s, "
                "storage_latency: 100us"));
  const double seconds = kMoved / 5e9 + kMoved / 10e9 + 200e-6;
  CHECK(sim::to_seconds(storage.wire) == doctest::Approx(seconds).epsilon(0.02));
}

TEST_CASE("kv: inside a node NVLink, or PCIe through the host") {
  const auto inside = [](std::string_view backend) {
    std::string text = two_nodes(fmt::format("backend: {}, descriptor_cost: 0us", backend));
    text.replace(text.find("first_rank: 8"), 13, "first_rank: 1");
    return text;
  };
  const RunResult result = good_run(full_scenario(inside("auto")));
  CHECK(kv_of(result).backends == "nvlink, 1 pairs of ranks");
  const KvRequestRow nvlink = kv_of(result).requests[1];
  const KvRequestRow pcie = second(inside("pcie"));
  CHECK(sim::to_seconds(nvlink.wire) * 384e9 == doctest::Approx(kMoved).epsilon(0.05));
  CHECK(sim::to_seconds(pcie.wire) * 55.4e9 == doctest::Approx(kMoved).epsilon(0.05));
  // RDMA by force: out of one NIC and into the next.
  CHECK(sim::to_seconds(second(inside("rdma")).wire) * 48e9 ==
        doctest::Approx(kMoved).epsilon(0.05));
}

TEST_CASE("kv: a flow on the same NICs takes half of their rate") {
  const std::string flow = R"(traffic:
  - {from: 0, to: 8, size: 1TB, start: 0us}
)";
  std::string text = two_nodes("backend: rdma", "");
  const KvRequestRow alone = second(text);
  const KvRequestRow shared = second(two_nodes("backend: rdma", flow));
  CHECK(sim::to_seconds(shared.wire) / sim::to_seconds(alone.wire) ==
        doctest::Approx(2).epsilon(0.05));
}

// 16 + 16 GPUs; AllReduces of the decode nodes' neighbours over the same NICs.
TEST_CASE("kv: collectives beside the serving slow both") {
  const std::string text = R"(railyard: 1
cluster:
  machine: hgx-h100
  nodes: 2
  fabric: {kind: rail-optimised}
ranks:
  groups:
    pair: [0, 8]
nccl: {algorithm: Ring, protocol: Simple, channels: 8}
kv:
  model: llama3-8b
  prefill: {ranks: 1, tensor_parallel: 1}
  decode: {ranks: 1, tensor_parallel: 1, first_rank: 8}
  requests: {count: 5, clients: 1, input_tokens: 4096, output_tokens: 2}
)";
  const RunResult quiet = good_run(full_scenario(text));
  const RunResult busy = good_run(
      full_scenario(text, {"kv.beside=[{collective: AllReduce, sizes: [64MiB], group: pair}]"}));
  CHECK(kv_of(quiet).beside.empty());
  REQUIRE(kv_of(busy).beside.size() == 1);
  const KvBesideRow& row = kv_of(busy).beside.front();
  CHECK(row.what == "AllReduce 64MiB pair");
  CHECK(row.ranks == 2);
  CHECK(row.calls > 10);
  CHECK(row.mean > row.alone);
  CHECK(kv_of(busy).wire.p50 > kv_of(quiet).wire.p50 * 3 / 2);
  CHECK(busy.replays == 0);
}

TEST_CASE("kv: a trace of requests") {
  const tests::TemporaryDirectory directory;
  directory.write("day.csv", "seconds,input,output\n0.5,256,3\n0.25,128,2\n");
  std::string text = two_nodes("");
  const std::string written = "{count: 2, clients: 1, input_tokens: 128, output_tokens: 2}";
  text.replace(text.find(written), written.size(), "{trace: day.csv}");
  const auto scenario = read_scenario(directory.write("s.yaml", text));
  REQUIRE_MESSAGE(scenario.ok(), tests::error_of(scenario));
  const RunResult result = good_run(scenario.value());
  REQUIRE(kv_of(result).requests.size() == 2);
  CHECK(kv_of(result).requests[0].input_tokens == 128);
  CHECK(kv_of(result).requests[0].arrival == sim::microseconds(250'000));
  CHECK(kv_of(result).requests[1].output_tokens == 3);
  CHECK(resolved_yaml(scenario.value()).find(directory.path("day.csv")) != std::string::npos);
  directory.write("day.csv", "0.5,256\n");
  CHECK(tests::error_of_run(scenario.value()).find("day.csv:1: three columns are expected") !=
        std::string::npos);
}

std::string error_with(std::string_view set) {
  const auto result = scenario_from_text(two_nodes(""), "s.yaml", {.sets = {std::string(set)}});
  return tests::error_of(result);
}

TEST_CASE("kv: errors of the text") {
  CHECK(error_with("kv.prefill={ranks: 6, tensor_parallel: 4}")
            .ends_with("6 ranks do not divide into groups of 4"));
  CHECK(error_with("kv.prefill={ranks: 6, tensor_parallel: 6}")
            .ends_with("32 query heads do not divide over 6 ranks"));
  CHECK(error_with("kv.requests={count: 1, rate: -3, input_tokens: 1, output_tokens: 1}")
            .ends_with("an arrival rate must be positive"));
  CHECK(error_with("kv.requests={count: 1, input_tokens: 1, output_tokens: 1}")
            .find("the key 'rate' is missing") != std::string::npos);
  CHECK(
      error_with("kv.requests.rate=2").ends_with("a closed load has neither 'rate' nor 'process'"));
  CHECK(error_with("kv.decode.first_rank=0").ends_with("its ranks are the prefill pool's"));
  CHECK(error_with("kv.model=llama3-8").find("no model 'llama3-8' is known") != std::string::npos);
  CHECK(error_with("kv.transfer={backend: storage}")
            .ends_with("the back-end 'storage' needs storage_bandwidth"));
  CHECK(error_with("kv.transfer={layers_per_push: 2}")
            .ends_with("'layers_per_push' belongs to the mode push"));
  CHECK(error_with("kv.beside=[{collective: Broadcast, sizes: [1MiB]}]")
            .ends_with("a collective without a root is expected"));
  CHECK(error_with("kv.transfer={library: nixel}").find("did you mean 'nixl'?") !=
        std::string::npos);
}

std::string run_error(std::vector<std::string> sets) {
  return tests::error_of_run(full_scenario(two_nodes(""), std::move(sets)));
}

TEST_CASE("kv: errors of the cluster") {
  CHECK(run_error({"kv.decode.first_rank=16"})
            .ends_with("kv.decode: its last rank is 16, but the job has 16 ranks"));
  CHECK(run_error({"kv.transfer={backend: nvlink}"})
            .ends_with("ranks 0 and 8 are not in one NVLink domain"));
  CHECK(run_error({"kv.transfer={backend: pcie}"}).ends_with("ranks 0 and 8 are not in one node"));
  // 70.55 G parameters of two bytes, and 144 tokens of 327,680 B.
  CHECK(run_error({"kv.model=llama3-70b"})
            .ends_with("llama3-70b does not fit the prefill pool: 141.1 GB of weights per GPU and "
                       "0.0 GB of KV cache for the longest request (144 tokens) are 141.2 GB, and "
                       "80.0 GB x 0.9 are there (gpu.hbm_capacity, memory_utilization)"));
}

TEST_CASE("kv: the shipped scenarios end, and equal seeds give equal hashes") {
  for (const char* name : {"kv-disaggregated.yaml", "kv-layerwise-push.yaml", "kv-tcp.yaml"}) {
    CAPTURE(name);
    const std::vector<std::string> few{"kv.requests.count=60"};
    const RunResult result = good_run(tests::shipped_scenario(name, few));
    const KvResult& kv = kv_of(result);
    CHECK(kv.requests.size() == 60);
    CHECK(kv.ttft.p50 <= kv.ttft.p90);
    CHECK(kv.ttft.p90 <= kv.ttft.p99);
    for (const KvRequestRow& row : kv.requests)
      CHECK(row.ttft == row.queue + row.prefill + row.blocks + row.transfer + row.first_step);
    CHECK(good_run(tests::shipped_scenario(name, few)).trace_hash == result.trace_hash);
    const std::vector<std::string> other{"kv.requests.count=60", "kv.requests.seed=9"};
    CHECK(good_run(tests::shipped_scenario(name, other)).trace_hash != result.trace_hash);
  }
}

TEST_CASE("kv: ten thousand requests over 16 and 16 GPUs in a few seconds") {
  const std::clock_t begin = std::clock();
  const RunResult result =
      good_run(tests::shipped_scenario("kv-disaggregated.yaml", {"kv.requests.count=10000"}));
  const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  CHECK(kv_of(result).requests.size() == 10'000);
  MESSAGE(fmt::format("{} events in {:.2f} s of CPU", result.events, took));
  CHECK(result.events < 2'000'000);
  CHECK(took < 10 * tests::kSlowdown);
}

TEST_CASE("kv: pushed layers leave less to wait for than a pull, TCP more") {
  const std::vector<std::string> few{"kv.requests.count=60"};
  const auto transfer = [&](const char* name) {
    return kv_of(good_run(tests::shipped_scenario(name, few))).transfer.p50;
  };
  const sim::Duration pull = transfer("kv-disaggregated.yaml");
  CHECK(transfer("kv-layerwise-push.yaml") < pull);
  CHECK(transfer("kv-tcp.yaml") > 3 * pull);
}

}  // namespace
}  // namespace railyard::scenarios
