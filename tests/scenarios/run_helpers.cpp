#include "tests/scenarios/run_helpers.h"
#include "tests/paths.h"

#include <doctest/doctest.h>

#include <utility>

namespace railyard::tests {

using scenarios::RunOptions;
using scenarios::RunResult;
using scenarios::Scenario;

namespace {

Scenario take(sim::Result<Scenario> result) {
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  return std::move(result).value();
}

}  // namespace

Scenario full_scenario(std::string_view text, std::vector<std::string> sets) {
  return take(scenarios::scenario_from_text(text, "s.yaml", {.sets = std::move(sets)}));
}

Scenario shipped_scenario(const std::string& name, std::vector<std::string> sets) {
  return take(scenarios::read_scenario(std::string(RAILYARD_SOURCE_DIR) + "/scenarios/" + name,
                                       {.sets = std::move(sets)}));
}

RunResult run_of(const Scenario& scenario, const RunOptions& options) {
  auto result = scenarios::run(scenario, options);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  return std::move(result).value();
}

RunResult good_run(const Scenario& scenario, const RunOptions& options) {
  RunResult result = run_of(scenario, options);
  REQUIRE(result.outcome == sim::EventQueue::Outcome::drained);
  REQUIRE_MESSAGE(result.unfinished.empty(),
                  (result.unfinished.empty() ? "" : result.unfinished[0]));
  return result;
}

std::string error_of_run(const Scenario& scenario) {
  const auto result = scenarios::run(scenario, {});
  return result.ok() ? "no error" : result.error().text();
}

}  // namespace railyard::tests
