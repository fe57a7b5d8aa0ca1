// What a run will cost, from its schedules alone. Counts are those of a run without replay for
// collectives, and with it for DDP (equal buckets once); they bound what happens, within a factor
// of two.
#include <algorithm>
#include <map>
#include <tuple>

#include "scenarios/bind.h"
#include "scenarios/ddp_job.h"
#include "scenarios/estimate_parts.h"
#include "scenarios/planned_call.h"
#include "scenarios/run.h"
#include "scenarios/where.h"
#include "scenarios/workload.h"

namespace railyard::scenarios {
namespace {

constexpr double kEventsPerMessage = 3;  // flow end, wake-up, and at times an overhead
constexpr double kEventsPerLaunch = 3;   // host, kernel start, kernel end
constexpr double kBytesPerLane = 200;
constexpr double kBytesPerConnection = 700;  // state, FIFO rings, flow, route
constexpr double kBytesPerCallRecord = 160;  // per rank: times, marks, events of its streams
constexpr double kBytesPerLaunch = 60;
constexpr double kBytesPerMessage = 96;  // FIFOs without credits hold every slice

Result<void> add_collectives(const Scenario& scenario, Bound& bound, Estimate& estimate) {
  for (std::size_t r = 0; r < scenario.collectives.size(); ++r)
    for (const sim::Bytes size : scenario.collectives[r].sizes)
      for (Communication* communication : communications_of(bound, scenario.collectives[r].group)) {
        RAILYARD_ASSIGN(const PlannedCall planned, planned_call(scenario, r, size, *communication));
        const auto added = add_call(planned.call, 1, *communication, estimate);
        if (!added.ok()) return at_planned(scenario, planned, added.error());
      }
  return {};
}

// The calls of all iterations, and how often each is made.
Result<void> add_ddp_calls(const Scenario& scenario, const models::NeuralNetwork& network,
                           Communication& world, Estimate& estimate) {
  const auto asked = ddp_options(*scenario.ddp, world.group.size());
  if (!asked.ok()) return at_path(scenario, "ddp.join", asked.error());
  const models::DdpOptions& options = asked.value();
  const auto plan = models::plan_buckets(network, options.buckets);
  if (!plan.ok()) return at_path(scenario, "ddp", plan.error());
  struct Less {
    bool operator()(const models::DdpCall& a, const models::DdpCall& b) const {
      return std::tuple(a.collective, a.size, a.element_size, a.root) <
             std::tuple(b.collective, b.size, b.element_size, b.root);
    }
  };
  std::map<models::DdpCall, double, Less> times_of;
  const std::vector<std::int64_t> distinct = models::distinct_iterations(options);
  for (std::size_t d = 0; d < distinct.size(); ++d) {
    const std::int64_t next = d + 1 < distinct.size() ? distinct[d + 1] : options.iterations + 1;
    const auto times = static_cast<double>(next - distinct[d]);
    const models::DdpCalls calls = models::ddp_calls(network, plan.value(), options, distinct[d]);
    for (const models::DdpCall& call : calls.all())
      if (call.size.raw() > 0) times_of[call] += times;
  }
  for (const auto& [call, times] : times_of) {
    const bool once = scenario.engine.replay && scenario.traffic.empty() &&
                      call.collective == sim::Collective::all_reduce;
    RAILYARD_ASSIGN(const sim::CollectiveCall chosen, choose_ddp(scenario, world, call));
    const auto added = add_call(chosen, once ? 1 : times, world, estimate);
    if (!added.ok()) return at_call(scenario, "ddp", chosen.size, added.error());
    estimate.memory_bytes += times * static_cast<double>(world.group.size()) * kBytesPerCallRecord;
  }
  return {};
}

Result<void> add_ddp(const Scenario& scenario, Bound& bound, Estimate& estimate) {
  RAILYARD_ASSIGN(const models::NeuralNetwork network, network_of(*scenario.ddp));
  Communication& world = *communications_of(bound, std::string(kWorld)).front();
  RAILYARD_TRY(add_ddp_calls(scenario, network, world, estimate));
  const auto ranks = static_cast<double>(bound.world.size());
  const auto iterations = static_cast<double>(scenario.ddp->iterations);
  const auto launches =
      static_cast<double>(3 * network.layers().size() + 3 * network.parameters().size());
  add_launches(launches, ranks, iterations, estimate);
  return {};
}

Result<void> add_traffic(const Scenario& scenario, const Bound& bound, Estimate& estimate) {
  if (scenario.traffic.empty()) return {};
  RAILYARD_ASSIGN(const std::vector<Flow> flows, traffic_of(scenario, bound.world.size()));
  const auto count = static_cast<double>(flows.size());
  estimate.events += 2 * count;
  estimate.messages += count;
  estimate.memory_bytes += count * kBytesPerConnection;
  return {};
}

}  // namespace

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

void add_launches(double launches, double ranks, double iterations, Estimate& estimate) {
  estimate.events += launches * ranks * iterations * kEventsPerLaunch;
  estimate.memory_bytes += launches * (ranks + iterations) * kBytesPerLaunch;
  estimate.timeline_entries += launches * iterations * ranks;
}

Result<Estimate> estimate(const Scenario& scenario, double max_memory_bytes) {
  Estimate estimate;
  RAILYARD_ASSIGN(estimate.memory_bytes, bind_memory_bytes(scenario));
  if (estimate.memory_bytes > max_memory_bytes) return estimate;
  RAILYARD_ASSIGN(const std::unique_ptr<Bound> bound, bind(scenario));
  RAILYARD_TRY(add_collectives(scenario, *bound, estimate));
  if (scenario.ddp) RAILYARD_TRY(add_ddp(scenario, *bound, estimate));
  if (scenario.workload) RAILYARD_TRY(scenario.workload->add_estimate(scenario, *bound, estimate));
  if (!scenario.engine.credits) estimate.memory_bytes += estimate.messages * kBytesPerMessage;
  RAILYARD_TRY(add_traffic(scenario, *bound, estimate));
  return estimate;
}

}  // namespace railyard::scenarios
