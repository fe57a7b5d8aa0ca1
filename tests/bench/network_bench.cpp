// The max-min solver: completed flows, or solves, per second.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "sim/network.h"

namespace {

using namespace railyard::sim;            // NOLINT
using namespace railyard::sim::literals;  // NOLINT

// `ports` ports with a link in each direction.
struct Ports {
  explicit Ports(std::size_t ports) {
    queue.set_settler(&network);
    for (std::size_t i = 0; i < ports; ++i) {
      up.push_back(network.add_resource(50_GBps));
      down.push_back(network.add_resource(50_GBps));
    }
  }
  FlowId flow(std::size_t from, std::size_t to) {
    const std::array<ResourceUse, 2> uses{ResourceUse{up[from]}, ResourceUse{down[to]}};
    return network.add_flow({.uses = uses});
  }
  EventQueue queue;
  Network network{queue};
  std::vector<ResourceId> up, down;
};

std::vector<FlowId> all_to_all(Ports& ports) {
  std::vector<FlowId> flows;
  for (std::size_t i = 0; i < ports.up.size(); ++i)
    for (std::size_t j = 0; j < ports.up.size(); ++j)
      if (i != j) flows.push_back(ports.flow(i, j));
  return flows;
}

void start_all(Ports& ports, const std::vector<FlowId>& flows, std::mt19937_64& random) {
  for (const FlowId flow : flows)
    ports.network.start(flow, bytes(1'000'000 + static_cast<std::int64_t>(random() % 1'000'000)));
}

// Every pair at once, sizes at random: as many solves as completions. Items: flows.
void network_all_to_all(benchmark::State& state) {
  Ports ports(static_cast<std::size_t>(state.range(0)));
  const std::vector<FlowId> flows = all_to_all(ports);
  std::mt19937_64 random(1);
  for (auto _ : state) {
    start_all(ports, flows, random);
    ports.queue.run();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(flows.size()));
  state.counters["solves/flow"] = static_cast<double>(ports.network.solves()) /
                                  static_cast<double>(state.iterations() * flows.size());
}

// One more flow comes and goes while every pair is busy. Items: solves of n (n - 1) flows.
void network_one_solve(benchmark::State& state) {
  Ports ports(static_cast<std::size_t>(state.range(0)));
  for (const FlowId flow : all_to_all(ports)) ports.network.start(flow, 16_TiB);
  const FlowId extra = ports.flow(0, 1);
  EventQueue::Limits limits;
  ports.queue.run({.until = Time{}});
  const std::uint64_t before = ports.network.solves();
  for (auto _ : state) {
    ports.network.start(extra, 1_B);
    limits.until = ports.queue.now() + 1_us;
    ports.queue.run(limits);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(ports.network.solves() - before));
}

// All into one port, sizes at random. Items: flows.
void network_incast(benchmark::State& state) {
  Ports ports(static_cast<std::size_t>(state.range(0)));
  std::vector<FlowId> flows;
  for (std::size_t i = 1; i < ports.up.size(); ++i) flows.push_back(ports.flow(i, 0));
  std::mt19937_64 random(1);
  for (auto _ : state) {
    start_all(ports, flows, random);
    ports.queue.run();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(flows.size()));
}

// Two flows on each of many links, which share nothing. Items: flows.
void network_small_components(benchmark::State& state) {
  Ports ports(static_cast<std::size_t>(state.range(0)));
  std::vector<FlowId> flows;
  for (std::size_t i = 0; i < ports.up.size(); ++i)
    for (int twice = 0; twice < 2; ++twice) flows.push_back(ports.flow(i, i));
  std::mt19937_64 random(1);
  for (auto _ : state) {
    start_all(ports, flows, random);
    ports.queue.run();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(flows.size()));
}

BENCHMARK(network_all_to_all)->Arg(8)->Arg(32)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK(network_one_solve)->Arg(8)->Arg(64)->Arg(256)->Unit(benchmark::kMicrosecond);
BENCHMARK(network_incast)->Arg(64)->Arg(4096)->Unit(benchmark::kMillisecond);
BENCHMARK(network_small_components)->Arg(64)->Arg(4096)->Unit(benchmark::kMillisecond);

}  // namespace
