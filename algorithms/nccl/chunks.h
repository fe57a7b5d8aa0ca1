// Chunk sizes of NCCL's collectives: in what portions a channel's part moves.
// Source: NCCL 2.30.7 enqueue.cc (calcCollChunking). A step is an eighth of the protocol's FIFO.
//
//   Ring           LL half a step, LL128 15/16 of it, Simple one step; AllReduce, AllGather and
//                  ReduceScatter under Simple four
//   Tree LL128     halved for small parts (tree_ll128_chunk in algorithms/chunking.h)
//   NVLS, NVLSTree at most the communicator's chunk, smaller for small parts by heads
//   CollNet        halved for small messages, by heads or depth
//   PAT            halved for small parts, not below 64 KiB
#pragma once

#include <cstdint>

#include "algorithms/nccl/plan.h"

namespace railyard::algorithms::nccl {

struct ChunkQuestion {
  Function function = Function::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  std::int64_t channels = 1;  // that share `bytes`
  std::int64_t bytes = 0;     // AllGather, ReduceScatter: of all ranks
};

// Payload bytes, a multiple of the protocol's grain.
std::int64_t chunk_bytes(const CommPlan& plan, const ChunkQuestion& question);

}  // namespace railyard::algorithms::nccl
