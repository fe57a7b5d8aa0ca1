// MSCCL algorithm files: XML with <algo>, <gpu>, <tb>, <step>. What each attribute means here:
//
//   algo  name, proto, ngpus, nchunksperloop (CustomSchedule::chunks), coll, inplace
//         (`outofplace`, `nchannels`, `minBytes`, `maxBytes` and others are not needed)
//   gpu   id, s_chunks; i_chunks and o_chunks must be what the collective has
//   tb    id, send, recv (-1: no peer), chan
//   step  s, type, srcbuf, srcoff, dstbuf, dstoff, cnt, depid, deps (-1: waits for nothing)
//         types s r rcs rrs rrc rrcs re cpy nop; `hasdep` follows from the others
//
// Source: the format's public description (MSCCL runtime and compiler).
#pragma once

#include <string>

#include "algorithms/custom/custom_schedule.h"

namespace railyard::algorithms {

// Errors name file and line.
sim::Result<CustomSchedule> read_msccl(const std::string& file, const std::string& text);

}  // namespace railyard::algorithms
