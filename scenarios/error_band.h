// What is known of the error of a run's predictions: the bands that a profile carries, for the
// collectives and sizes that are run.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace railyard::scenarios {

// One line per collective and band, or that the profile was never validated for them.
std::vector<std::string> error_notes(const Scenario& scenario);

}  // namespace railyard::scenarios
