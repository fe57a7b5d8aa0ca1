#include "scenarios/error_band.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace railyard::scenarios {
namespace {

constexpr std::int64_t kSmall = 64 * 1024;
constexpr std::int64_t kLarge = 16 * 1024 * 1024;

using Asked = std::set<std::pair<std::string, std::string>>;  // collective, band

Asked asked_of(const Scenario& scenario) {
  Asked asked;
  for (const CollectiveRun& run : scenario.collectives)
    for (const sim::Bytes size : run.sizes)
      asked.emplace(std::string(sim::to_text(run.collective)), std::string(size_band(size)));
  if (scenario.ddp) {  // buckets of 1 MiB and more
    asked.emplace("AllReduce", "M");
    asked.emplace("AllReduce", "L");
  }
  return asked;
}

}  // namespace

std::string_view size_band(sim::Bytes size) {
  if (size.raw() < kSmall) return "S";
  return size.raw() <= kLarge ? "M" : "L";
}

std::vector<std::string> error_notes(const Scenario& scenario) {
  std::vector<std::string> notes;
  std::string unknown;
  if (std::ranges::any_of(scenario.nccl, [](const NcclChoice& choice) {
        return choice.protocol == sim::Protocol::plain;
      }))
    return notes;  // no costs, for comparison with other simulators
  for (const auto& asked : asked_of(scenario)) {
    const std::string& collective = asked.first;
    const std::string& band = asked.second;
    const auto found = std::ranges::find_if(scenario.parameters.validated, [&](const auto& each) {
      return each.collective == collective && each.band == band;
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
