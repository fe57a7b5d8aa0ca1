// Megatron's model parallelism: bytes that a rank sends in a step against the usual formulas, the
// pipeline's bubble against (q - 1) / (m v), and what it refuses.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <map>

#include "scenarios/run.h"
#include "scenarios/training_result.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using sim::Collective;
using tests::error_of_run;
using tests::full_scenario;
using tests::good_run;

// A small Llama (or Mixtral, with experts): s tokens of h elements, f in the MLP.
struct Toy {
  std::int64_t layers = 4, s = 64, h = 128, kv = 64, f = 256, vocabulary = 1024, experts = 0;
  static constexpr std::int64_t kTopK = 2;
  std::string parameters, run;

  void weight(const std::string& name, std::int64_t out, std::int64_t in) {
    parameters += fmt::format("    - {{name: {}.weight, shape: [{}, {}]}}\n", name, out, in);
  }
  void linear(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t rows) {
    weight(name, out, in);
    run += fmt::format(
        "    - {{name: {0}, kind: gemm, parameters: [{0}.weight], forward_flops: {1}, "
        "input_elements: {2}, output_elements: {3}}}\n",
        name, 2 * rows * in * out, rows * in, rows * out);
  }
  void norm(const std::string& name) {
    parameters += fmt::format("    - {{name: {}.weight, shape: [{}]}}\n", name, h);
    run += fmt::format(
        "    - {{name: {0}, kind: norm, parameters: [{0}.weight], input_elements: {1}, "
        "output_elements: {1}}}\n",
        name, s * h);
  }
  void plain(const std::string& name, const char* kind, std::int64_t flops, std::int64_t elements) {
    run += fmt::format(
        "    - {{name: {}, kind: {}, forward_flops: {}, input_elements: {}, output_elements: "
        "{}}}\n",
        name, kind, flops, elements, elements);
  }
  void mlp(const std::string& layer) {
    if (experts == 0) {
      linear(layer + ".mlp.gate_proj", f, h, s);
      linear(layer + ".mlp.up_proj", f, h, s);
      plain(layer + ".mlp.gate_proj.swiglu", "elementwise", 0, s * f);
      return linear(layer + ".mlp.down_proj", h, f, s);
    }
    linear(layer + ".moe.gate", experts, h, s);
    for (std::int64_t e = 0; e < experts; ++e) {
      const std::string expert = fmt::format("{}.moe.experts.{}", layer, e);
      const std::int64_t rows = s * kTopK / experts;
      linear(expert + ".w1", f, h, rows);
      linear(expert + ".w3", f, h, rows);
      plain(expert + ".w1.swiglu", "elementwise", 0, rows * f);
      linear(expert + ".w2", h, f, rows);
    }
  }
  std::string text() {
    weight("embed_tokens", vocabulary, h);
    run += fmt::format(
        "    - {{name: embed_tokens, kind: embedding, has_dgrad: false, parameters: "
        "[embed_tokens.weight], input_elements: {0}, output_elements: {0}}}\n",
        s * h);
    for (std::int64_t l = 0; l < layers; ++l) {
      const std::string layer = fmt::format("layers.{}", l);
      norm(layer + ".input_layernorm");
      linear(layer + ".self_attn.q_proj", h, h, s);
      linear(layer + ".self_attn.k_proj", kv, h, s);
      linear(layer + ".self_attn.v_proj", kv, h, s);
      plain(layer + ".self_attn", "attention", 4 * s * s * h, 2 * s * h);
      linear(layer + ".self_attn.o_proj", h, h, s);
      plain(layer + ".self_attn.add", "elementwise", 0, s * h);
      norm(layer + ".post_attention_layernorm");
      mlp(layer);
      plain(layer + ".mlp.add", "elementwise", 0, s * h);
    }
    norm("norm");
    linear("lm_head", vocabulary, h, s);
    plain("loss", "elementwise", 0, s * vocabulary);
    return "    name: toy\n    parameters:\n" + parameters + "    layers:\n" + run;
  }
};

std::string job(Toy toy, int ranks, const std::string& more, int micro_batches = 2) {
  return fmt::format(
      "railyard: 1\ncluster: {{machine: hgx-h100, nodes: {}, fabric: {{kind: rail-optimised, "
      "levels: 2, hosts_per_leaf: 4, oversubscription: 1}}}}\nranks: {{count: {}}}\n"
      "nccl: {{algorithm: Ring, protocol: Simple, channels: 2}}\n"
      "megatron:\n  micro_batch_size: 2\n  gradient_accumulation: {}\n  precision: bf16\n"
      "  optimizer: adamw\n  iterations: 2\n{}  model:\n{}",
      (ranks + 7) / 8, ranks, micro_batches, more, toy.text());
}

using Sent = std::map<std::pair<std::string, Collective>, std::int64_t>;

Sent sent(const RunResult& result) {
  Sent bytes;
  for (const CallRow& row : result.training->calls)
    bytes[{row.group, row.collective}] += row.sent.raw();
  return bytes;
}

std::string tensor(std::int64_t t, bool sequence = false) {
  return fmt::format("  tensor_model_parallel_size: {}\n", t) +
         (sequence ? "  sequence_parallel: true\n" : "");
}

constexpr std::int64_t kBatch = 2, kBytes = 2, kMicro = 2;

TEST_CASE("model parallel: tensor parallelism sends 8 b s h e (t-1)/t per layer and micro-batch") {
  for (const std::int64_t t : {2, 4, 8}) {
    CAPTURE(t);
    const Toy toy;
    const Sent bytes = sent(good_run(full_scenario(job(toy, static_cast<int>(t), tensor(t)))));
    const std::int64_t one = kBatch * toy.s * toy.h * kBytes;
    // Besides the layers': the embedding's output, the input's gradient of the logits (AllReduce,
    // 2 x each) and three AllReduce of one float per token.
    const std::int64_t layers = 8 * one * toy.layers;
    const std::int64_t ends = 2 * 2 * one + 3 * 2 * kBatch * toy.s * 4;
    CHECK(bytes.at({"tp", Collective::all_reduce}) == kMicro * (layers + ends) * (t - 1) / t);
    CHECK(bytes.size() == 1);  // one data-parallel rank
  }
}

TEST_CASE("model parallel: sequence parallelism sends the same and gathers inputs once more") {
  for (const std::int64_t t : {2, 4, 8}) {
    CAPTURE(t);
    const Toy toy;
    const Sent bytes =
        sent(good_run(full_scenario(job(toy, static_cast<int>(t), tensor(t, true)))));
    const std::int64_t part = kBatch * toy.s * toy.h * kBytes * (t - 1) / t;
    // A layer: forward 2 AG and 2 RS; backward 2 AG and 2 RS, and the inputs of two column-parallel
    // GEMMs again. Embedding: RS, backward AG. Logits: AG; AG again, RS.
    CHECK(bytes.at({"tp", Collective::all_gather}) == kMicro * part * (6 * toy.layers + 1 + 2));
    CHECK(bytes.at({"tp", Collective::reduce_scatter}) == kMicro * part * (4 * toy.layers + 1 + 1));
    const std::int64_t loss = kMicro * 3 * 2 * kBatch * toy.s * 4 * (t - 1) / t;
    const std::int64_t norms = 2 * (2 * toy.layers + 1) * toy.h * kBytes * (t - 1) / t;
    CHECK(bytes.at({"tp", Collective::all_reduce}) == loss + norms);
  }
}

TEST_CASE("model parallel: a stage sends b s h e per boundary, micro-batch and direction") {
  for (const std::int64_t q : {2, 4})
    for (const std::int64_t v : {1, 2})
      for (const std::int64_t t : {1, 2}) {
        CAPTURE(q);
        CAPTURE(v);
        CAPTURE(t);
        Toy toy;
        toy.layers = 8;
        const std::int64_t m = 2 * q;
        std::string more = fmt::format("  pipeline_model_parallel_size: {}\n", q);
        if (v > 1) more += fmt::format("  virtual_pipeline_model_parallel_size: {}\n", v);
        if (t > 1) more += tensor(t, true);
        const RunResult result =
            good_run(full_scenario(job(toy, static_cast<int>(q * t), more, static_cast<int>(m))));
        const Sent bytes = sent(result);
        const std::int64_t one = kBatch * toy.s * toy.h * kBytes / t;
        // Stage 0 sends every chunk's output on, and the gradients of all its chunks but the first
        // back.
        CHECK(bytes.at({"pp", Collective::scatter}) == m * v * one);
        CHECK(bytes.at({"pp back", Collective::scatter}) == m * (v - 1) * one);
        CHECK(result.training->stages.size() == static_cast<std::size_t>(q));
      }
}

TEST_CASE("model parallel: context parallelism, ring and gathered") {
  for (const std::int64_t c : {2, 4}) {
    Toy toy;
    const std::string more = fmt::format("  context_parallel_size: {}\n", c);
    const std::int64_t block = 2 * kBatch * toy.s / c * toy.kv * kBytes;
    const Sent ring = sent(good_run(full_scenario(job(toy, static_cast<int>(c), more))));
    CHECK(ring.at({"cp", Collective::send_recv}) == kMicro * toy.layers * 3 * (c - 1) * block);
    const Sent gathered = sent(good_run(
        full_scenario(job(toy, static_cast<int>(c), more + "  cp_comm_type: all_gather\n"))));
    CHECK(gathered.at({"cp", Collective::all_gather}) == kMicro * toy.layers * 2 * (c - 1) * block);
    CHECK(gathered.at({"cp", Collective::reduce_scatter}) == kMicro * toy.layers * (c - 1) * block);
    // Ulysses: Q, K, V and the output, forward and backward, (c - 1) / c of each.
    const Sent heads = sent(
        good_run(full_scenario(job(toy, static_cast<int>(c), more + "  cp_comm_type: a2a\n"))));
    CHECK(heads.at({"cp", Collective::all_to_all}) == kMicro * toy.layers * 2 * kBatch *
                                                          (toy.s / c) * (2 * toy.h + 2 * toy.kv) *
                                                          kBytes * (c - 1) / c);
    // Gradients are reduced over the context-parallel ranks.
    CHECK(ring.count({"dp", Collective::reduce_scatter}) == 1);
  }
}

TEST_CASE("model parallel: experts send 4 k b s h e (E-1)/E per MoE layer and micro-batch") {
  for (const std::int64_t e : {2, 4}) {
    Toy toy;
    toy.experts = 8;
    const std::string more = fmt::format("  expert_model_parallel_size: {}\n", e);
    const auto ranks = static_cast<int>(2 * e);  // two replicas of the experts
    const RunResult result = good_run(full_scenario(job(toy, ranks, more)));
    const Sent bytes = sent(result);
    const std::int64_t one = Toy::kTopK * kBatch * toy.s * toy.h * kBytes * (e - 1) / e;
    CHECK(bytes.at({"ep", Collective::all_to_all}) == kMicro * toy.layers * 4 * one);
    const Sent twice =
        sent(good_run(full_scenario(job(toy, ranks, more + "  moe_expert_capacity_factor: 2\n"))));
    CHECK(twice.at({"ep", Collective::all_to_all}) == kMicro * toy.layers * 4 * 2 * one);
    // Expert gradients over 2 ranks, dense ones over all; buffers end at a multiple of 128
    // elements.
    const std::int64_t experts = toy.layers * (toy.experts / e) * 3 * toy.h * toy.f;
    const std::int64_t dense =
        2 * toy.vocabulary * toy.h + toy.h +
        toy.layers * (2 * toy.h + 2 * toy.h * toy.h + 2 * toy.kv * toy.h + toy.experts * toy.h);
    REQUIRE(experts % 128 == 0);
    REQUIRE(dense % 128 == 0);
    CHECK(bytes.at({"edp", Collective::reduce_scatter}) == experts * kBytes / 2);
    CHECK(bytes.at({"dp", Collective::reduce_scatter}) == dense * kBytes * (ranks - 1) / ranks);
    CHECK(bytes.at({"dp", Collective::all_gather}) == dense * kBytes * (ranks - 1) / ranks);
  }
}

TEST_CASE("model parallel: experts beside tensor parallelism gather and scatter over it") {
  Toy toy;
  toy.experts = 4;
  const std::string more = tensor(2, true) + "  expert_model_parallel_size: 2\n";
  const Sent divided = sent(good_run(full_scenario(job(toy, 4, more))));
  // Each rank routes the tokens of its half of the sequence.
  const std::int64_t routed = Toy::kTopK * kBatch * toy.s / 2 * toy.h * kBytes;
  CHECK(divided.at({"ep", Collective::all_to_all}) == kMicro * toy.layers * 4 * routed / 2);
  const Sent whole =
      sent(good_run(full_scenario(job(toy, 4, more + "  expert_tensor_parallel_size: 1\n"))));
  CHECK(whole.at({"ep", Collective::all_to_all}) == kMicro * toy.layers * 4 * routed / 2);
  // Dispatch forward and combine backward gather the routed tokens of the other rank.
  CHECK(divided.at({"tp", Collective::all_gather}) - whole.at({"tp", Collective::all_gather}) ==
        kMicro * toy.layers * 2 * routed);
}

TEST_CASE("model parallel: recomputation runs the forward collectives of the layers again") {
  const Toy toy;
  const Sent kept = sent(good_run(full_scenario(job(toy, 2, tensor(2)))));
  const Sent again = sent(good_run(full_scenario(job(toy, 2, tensor(2) + "  recompute: true\n"))));
  const std::int64_t one = kBatch * toy.s * toy.h * kBytes / 2;  // (t-1)/t
  CHECK(again.at({"tp", Collective::all_reduce}) - kept.at({"tp", Collective::all_reduce}) ==
        kMicro * toy.layers * 2 * 2 * one);
}

// Blocks of measured times, all alike, and next to nothing to send.
std::string equal_blocks(int stages, int chunks, int micro_batches, const std::string& more = "") {
  std::string parameters, layers;
  for (int block = 0; block < 8; ++block) {
    parameters += fmt::format("    - {{name: n{}, elements: 8}}\n", block);
    layers += fmt::format(
        "    - {{name: blocks.{0}.norm, kind: norm, parameters: [n{0}], input_elements: 8, "
        "output_elements: 8}}\n"
        "    - {{name: blocks.{0}.work, kind: gemm, forward: 10 ms, backward: 20 ms}}\n",
        block);
  }
  return fmt::format(
      "railyard: 1\ncluster: {{machine: hgx-h100, nodes: 1}}\nranks: {{count: {}}}\n"
      "nccl: {{algorithm: Ring, protocol: Simple, channels: 2}}\n"
      "megatron:\n  micro_batch_size: 1\n  gradient_accumulation: {}\n  precision: bf16\n"
      "  optimizer: none\n  iterations: 1\n  pipeline_model_parallel_size: {}\n"
      "  virtual_pipeline_model_parallel_size: {}\n{}  model:\n    parameters:\n{}    layers:\n{}",
      stages, micro_batches, stages, chunks, more, parameters, layers);
}

TEST_CASE("model parallel: the bubble is (q - 1) / (m v) of the ideal time") {
  for (const int q : {2, 4})
    for (const int v : {1, 2})
      for (const int m : {4, 8}) {
        CAPTURE(q);
        CAPTURE(v);
        CAPTURE(m);
        const RunResult result = good_run(full_scenario(equal_blocks(q, v, m)));
        const double ideal = m * 8 * 0.030 / q;
        const double step = sim::to_seconds(result.training->step_time);
        CHECK(step / ideal - 1 == doctest::Approx((q - 1.0) / (m * v)).epsilon(0.01));
        for (const StageRow& row : result.training->stages) {
          CHECK(sim::to_seconds(row.compute) == doctest::Approx(ideal).epsilon(0.01));
          CHECK(row.waited >= sim::Duration{});
          CHECK(row.exposed >= sim::Duration{});
          CHECK(row.idle >= sim::Duration{});
          CHECK(row.compute + row.waited + row.exposed + row.idle == result.training->step_time);
        }
      }
}

// Stages of 20 + 40 ms, bubble 3 x 60 ms. Stage i is done 40 i ms before stage 0; in the last
// iteration nothing follows that it could wait for.
TEST_CASE("model parallel: the parts of every stage make up a later iteration too") {
  const RunResult result =
      good_run(full_scenario(equal_blocks(4, 1, 4), {"megatron.iterations=3"}));
  for (std::size_t i = 0; i < 4; ++i) {
    const StageRow& row = result.training->stages[i];
    CHECK(row.waited >= sim::Duration{});
    CHECK(row.exposed >= sim::Duration{});
    CHECK(row.idle >= sim::Duration{});
    CHECK(sim::to_seconds(row.waited) ==
          doctest::Approx(0.180 - 0.040 * static_cast<double>(i)).epsilon(0.02));
    CHECK(sim::to_seconds(row.waited + row.idle) == doctest::Approx(0.180).epsilon(0.02));
  }
}

TEST_CASE("model parallel: a stated 1F1B is Megatron's") {
  const RunResult own = good_run(full_scenario(equal_blocks(
      2, 1, 4,
      "  pipeline_schedule: [\"F0 F1 B0 F2 B1 F3 B2 B3\", \"F0 B0 F1 B1 F2 B2 F3 B3\"]\n")));
  const RunResult theirs = good_run(full_scenario(equal_blocks(2, 1, 4)));
  CHECK(sim::to_seconds(own.training->step_time) ==
        doctest::Approx(sim::to_seconds(theirs.training->step_time)).epsilon(1e-3));
}

// Stage 0 wants the gradient of micro-batch 0 before it sends micro-batch 1; stage 1 wants both
// before it sends any gradient.
TEST_CASE("model parallel: a schedule that cannot go on names who waits for whom") {
  const RunResult stuck = tests::run_of(full_scenario(
      equal_blocks(2, 1, 2, "  pipeline_schedule: [\"F0 B0 F1 B1\", \"F0 F1 B0 B1\"]\n")));
  REQUIRE_FALSE(stuck.unfinished.empty());
  CHECK(stuck.unfinished.front() ==
        "deadlock: rank 0 waits in a message for rank 1, which waits in a message for rank 0");
  // Who never came is not late by the time that is left of the simulated clock.
  REQUIRE_FALSE(stuck.late_ranks.empty());
  for (const LateRank& late : stuck.late_ranks) CHECK(late.worst <= stuck.duration);
}

TEST_CASE("model parallel: what the file says wrong has a line") {
  const auto error = [](const std::string& more) {
    const auto read = scenario_from_text(job(Toy(), 8, more), "s.yaml", {});
    return read.ok() ? std::string("no error") : read.error().text();
  };
  CHECK(error("  overlap_p2p_comm: true\n") ==
        "s.yaml:11:21: megatron.overlap_p2p_comm: needs virtual_pipeline_model_parallel_size above "
        "1");
  CHECK(error("  pipeline_schedule: [\"F0\"]\n  pipeline_model_parallel_size: 2\n")
            .find("one order for each of the 2 stages is expected") != std::string::npos);
  CHECK(error("  global_batch_size: 16\n").find("global_batch_size says how many") !=
        std::string::npos);
  CHECK(error("  group: world\n  tensor_model_parallel_size: 2\n")
            .find("model parallelism makes its own groups") != std::string::npos);
  CHECK(error("  cp_comm_type: ring\n").find("cp_comm_type") != std::string::npos);
}

TEST_CASE("model parallel: sizes that do not fit are errors with their key") {
  const Toy toy;
  const auto error = [&](int ranks, const std::string& more) {
    return error_of_run(full_scenario(job(toy, ranks, more)));
  };
  CHECK(error(8, tensor(3)).find("megatron.tensor_model_parallel_size") != std::string::npos);
  CHECK(error(8, tensor(3)).find("3 ranks do not divide a world of 8") != std::string::npos);
  CHECK(error(8, "  pipeline_model_parallel_size: 8\n")
            .find("8 does not divide the 4 transformer "
                  "blocks") != std::string::npos);
  CHECK(error(8, "  expert_model_parallel_size: 2\n").find("toy has no experts") !=
        std::string::npos);
  CHECK(error(4, "  pipeline_model_parallel_size: 4\n  context_parallel_size: 3\n")
            .find("do not divide") != std::string::npos);
  CHECK(error(2,
              "  pipeline_model_parallel_size: 2\n  virtual_pipeline_model_parallel_size: 2\n"
              "  overlap_p2p_comm: false\n") == "no error");
}

}  // namespace
}  // namespace railyard::scenarios
