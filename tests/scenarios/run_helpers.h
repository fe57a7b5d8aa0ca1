// Shared by the tests of scenarios/run.h: scenarios with their shipped profiles, run to the end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/run.h"

namespace railyard::tests {

// A scenario as a user would write it, profiles read from the source tree.
scenarios::Scenario full_scenario(std::string_view text, std::vector<std::string> sets = {});
// A file of scenarios/.
scenarios::Scenario shipped_scenario(const std::string& name, std::vector<std::string> sets = {});

// Fails the test on an error; checks nothing else.
scenarios::RunResult run_of(const scenarios::Scenario& scenario,
                            const scenarios::RunOptions& options = {});
// The same for a run that must end well: drained, nobody waiting.
scenarios::RunResult good_run(const scenarios::Scenario& scenario,
                              const scenarios::RunOptions& options = {});
std::string error_of_run(const scenarios::Scenario& scenario);

}  // namespace railyard::tests
