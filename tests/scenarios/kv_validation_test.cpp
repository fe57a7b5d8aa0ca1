// The published KV transfers of vLLM with Mooncake (Qwen3-8B, TP8 to TP8 over eight 200 Gb/s RoCE
// NICs), row by row. The library's overhead of a call is calibrated on the two smallest rows
// (models/kv/transfers.cpp), the others are predictions.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "scenarios/decode.h"
#include "scenarios/kv_result.h"
#include "tests/paths.h"
#include "tests/scenarios/run_helpers.h"
#include "tests/skip.h"

namespace railyard::scenarios {
namespace {

// "approximately 200 GB/s for the 8x RoCE connections" are 200 Gb/s a NIC.
std::string mooncake(std::int64_t tokens) {
  return fmt::format(R"(railyard: 1
cluster:
  machine: hgx-h800
  nodes: 2
  nic_rate: 200Gb/s
  fabric: {{kind: rail-optimised}}
profile: [h800-hgx, net-roce]
nccl: auto
kv:
  model: qwen3-8b
  prefill: {{ranks: 8, tensor_parallel: 8}}
  decode: {{ranks: 8, tensor_parallel: 8}}
  max_batched_tokens: 1
  requests: {{count: 20, clients: 1, input_tokens: {}, output_tokens: 8}}
  transfer: {{library: mooncake}}
)",
                     tokens);
}

struct Row {
  std::int64_t tokens = 0;
  double milliseconds = 0;
};

std::vector<Row> published(const std::string& path) {
  const auto text = read_text_file(path);
  REQUIRE_MESSAGE(text.ok(), text.error().text());
  const auto tree = parse_yaml(text.value(), path);
  REQUIRE_MESSAGE(tree.ok(), tree.error().text());
  const Node* rows = tree.value().find("rows");
  REQUIRE(rows != nullptr);
  std::vector<Row> out;
  for (const Node& row : rows->items)
    out.push_back({std::stoll(row.items.at(0).scalar), std::stod(row.items.at(3).scalar)});
  return out;
}

TEST_CASE("[reference] KV transfer: Mooncake's rows within 15 %") {
  const std::filesystem::path path =
      std::filesystem::path(RAILYARD_SHARED_DIR) / "reference/ddp/mooncake_vllm_pd.yaml";
  if (!std::filesystem::exists(path)) RAILYARD_SKIP("no reference data");
  const std::vector<Row> rows = published(path.string());
  CHECK(rows.size() == 9);
  for (const Row& row : rows) {
    const RunResult result = tests::good_run(tests::full_scenario(mooncake(row.tokens)));
    REQUIRE(result.kv);
    // The median leaves out the first request, which also pays for the handshake.
    const double predicted = sim::to_us(result.kv->transfer_alone.p50) * 1e-3;
    const double error = predicted / row.milliseconds - 1;
    MESSAGE(fmt::format("{:>6} tokens: {:6.2f} ms published, {:6.2f} ms predicted, {:+.1f} %",
                        row.tokens, row.milliseconds, predicted, error * 100));
    CHECK(std::abs(error) < 0.15);
    // The published KV size: blocks of 16 tokens, one more than the prompt needs.
    CHECK(result.kv->requests.front().moved.raw() == (row.tokens + 16) * 147'456);
  }
}

}  // namespace
}  // namespace railyard::scenarios
