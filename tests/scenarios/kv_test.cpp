// Disaggregated serving: bytes by the formula, queues by hand, and what is refused. Back-ends, NICs
// and neighbours: kv_transfer_test.cpp; published transfers: kv_validation_test.cpp.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "scenarios/kv_result.h"
#include "scenarios/run.h"
#include "tests/scenarios/helpers.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using tests::full_scenario;
using tests::good_run;

std::string serving(const std::string& model, const std::string& requests,
                    const std::string& more = "", int ranks = 8) {
  return fmt::format(
      "railyard: 1\ncluster: {{machine: hgx-h100, nodes: 2, fabric: {{kind: switch}}}}\n"
      "nccl: auto\nkv:\n  model: {}\n  prefill: {{ranks: {}, tensor_parallel: {}}}\n"
      "  decode: {{ranks: {}, tensor_parallel: {}, first_rank: 8}}\n  requests: {}\n{}",
      model, ranks, ranks, ranks, ranks, requests, more);
}

const KvResult& kv(const RunResult& result) {
  REQUIRE(result.kv);
  return *result.kv;
}

std::string requests_of(int count, double rate, int input, int output) {
  return fmt::format(
      "{{count: {}, rate: {}, process: uniform, input_tokens: {}, output_tokens: {}}}", count, rate,
      input, output);
}

// Llama-3 70B caches 2 x 80 layers x 8 heads x 128 x 2 B = 327,680 B per token; 1,000 tokens and
// the slot of the first output are 63 blocks of 16. Eight ranks, one head each: 160 regions of 63
// blocks, neighbours in caches that are still fresh.
TEST_CASE("kv: bytes and descriptors") {
  const RunResult result =
      good_run(full_scenario(serving("llama3-70b", requests_of(1, 1, 1000, 2))));
  CHECK(kv(result).moved == sim::bytes(std::int64_t{63} * 16 * 327'680));
  CHECK(kv(result).descriptors == 8 * 160);
  const RunResult single = good_run(full_scenario(serving("llama3-70b", requests_of(1, 1, 1000, 2)),
                                                  {"kv.transfer.join_blocks=false"}));
  CHECK(kv(single).descriptors == 8 * 160 * 63);
  // With fewer heads than ranks every head is held, and moved, twice.
  const RunResult few = good_run(full_scenario(serving("qwen3-235b", requests_of(1, 1, 1000, 2))));
  CHECK(kv(few).moved == sim::bytes(std::int64_t{2} * 63 * 16 * 192'512));
  // A latent cache is held whole by every rank: 61 layers x 576 x 2 B.
  const RunResult latent = good_run(
      full_scenario(serving("deepseek-v3", requests_of(1, 1, 1000, 2), "  dtype: fp8\n", 8),
                    {"parameters.gpu.hbm_capacity=200GB"}));
  CHECK(kv(latent).moved == sim::bytes(std::int64_t{8} * 63 * 16 * 61 * 576));
}

// One request every 10 ms, one per batch: the k-th waits k x (prefill - 10 ms).
TEST_CASE("kv: a queue that grows") {
  const RunResult result = good_run(full_scenario(
      serving("llama3-70b", requests_of(20, 100, 4096, 2), "  max_batched_tokens: 4096\n")));
  const auto& rows = kv(result).requests;
  REQUIRE(rows.size() == 20);
  const sim::Duration prefill = rows[0].prefill;
  CHECK(prefill > sim::microseconds(10'000));
  for (std::size_t k = 0; k < rows.size(); ++k) {
    CHECK(rows[k].prefill == prefill);
    // Arrivals are sums of 0.01 s in floating point: within a picosecond or two.
    const sim::Duration expected =
        (prefill - sim::microseconds(10'000)) * static_cast<std::int64_t>(k);
    CHECK(std::abs((rows[k].queue - expected).count()) <= 2);
    CHECK(rows[k].ttft ==
          rows[k].queue + rows[k].prefill + rows[k].blocks + rows[k].transfer + rows[k].first_step);
  }
}

TEST_CASE("kv: alone, a request takes what its parts take, and equal seeds are equal") {
  const std::string text =
      serving("llama3-8b",
              "{count: 200, rate: 50, seed: 3, input_tokens: {median: 900, sigma: 0.8}, "
              "output_tokens: {median: 40, sigma: 0.5}}");
  const RunResult one = good_run(full_scenario(text));
  CHECK(one.trace_hash == good_run(full_scenario(text)).trace_hash);
  CHECK(one.trace_hash != good_run(full_scenario(text, {"kv.requests.seed=4"})).trace_hash);
  for (const KvRequestRow& row : kv(one).requests) {
    CHECK(row.queue.count() >= 0);
    CHECK(row.transfer.count() > 0);
    CHECK(row.end_to_end >= row.ttft);
  }
  CHECK(kv(one).ttft.p50 <= kv(one).ttft.p90);
  CHECK(kv(one).ttft.p90 <= kv(one).ttft.p99);
}

TEST_CASE("kv: pushing layer by layer hides the transfer, TCP lengthens it") {
  const std::string text = serving("llama3-70b", requests_of(4, 1, 8000, 4));
  const RunResult pull = good_run(full_scenario(text));
  const RunResult push = good_run(full_scenario(text, {"kv.transfer.mode=push"}));
  const RunResult tcp =
      good_run(full_scenario(text, {"kv.transfer.backend=tcp", "kv.transfer.sockets=1"}));
  CHECK(kv(push).moved == kv(pull).moved);
  CHECK(kv(push).transfer.p50 * 10 < kv(pull).transfer.p50);
  CHECK(kv(tcp).transfer.p50 > kv(pull).transfer.p50);
  // 8 ranks at one socket of 3.75 GB/s each.
  const double bytes = static_cast<double>(kv(tcp).moved.raw()) / 4 / 8;
  CHECK(sim::to_seconds(kv(tcp).requests.back().transfer_alone) > bytes / 3.75e9);
}

TEST_CASE("kv: what is refused") {
  const auto read = [](const std::string& set) {
    const auto scenario = scenario_from_text(serving("llama3-70b", requests_of(1, 1, 10, 1)),
                                             "s.yaml", {.sets = {set}});
    return scenario.ok() ? std::string("no error") : scenario.error().text();
  };
  CHECK(read("kv.prefill.ranks=12").find("12 ranks do not divide into groups of 8") !=
        std::string::npos);
  CHECK(read("kv.requests.rate=-3").find("kv.requests.rate") != std::string::npos);
  CHECK(read("kv.model=llama4").find("no model 'llama4' is known") != std::string::npos);
  CHECK(read("kv.decode.first_rank=4").find("its ranks are the prefill pool's") !=
        std::string::npos);
  CHECK(read("kv.transfer.backend=storage").find("needs storage_bandwidth") != std::string::npos);
  const auto run = [](const std::string& model) {
    return tests::error_of_run(full_scenario(serving(model, requests_of(1, 1, 10, 1))));
  };
  const std::string large = run("llama3-405b");
  CHECK(large.find("llama3-405b does not fit the prefill pool: 101.5 GB of weights per GPU") !=
        std::string::npos);
  const tests::TemporaryDirectory directory;
  const auto trace = [&](const std::string& text) {
    const std::string path = directory.write("bad.csv", text);
    return tests::error_of_run(full_scenario(serving("llama3-70b", "{trace: " + path + "}")));
  };
  CHECK(trace("1,100,10\n2,ten,3\n").find("bad.csv:2: whole numbers of tokens") !=
        std::string::npos);
  CHECK(trace("1,0,10\n").find("bad.csv:1: whole numbers of tokens from 1") != std::string::npos);
  CHECK(trace("-1,5,10\n").find("bad.csv:1: a time in seconds from 0") != std::string::npos);
  CHECK(trace("\n").find("the trace holds no request") != std::string::npos);
}

}  // namespace
}  // namespace railyard::scenarios
