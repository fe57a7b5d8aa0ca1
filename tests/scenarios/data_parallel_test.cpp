// nn.DataParallel: pieces, bytes through GPU 0, order, the lock, and what is refused.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/data_parallel/data_parallel.h"
#include "scenarios/training_result.h"
#include "tests/scenarios/run_helpers.h"
#include "tests/scenarios/toy_network.h"

namespace railyard::scenarios {
namespace {

using namespace tests;

const std::string kBlock =
    "  input_per_sample: 4096B\n  output_per_sample: 512B\n  iterations: 2\n";

std::string job(std::int64_t n) { return toy_job("data_parallel", kBlock, n); }

std::vector<std::vector<std::uint32_t>> indices(const std::vector<models::CoalescedPiece>& pieces) {
  std::vector<std::vector<std::uint32_t>> out;
  for (const models::CoalescedPiece& piece : pieces) out.push_back(piece.parameters);
  return out;
}

models::NeuralNetwork network_of_mb(const std::vector<double>& sizes, models::Dtype odd) {
  models::NetworkSpec spec;
  spec.name = "sizes";
  for (std::size_t i = 0; i < sizes.size(); ++i)
    spec.parameters.push_back({.name = fmt::format("p{}", i),
                               .elements = static_cast<std::int64_t>(sizes[i] * 262'144),
                               .dtype = i % 2 == 1 ? odd : models::Dtype::fp32});
  spec.layers.push_back({.name = "l", .parameters = {"p0"}});
  return models::validate(std::move(spec)).value();
}

using Lists = std::vector<std::vector<std::uint32_t>>;

// Limit 10 MiB. Broadcast: 4, 8 (12 closes), 6, 6 (12), 1. Reduce: 4 | 8 would make 12 > 10 | 6
// would make 14 | 6 -> 12 | 1 -> 7.
TEST_CASE("data_parallel: the two cutters disagree about who exceeds the limit") {
  const models::NeuralNetwork network = network_of_mb({4, 8, 6, 6, 1}, models::Dtype::fp32);
  CHECK(indices(models::broadcast_pieces(network)) == Lists{{0, 1}, {2, 3}, {4}});
  CHECK(indices(models::reduce_pieces(network)) == Lists{{0}, {1}, {2}, {3, 4}});
  // Exactly 10: a broadcast closes there, a reduce takes no more.
  const models::NeuralNetwork exact = network_of_mb({4, 6, 1, 20, 1}, models::Dtype::fp32);
  CHECK(indices(models::broadcast_pieces(exact)) == Lists{{0, 1}, {2, 3}, {4}});
  CHECK(indices(models::reduce_pieces(exact)) == Lists{{0, 1}, {2}, {3}, {4}});
}

// Types do not mix: of fp32 elements' sizes above, those of odd indices have half the bytes.
TEST_CASE("data_parallel: each type has pieces of its own") {
  const models::NeuralNetwork network = network_of_mb({4, 8, 6, 6, 1}, models::Dtype::fp16);
  CHECK(indices(models::broadcast_pieces(network)) == Lists{{0, 2}, {4}, {1, 3}});
  CHECK(indices(models::reduce_pieces(network)) == Lists{{0, 2}, {4}, {1, 3}});
  CHECK(models::reduce_pieces(network)[2].size.raw() == 7 * 1'048'576);
  CHECK(models::reduce_pieces(network)[2].element_size == 2);
}

// A ring's broadcast or reduce of S moves (n-1) S in all; scatter and gather a block to or from
// each of the others.
TEST_CASE("data_parallel: bytes of a step") {
  for (const std::int64_t n : {2, 4, 8}) {
    CAPTURE(n);
    const std::int64_t parameters = toy_elements() * 4;
    const std::int64_t buffers = kToyBuffers * 4 + kToyCounters * 8;
    const std::int64_t inputs = 8 * 4096;
    const std::int64_t outputs = 8 * 512;
    CHECK(bytes_of_iteration(job(n), "data_parallel", 2) ==
          (n - 1) * (2 * parameters + buffers + inputs + 2 * outputs));
  }
}

TEST_CASE("data_parallel: the order on GPU 0 and on the others") {
  const RunResult result = traced_run(job(4), {"data_parallel.iterations=1"});
  // Parameters of 2, 8 and 16 MiB and 32 KiB, the limit 10 MiB: {2, 8}, {16}, {32 KiB} both ways.
  const std::vector<std::string> calls{
      "scatter inputs",       "Broadcast parameters",     "Broadcast parameters",
      "Broadcast parameters", "Broadcast buffers",        "Broadcast buffers",
      "gather outputs",       "scatter output gradients", "Reduce gradients",
      "Reduce gradients",     "Reduce gradients"};
  for (const std::uint32_t rank : {0U, 3U}) CHECK(names_on(result, rank, "world") == calls);
  const std::vector<std::string> forward{"l0", "l1", "l2", "l3"};
  const std::vector<std::string> backward{"dgrad l3", "wgrad l3", "dgrad l2", "wgrad l2",
                                          "dgrad l1", "wgrad l1", "dgrad l0", "wgrad l0"};
  std::vector<std::string> replica = forward;
  replica.insert(replica.end(), backward.begin(), backward.end());
  replica.emplace_back("flatten");
  CHECK(names_on(result, 3, "compute") == replica);
  std::vector<std::string> main{"flatten"};
  main.insert(main.end(), forward.begin(), forward.end());
  main.insert(main.end(), {"loss", "loss backward"});
  main.insert(main.end(), backward.begin(), backward.end());
  main.insert(main.end(), {"flatten", "optimizer"});
  CHECK(names_on(result, 0, "compute") == main);
  // No gradient travels before the last is there, on any GPU.
  sim::Time last_gradient{};
  for (const sim::Span& span : result.spans)
    if (result.span_names[span.name] == "wgrad l0")
      last_gradient = std::max(last_gradient, span.end);
  for (const sim::Span& span : result.spans)
    if (result.span_names[span.name] == "Reduce gradients" && span.rank == 0)
      CHECK(span.end > last_gradient);
}

// Four kernels of 10 ms of host time each, which is longer than they run, on n threads: one after
// another under the lock.
TEST_CASE("data_parallel: one lock for all threads") {
  const auto first_to_last = [](std::int64_t n, const char* fraction) {
    const RunResult result =
        traced_run(job(n), {"data_parallel.iterations=1", "parameters.host.op_launch=10ms",
                            std::string("data_parallel.gil_fraction=") + fraction});
    sim::Time first = sim::Time::max();
    sim::Time last{};
    for (const sim::Span& span : result.spans) {
      const std::string& name = result.span_names[span.name];
      if (name == "l0") first = std::min(first, span.start);
      if (name == "l3") last = std::max(last, span.start);
    }
    return last - first;
  };
  // Launches of l0 on the first thread and l3 on the last are 4 n - 1 turns of the lock apart.
  CHECK(first_to_last(8, "1") == sim::microseconds(10'000 * (4 * 8 - 1)));
  CHECK(first_to_last(4, "1") == sim::microseconds(10'000 * (4 * 4 - 1)));
  // Without it threads do not know of each other.
  CHECK(first_to_last(8, "0") < sim::microseconds(10'000 * (4 * 8 - 1)));
  CHECK(first_to_last(8, "0") == sim::microseconds(30'000));
  CHECK(first_to_last(4, "0") == sim::microseconds(30'000));
}

TEST_CASE("data_parallel: what is refused") {
  const auto read = [](const std::string& text) {
    const auto scenario = scenario_from_text(text, "s.yaml");
    return scenario.ok() ? error_of_run(full_scenario(text)) : scenario.error().text();
  };
  CHECK(read(job(2)) == "no error");
  CHECK(read(toy_job("data_parallel", "  output_per_sample: 4B\n", 2))
            .find("the key 'input_per_sample' is missing") != std::string::npos);
  CHECK(read(toy_job("data_parallel", "  output_per_sample: 4B\n  input_per_sample: 0B\n", 2))
            .find("a sample has at least one byte") != std::string::npos);
  CHECK(read(toy_job("data_parallel", kBlock + "  gil_fraction: 2\n", 2)).find("out of range") !=
        std::string::npos);
  const std::string two_nodes =
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: switch}}\nnccl: auto\n"
      "data_parallel:\n  batch_per_gpu: 1\n  precision: fp32\n  optimizer: sgd\n" +
      kBlock + toy_model();
  const std::string error = read(two_nodes);
  CHECK(error.find("nn.DataParallel is one process, and rank 8 is on another node than rank 0") !=
        std::string::npos);
}

}  // namespace
}  // namespace railyard::scenarios
