// `railyard explore SCENARIO`: runs every combination of the scenario's `explore:` block over all
// cores and says which to use.
//
// The table, the CSV and the recommendation do not depend on the number of jobs, nor on how often
// the exploration was interrupted: every finished point is in the journal (journal.h).
#pragma once

#include <cstddef>

#include "tools/cli/run_command.h"

namespace railyard::cli {

struct ExploreArguments {
  SimulationArguments common;  // directory: default railyard-explore/<scenario's name>
  std::size_t jobs = 0;        // simulations at a time; 0 = one per processor
  bool restart = false;        // forget what an earlier call has run
  bool full = false;           // every row of the table
};

int explore_command(const ExploreArguments& arguments);

}  // namespace railyard::cli
