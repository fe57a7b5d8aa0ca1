// Who waits for whom in a circle, when a job has come to a stand.
#pragma once

#include <string>
#include <vector>

#include "sim/collective_runner.h"

namespace railyard::scenarios {

// "deadlock: rank 0 waits in a message for rank 4, which waits in AllReduce for rank 0", over the
// open call of each runner: who has entered waits for those who have not. Empty: nobody waits in a
// circle. Cost: O(runners x ranks^2).
std::string wait_cycle(const std::vector<const sim::CollectiveRunner*>& runners);

}  // namespace railyard::scenarios
