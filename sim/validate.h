// Structural checks of a schedule, cheap and thorough. validate() and totals() are declared in
// sim/schedule.h; the data-flow checker (sim/dataflow.h) proves the result.
#pragma once

#include "sim/expand.h"
#include "sim/schedule.h"

namespace railyard::sim {

// Ids, ranges, slot lists against connection ends, works and programs in range. Needs no expansion:
// O(lanes x ops + slots), for schedules too large for validate().
Result<void> validate_structure(const Schedule& schedule);

// Of an expansion: every lane uses only its own connections, both ends move the same slices in the
// same order, and the lanes end with `fifo_slices` slots per connection. O(expansion).
Result<void> validate_flow(const Expansion& expansion);

}  // namespace railyard::sim
