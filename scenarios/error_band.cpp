#include "scenarios/error_band.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace railyard::scenarios {
namespace {

using Asked = std::set<std::pair<sim::Collective, sim::SizeBand>>;

Asked asked_of(const Scenario& scenario) {
  Asked asked;
  for (const CollectiveRun& run : scenario.collectives)
    for (const sim::Bytes size : run.sizes) asked.emplace(run.collective, sim::size_band(size));
  if (scenario.ddp) {  // buckets of 1 MiB and more
    asked.emplace(sim::Collective::all_reduce, sim::SizeBand::medium);
    asked.emplace(sim::Collective::all_reduce, sim::SizeBand::large);
  }
  return asked;
}

}  // namespace

std::vector<std::string> error_notes(const Scenario& scenario) {
  std::vector<std::string> notes;
  std::string unknown;
  if (std::ranges::any_of(scenario.nccl, [](const NcclChoice& choice) {
        return choice.protocol == sim::Protocol::plain;
      }))
    return notes;  // no costs, for comparison with other simulators
  for (const auto& asked : asked_of(scenario)) {
    const std::string_view collective = sim::to_text(asked.first);
    const std::string_view band = sim::to_text(asked.second);
    const auto found = std::ranges::find_if(scenario.parameters.validated, [&](const auto& each) {
      return each.collective == asked.first && each.band == asked.second;
    });
    if (found == scenario.parameters.validated.end()) {
      unknown += fmt::format("{}{} {}", unknown.empty() ? "" : ", ", collective, band);
      continue;
    }
    notes.push_back(fmt::format(
        "expected error of {} {}: median {:.0f} %, p90 {:.0f} % ({} measurements of this platform "
        "that nothing was fitted to)",
        collective, band, found->median * 100, found->p90 * 100, found->count));
  }
  if (!unknown.empty())
    notes.push_back(
        fmt::format("profile {}: never validated here for {} (S < 64KiB, M to 16MiB, "
                    "L above)",
                    scenario.parameters.name, unknown));
  return notes;
}

}  // namespace railyard::scenarios
