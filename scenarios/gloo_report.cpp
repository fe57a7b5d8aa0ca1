// What Gloo asked of the processors: the formula of models/comm/gloo_costs.h, summed over calls.
#include <fmt/format.h>

#include <map>

#include "models/comm/gloo_costs.h"
#include "scenarios/run_parts.h"

namespace railyard::scenarios {

void note_processor_time(const sim::CollectiveRunner& runner, RunContext& context) {
  std::map<std::uint32_t, sim::Duration> of_plan;
  sim::Duration busy{};
  sim::Duration calls{};
  for (const sim::CallRecord& record : runner.records()) {
    const auto [found, is_new] = of_plan.try_emplace(record.plan.value());
    if (is_new)
      found->second = models::gloo_processor_time(models::gloo_work(runner.schedule(record.plan)),
                                                  context.bound.parameters.gloo);
    busy += found->second;
    calls += record.done - record.begin;
  }
  if (calls.count() <= 0) return;
  context.result.notes.push_back(fmt::format(
      "Gloo keeps the busiest rank's processor at work for {:.3f} of {:.3f} ms of collectives: "
      "{:.0f} % of one core, copies and sums of two threads",
      sim::to_seconds(busy) * 1e3, sim::to_seconds(calls) * 1e3,
      100 * sim::to_seconds(busy) / sim::to_seconds(calls)));
}

}  // namespace railyard::scenarios
