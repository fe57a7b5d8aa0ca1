#include "tests/scenarios/toy_network.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tests/scenarios/run_helpers.h"

namespace railyard::tests {

std::int64_t toy_elements() {
  return std::accumulate(kToyElements.begin(), kToyElements.end(), std::int64_t{0});
}

std::string toy_model() {
  std::string text = "  model:\n    parameters:\n";
  for (std::size_t i = 0; i < kToyElements.size(); ++i)
    text += fmt::format("      - {{name: w{}, shape: [{}, 8]}}\n", i, kToyElements[i] / 8);
  text += fmt::format("    buffers: {{fp32_elements: {}, int64_elements: {}}}\n    layers:\n",
                      kToyBuffers, kToyCounters);
  for (std::size_t i = 0; i < kToyElements.size(); ++i)
    text += fmt::format(
        "      - {{name: l{}, kind: gemm, parameters: [w{}], forward_flops: 2e10, "
        "input_elements: 100000, output_elements: 100000}}\n",
        i, i);
  return text;
}

std::string toy_job(const std::string& key, const std::string& block, std::int64_t ranks) {
  const std::string groups =
      ranks < 4 ? ""
                : fmt::format(", groups: {{pair: {{size: 2}}, peers: {{size: {}, stride: 2}}}}",
                              ranks / 2);
  return fmt::format(
      "railyard: 1\ncluster: {{machine: hgx-h100, nodes: 1}}\n"
      "ranks: {{count: {}{}}}\n"
      "nccl: {{algorithm: Ring, protocol: Simple, channels: 2}}\n{}:\n{}  batch_per_gpu: 8\n"
      "  precision: fp32\n  optimizer: sgd\n{}",
      ranks, groups, key, block, toy_model());
}

models::NeuralNetwork network_with(const std::vector<std::int64_t>& sizes) {
  models::NetworkSpec spec;
  spec.name = "toy";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string name = "p" + std::to_string(i);
    spec.parameters.push_back({.name = name, .elements = sizes[i]});
    spec.layers.push_back({.name = "l" + std::to_string(i), .parameters = {name}});
  }
  auto network = models::validate(std::move(spec));
  REQUIRE(network.ok());
  return std::move(network).value();
}

scenarios::RunResult traced_run(const std::string& text, std::vector<std::string> sets) {
  scenarios::RunOptions options;
  options.trace_ranks = 8;
  options.message_limit = 1'000'000;
  sets.emplace_back("engine.replay=false");
  return good_run(full_scenario(text, std::move(sets)), options);
}

std::int64_t bytes_moved(const scenarios::RunResult& result) {
  std::int64_t bytes = 0;
  for (const scenarios::KeptMessage& message : result.kept_messages) bytes += message.size.raw();
  REQUIRE(static_cast<std::int64_t>(result.kept_messages.size()) == result.messages);
  return bytes;
}

std::int64_t bytes_of_iteration(const std::string& text, const std::string& key, std::int64_t n,
                                const std::vector<std::string>& sets) {
  const auto run = [&](std::int64_t iterations) {
    std::vector<std::string> all = sets;
    all.push_back(fmt::format("{}.iterations={}", key, iterations));
    return bytes_moved(traced_run(text, all));
  };
  return run(n) - run(n - 1);
}

std::vector<std::string> names_on(const scenarios::RunResult& result, std::uint32_t rank,
                                  const std::string& stream) {
  const auto found = std::ranges::find(result.stream_names, stream);
  REQUIRE(found != result.stream_names.end());
  std::vector<sim::Span> spans;
  for (const sim::Span& span : result.spans)
    if (span.rank == rank && span.stream == found - result.stream_names.begin())
      spans.push_back(span);
  std::ranges::stable_sort(spans, {}, &sim::Span::start);
  std::vector<std::string> names;
  for (const sim::Span& span : spans) names.push_back(result.span_names[span.name]);
  return names;
}

}  // namespace railyard::tests
