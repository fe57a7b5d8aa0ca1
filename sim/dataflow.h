// The data-flow checker: runs an expansion on symbolic contributions, with no clock, and proves
// that every rank ends with exactly what the collective promises. Slow and obvious; the oracle of
// every algorithm at every small size.
//
// Every byte of an input buffer starts as "its own rank's contribution at its own offset"; a
// receive with reduction adds. A value is the multiset of (rank, input offset) it is the sum of, so
// that missing, doubled and misplaced data are all seen. The run honours lane order and FIFO depth.
//
// What is promised: sim/promise.h. Where a schedule works in the output or in scratch, every two
// operations that touch the same bytes must be ordered by what they wait for (sim/races.h).
//
// Cost: O(slice operations x pieces x log); 100k slices of 64 ranks take a fraction of a second.
#pragma once

#include <cstdint>
#include <string>

#include "sim/expand.h"
#include "sim/promise.h"
#include "sim/schedule.h"

namespace railyard::sim {

// Input and output one buffer: at the same offset (AllReduce, Broadcast, Reduce), the input at
// output + rank * size (AllGather), or the output at input + rank * size (ReduceScatter).
enum class InPlace { safe, unsafe, not_offered };

struct DataflowReport {
  std::int64_t slices = 0;  // slice operations executed
  Bytes rewritten;          // output bytes written again, with the value they had
  InPlace in_place = InPlace::safe;
  std::string in_place_danger;  // where, if unsafe
};

// The first thing that is wrong, e.g. "rank 3 output [0,16): missing contribution of rank 2, has
// rank 1 twice": lanes that wait for ever, a foreign connection, slices never received, sizes that
// differ, reads and writes outside the buffers, an output byte that is wrong, not written, or
// written twice with different values.
Result<DataflowReport> check_dataflow(const Expansion& expansion, const Promise& promise);

// validate_structure(), then the above.
Result<DataflowReport> check_dataflow(const Schedule& schedule);

}  // namespace railyard::sim
