#include "scenarios/planned_call.h"

#include <fmt/format.h>

#include "scenarios/bind.h"
#include "scenarios/where.h"

namespace railyard::scenarios {
namespace {

// nccl-tests' size column to NCCL's count: AllGather, ReduceScatter, Gather and Scatter count one
// rank's part, and nccl-tests rounds down to whole elements for every rank.
sim::Bytes call_size(sim::Collective collective, sim::Bytes size, std::size_t ranks,
                     std::int64_t element) {
  const auto n = static_cast<std::int64_t>(ranks);
  if (sim::nccl_tests_size(collective, sim::bytes(1), 2).raw() == 2)
    return sim::bytes(size.raw() / n / element * element);
  if (collective == sim::Collective::all_to_all)
    return sim::bytes(size.raw() / n / element * element * n);
  return sim::bytes(size.raw() / element * element);
}

}  // namespace

Result<PlannedCall> planned_call(const Scenario& scenario, std::size_t index, sim::Bytes size,
                                 const Communication& communication) {
  const CollectiveRun& run = scenario.collectives[index];
  const std::size_t ranks = communication.group.size();
  const std::int64_t element = models::element_size(run.dtype);
  const sim::Bytes per_call = call_size(run.collective, size, ranks, element);
  PlannedCall planned;
  planned.run = index;
  RAILYARD_ASSIGN(planned.call,
                  choose(scenario, communication, {run.collective, per_call, element}));
  planned.call.root = run.root;
  planned.size = sim::nccl_tests_size(run.collective, per_call, ranks);
  planned.other_protocol =
      communication.nccl != nullptr && !communication.plan &&
      planned.call.protocol != scenario.nccl[choice_index(scenario, per_call)].protocol;
  return planned;
}

Error at_planned(const Scenario& scenario, const PlannedCall& planned, const Error& error) {
  return at_call(scenario, fmt::format("collectives[{}]", planned.run), planned.call.size, error);
}

}  // namespace railyard::scenarios
