// The data-flow checker: runs an expansion on symbolic contributions, with no clock, and proves
// that every rank ends with exactly what the collective promises. Slow and obvious; the oracle of
// every algorithm at every small size.
//
// Every byte of an input buffer starts as "its own rank's contribution at its own offset"; a
// receive with reduction adds. A value is the multiset of (rank, input offset) it is the sum of, so
// that missing, doubled and misplaced data are all seen. The run honours lane order and FIFO depth.
//
// Promised (sizes as CollectiveCall::size documents; n ranks, S = size):
//   AllReduce      out[e] = sum over r of in_r[e]             in S,   out S
//   AllGather      out[b*S+e] = in_b[e]                       in S,   out n*S
//   ReduceScatter  out[e] of rank r = sum over q of in_q[r*S+e]   in n*S, out S
//   Broadcast      out[e] = in_root[e]                        in S (root only), out S
//   Reduce         out[e] of the root = sum over r of in_r[e] in S,   out S (root only)
//   AllToAll       out_j[i*B+e] = in_i[j*B+e], B = S/n        in S,   out S
//
// Cost: O(slice operations x pieces x log); 100k slices of 64 ranks take a fraction of a second.
#pragma once

#include <cstdint>
#include <string>

#include "sim/expand.h"
#include "sim/schedule.h"

namespace railyard::sim {

struct Promise {
  Collective collective = Collective::all_reduce;
  std::uint32_t ranks = 0;
  Bytes size;
  std::uint32_t root = 0;
  // The call is in place: an output byte that is not written holds the input byte that lies there,
  // and what makes the schedule unsafe in place is an error.
  bool in_place = false;
};
Promise promise_of(const Schedule& schedule);

// Bytes of a rank's buffers; 0 where the collective does not use one (NCCL allows a null pointer).
Bytes input_size(const Promise& promise, std::uint32_t rank);
Bytes output_size(const Promise& promise, std::uint32_t rank);

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
