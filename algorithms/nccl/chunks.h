// Chunk sizes of NCCL's collectives: in what portions a channel's part moves.
// Source: NCCL 2.30.7 enqueue.cc (calcCollChunking). A step is an eighth of the protocol's FIFO.
//
//   Ring           LL half a step, LL128 15/16 of it, Simple one step; AllReduce, AllGather and
//                  ReduceScatter under Simple four
//   the others     as algorithms/chunking.h says, with this communicator's buffers and limits
#pragma once

#include <cstdint>

#include "algorithms/nccl/plan.h"
#include "algorithms/shape.h"

namespace railyard::algorithms::nccl {

struct ChunkQuestion {
  Function function = Function::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  std::int64_t channels = 1;  // that share `bytes`
  std::int64_t bytes = 0;     // AllGather, ReduceScatter: of all ranks
};

// What a schedule of this communicator must know of them: NVLS between slow nodes keeps to 32 KiB.
NvlsChunks nvls_chunks(const CommPlan& plan);
FifoBytes fifo_bytes(const CommInfo& info);

// Payload bytes, a multiple of the protocol's grain.
std::int64_t chunk_bytes(const CommPlan& plan, const ChunkQuestion& question);

}  // namespace railyard::algorithms::nccl
