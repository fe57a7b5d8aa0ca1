// Whole collectives through the executor and the network. Items: messages (slices).
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/communicator.h"
#include "sim/executor.h"
#include "sim/schedule_costs.h"

namespace {

using namespace railyard::sim;            // NOLINT
using namespace railyard::sim::literals;  // NOLINT
using railyard::algorithms::Communicator;

// One node of GPUs on an NVSwitch.
Topology one_node(std::uint32_t gpus) {
  Topology topology;
  topology.nodes.push_back({.name = "node0"});
  const DeviceId hub(gpus);
  for (std::uint32_t i = 0; i < gpus; ++i) {
    topology.devices.push_back({DeviceKind::gpu, 0, i, "node0/gpu" + std::to_string(i)});
    topology.nodes[0].gpus.emplace_back(i);
    for (const auto& [from, to] : {std::pair{DeviceId(i), hub}, std::pair{hub, DeviceId(i)}})
      topology.links.push_back({.from = from, .to = to, .capacity = 450_GBps});
  }
  topology.devices.push_back({DeviceKind::nvswitch, 0, 0, "node0/nvswitch0"});
  return topology;
}

std::shared_ptr<const Schedule> ring_schedule(std::uint32_t ranks, std::uint32_t channels,
                                              const CollectiveCall& call) {
  const Topology topology = one_node(ranks);
  Group group;
  for (std::uint32_t r = 0; r < ranks; ++r) group.push_back({Rank(r), DeviceId(r), 0, r});
  Channel channel;
  channel.ring.resize(ranks);
  std::iota(channel.ring.begin(), channel.ring.end(), 0U);
  return Communicator::create(topology, group, Channels(channels, channel))
      .value()
      ->schedule(call)
      .value();
}

// Rank r's ports are resources 2r (out) and 2r + 1 (in). With `port` false a message takes the
// sender's only, which is then a wire of its own.
struct Links {
  bool port = false;
  Bandwidth cap{};
};

ScheduleCosts costs_of(const Schedule& schedule, const Links& links) {
  ScheduleCosts costs;
  for (const Connection& connection : schedule.connections) {
    ConnectionCost cost;
    cost.route = {LinkId(2 * schedule.lanes[connection.from.index()].rank)};
    if (links.port) cost.route.emplace_back(2 * schedule.lanes[connection.to.index()].rank + 1);
    cost.cap = links.cap;
    cost.latency = 1_us;
    cost.credit_latency = 1_us;
    costs.connections.push_back(cost);
  }
  costs.lanes.assign(schedule.lanes.size(), {500_ns, {}});
  return costs;
}

void run_collective(benchmark::State& state, const std::shared_ptr<const Schedule>& schedule,
                    const Links& links) {
  EventQueue queue;
  Network network(queue);
  queue.set_settler(&network);
  for (std::uint32_t r = 0; r < 2 * schedule->ranks; ++r) network.add_resource(450_GBps);
  Executor executor(schedule, std::make_shared<const ScheduleCosts>(costs_of(*schedule, links)),
                    queue, network, {});
  std::int64_t messages = 0;
  for (auto _ : state) {
    for (std::uint32_t r = 0; r < schedule->ranks; ++r) executor.start_rank(r);
    queue.run();
    messages += executor.messages();
    executor.reset();
  }
  state.SetItemsProcessed(messages);
  state.counters["events/message"] =
      static_cast<double>(queue.executed()) / static_cast<double>(messages);
  state.counters["solves/message"] =
      static_cast<double>(network.solves()) / static_cast<double>(messages);
}

// n ranks in lock step, one message each at a time, no link shared.
void collective_ring_plain(benchmark::State& state) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  run_collective(state, ring_schedule(ranks, 1, {.size = 64_MiB, .protocol = Protocol::plain}), {});
}

// 8 GPUs, 16 channels on every port, Simple, 4 GiB; with a copy rate per channel or without.
void collective_nvlink_simple(benchmark::State& state) {
  const Links links{.port = true, .cap = state.range(0) == 0 ? Bandwidth{} : 24_GBps};
  run_collective(state, ring_schedule(8, 16, {.size = 4_GiB, .protocol = Protocol::simple}), links);
}

// How long it takes to build a schedule. Items: lanes.
void collective_build_schedule(benchmark::State& state) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  std::int64_t lanes = 0;
  for (auto _ : state)
    lanes += static_cast<std::int64_t>(
        ring_schedule(ranks, 16, {.size = 1_GiB, .protocol = Protocol::simple})->lanes.size());
  state.SetItemsProcessed(lanes);
}

BENCHMARK(collective_ring_plain)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(collective_nvlink_simple)
    ->ArgName("capped")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(collective_build_schedule)->Arg(8)->Arg(1024)->Unit(benchmark::kMicrosecond);

}  // namespace
