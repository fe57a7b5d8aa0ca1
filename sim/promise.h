// Promise: what a collective leaves in every rank's output, as sums of input bytes.
//
// n ranks, S = CollectiveCall::size, root where there is one:
//   AllReduce      out[e] = sum over r of in_r[e]                 in S,   out S
//   AllGather      out[b*S+e] = in_b[e]                           in S,   out n*S
//   ReduceScatter  out[e] of rank r = sum over q of in_q[r*S+e]   in n*S, out S
//   Broadcast      out[e] = in_root[e]                            in S (root only), out S
//   Reduce         out[e] of the root = sum over r of in_r[e]     in S,   out S (root only)
//   AllToAll       out_j[i*B+e] = in_i[j*B+e], B = S/n            in S,   out S
//   Gather         out[b*S+e] of the root = in_b[e]               in S,   out n*S (root only)
//   Scatter        out_r[e] = in_root[r*S+e]                      in n*S (root only), out S
//   SendRecv       out_r[e] = in_q[e], q = r-1 mod n              in S,   out S
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collective.h"
#include "sim/contributions.h"
#include "sim/units.h"

namespace railyard::sim {

struct Schedule;

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

// Where a rank's buffers begin in the common buffer of an in-place call.
Bytes input_shift(const Promise& promise, std::uint32_t rank);
Bytes output_shift(const Promise& promise, std::uint32_t rank);
// Whether the collective can be in place at all.
bool offers_in_place(Collective collective);

// What a rank's output must hold: pieces in output offsets, in order.
std::vector<ValuePiece> promised_output(TermSets& sets, const Promise& promise, std::uint32_t rank);

}  // namespace railyard::sim
