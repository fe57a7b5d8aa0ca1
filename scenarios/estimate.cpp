// What a run will cost, from its schedules alone. Counts are those of a run without replay for
// collectives, and with it for DDP (equal buckets once); they bound what happens, within a factor
// of two.
#include <algorithm>
#include <map>

#include "models/ddp/step.h"
#include "scenarios/bind.h"
#include "scenarios/run.h"

namespace railyard::scenarios {
namespace {

constexpr double kEventsPerMessage = 3;  // flow end, wake-up, and at times an overhead
constexpr double kEventsPerLaunch = 3;   // host, kernel start, kernel end
constexpr double kBytesPerLane = 200;
constexpr double kBytesPerConnection = 700;  // state, FIFO rings, flow, route
constexpr double kBytesPerDevice = 400;
constexpr double kBytesPerMessage = 96;  // FIFOs without credits hold every slice

Result<void> add_call(const sim::CollectiveCall& call, double times, Communication& communication,
                      Estimate& estimate) {
  RAILYARD_ASSIGN(const auto schedule, communication.communicator->schedule(call));
  const auto messages = static_cast<double>(sim::totals(*schedule).messages);
  estimate.messages += messages * times;
  estimate.events +=
      (messages * kEventsPerMessage + static_cast<double>(schedule->lanes.size())) * times;
  estimate.memory_bytes += static_cast<double>(schedule->lanes.size()) * kBytesPerLane +
                           static_cast<double>(schedule->connections.size()) * kBytesPerConnection;
  estimate.timeline_entries += times * schedule->ranks;
  return {};
}

Result<void> add_collectives(const Scenario& scenario, Bound& bound, Estimate& estimate) {
  for (const CollectiveRun& run : scenario.collectives)
    for (const sim::Bytes size : run.sizes)
      for (Communication* communication : communications_of(bound, run.group)) {
        const auto n = static_cast<std::int64_t>(communication->group.size());
        const std::int64_t element = models::element_size(run.dtype);
        const bool per_rank = sim::nccl_tests_size(run.collective, sim::bytes(1), 2).raw() == 2;
        const sim::Bytes each =
            sim::bytes(size.raw() / (per_rank ? n : 1) / (element * n) * (element * n));
        sim::CollectiveCall call = choose(scenario, run.collective, each, element);
        call.root = run.root;
        RAILYARD_TRY(add_call(call, 1, *communication, estimate));
      }
  return {};
}

Result<void> add_ddp(const Scenario& scenario, Bound& bound, Estimate& estimate) {
  const DdpSpec& spec = *scenario.ddp;
  RAILYARD_ASSIGN(const models::NeuralNetwork network, network_of(scenario));
  RAILYARD_ASSIGN(const models::BucketPlan plan, models::plan_buckets(network, spec.buckets));
  Communication& world = *communications_of(bound, std::string(kWorld)).front();
  models::DdpOptions options;
  options.buckets = spec.buckets;
  options.broadcast_buffers = spec.broadcast_buffers;
  std::map<std::pair<std::int64_t, std::int64_t>, double>
      sizes;                             // (bytes, element size) -> how often
  constexpr std::int64_t kDistinct = 3;  // iterations after the third are like it
  for (std::int64_t iteration = 1; iteration <= std::min(spec.iterations, kDistinct); ++iteration)
    for (const models::DdpCall& call : models::ddp_calls(network, plan, options, iteration).buckets)
      sizes[{call.size.raw(), call.element_size}] +=
          iteration == kDistinct ? static_cast<double>(spec.iterations - kDistinct + 1) : 1;
  for (const auto& [call, times] : sizes) {
    const bool once = scenario.engine.replay && scenario.traffic.empty();
    RAILYARD_TRY(
        add_call(choose(scenario, sim::Collective::all_reduce, sim::bytes(call.first), call.second),
                 once ? 1 : times, world, estimate));
  }
  const auto ranks = static_cast<double>(bound.world.size());
  const auto iterations = static_cast<double>(spec.iterations);
  const auto launches =
      static_cast<double>(3 * network.layers().size() + 3 * network.parameters().size());
  estimate.events += launches * ranks * iterations * kEventsPerLaunch;
  estimate.memory_bytes += launches * ranks * 60;
  estimate.timeline_entries += launches * iterations * ranks;
  return {};
}

Result<void> add_traffic(const Scenario& scenario, const Bound& bound, Estimate& estimate) {
  if (scenario.traffic.empty()) return {};
  RAILYARD_ASSIGN(const std::vector<Flow> flows,
                  expand_traffic(scenario.traffic, static_cast<std::uint32_t>(bound.world.size()),
                                 scenario.seed));
  const auto count = static_cast<double>(flows.size());
  estimate.events += 2 * count;
  estimate.messages += count;
  estimate.memory_bytes += count * kBytesPerConnection;
  return {};
}

}  // namespace

Result<Estimate> estimate(const Scenario& scenario) {
  RAILYARD_ASSIGN(const std::unique_ptr<Bound> bound, bind(scenario));
  Estimate estimate;
  estimate.memory_bytes =
      static_cast<double>(bound->topology.devices.size() + bound->topology.links.size()) *
      kBytesPerDevice;
  RAILYARD_TRY(add_collectives(scenario, *bound, estimate));
  if (scenario.ddp) RAILYARD_TRY(add_ddp(scenario, *bound, estimate));
  if (!scenario.engine.credits) estimate.memory_bytes += estimate.messages * kBytesPerMessage;
  RAILYARD_TRY(add_traffic(scenario, *bound, estimate));
  return estimate;
}

}  // namespace railyard::scenarios
