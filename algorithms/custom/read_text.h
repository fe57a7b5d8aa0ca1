// The text form of user-written schedules. Lines; `#` begins a comment; words are separated by
// spaces. First the header, each key once, then blocks and their steps:
//
//   schedule NAME                  first line
//   collective AllReduce           or any, as --help of run names them; `any`: the checker finds
//   out ranks 2 chunks 2                       into which the buffer is cut protocol Simple LL,
//   LL128, Simple or plain; optional, Simple in-place yes                   optional, no root 0
//   optional, 0 scratch 0                      chunks of every rank's scratch; optional, 0
//
//   block 0.0 send 1 recv 1        rank 0, block 0 of it; peers; `channel 1` where two ranks have
//     send i1                      several blocks for each other
//     recvReduceCopySend i0 o0     source i0 (input), target o0 (output); s0 would be scratch
//     recv o1
//     copy i0 s0 x2 after 1.3      two chunks; waits for step 3 of block 1 of its rank
//
// Steps: send SOURCE, recv TARGET, copy S T, copySend S T, recvCopySend T, recvReduceSend S,
// recvReduceCopy S T, recvReduceCopySend S T, reduce S T (adds S into T), nop.
#pragma once

#include <string>

#include "algorithms/custom/custom_schedule.h"

namespace railyard::algorithms {

// Errors name file and line.
sim::Result<CustomSchedule> read_schedule_text(const std::string& file, const std::string& text);

}  // namespace railyard::algorithms
