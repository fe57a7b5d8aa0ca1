// Chunks and slices: in what portions a channel's part moves. Source: NCCL 2.30, computeBuffSizes
// and the per-algorithm chunk rules.
//
// A connection's FIFO has 8 steps. Payload of a step by default (half of an eighth of the FIFO for
// LL, 15/16 for LL128, all for Simple), grain (chunks are multiples of it):
//   LL 32 KiB, 16 B      LL128 576,000 B, 1,920 B      Simple 512 KiB, 512 B
// Ring Simple AllReduce, AllGather and ReduceScatter: a chunk is 4 steps (2 MiB) in 2 slices, so
// the FIFO holds 4 slices; the smallest slice is 1/32 of two steps. Everything else: chunk = slice
// = one step, 8 slices. Tree LL128, PAT and CollNet halve their chunks for small parts; NVLS has
// what its communicator settled (CommShape::nvls_chunks) and less for small parts, in whole 16 KiB
// per head at the end. These rules are here once, for schedules and for NCCL's plan
// (nccl/chunks.h).
//
// `plain` (no protocol; for comparison with other simulators): every operation moves a whole block
// at once. AllReduce ring: chunk = ceil(part / n), rounded up to an element; all else: the part.
//
// Example: a 16 MiB part of a ring AllReduce under Simple moves as 2 MiB chunks, 1 MiB slices.
#pragma once

#include <cstdint>

#include "algorithms/shape.h"
#include "sim/collective.h"
#include "sim/schedule.h"
#include "sim/units.h"

namespace railyard::algorithms {

inline constexpr std::uint32_t kFifoSteps = 8;

struct Chunking {
  sim::Bytes chunk;  // > 0
  std::uint32_t slices_per_chunk = 1;
  sim::Bytes min_slice;
  std::int64_t slice_align = 1;
  std::uint32_t fifo_slices = kFifoSteps;
};

// Chunks are multiples of it.
std::int64_t chunk_grain(sim::Protocol protocol);

// What a chunk is cut to fit: `bytes` of all ranks, that `channels` channels share.
struct ChunkLoad {
  std::int64_t bytes = 0;
  std::int64_t channels = 1;
};
// From the largest chunk, `most`, to the one for this load; before rounding to the grain.
//   NVLS            64, 32 and 16 KiB where there are less than 64, 8 and 2 chunks for each head
//   NVLSTree        256 to 32 KiB where there are less than 32, 16, 4 and 1
//   CollNetDirect   halved to 128, 64, 32 KiB where there are less than 64, 8 and 8 x depth for
//   each
//                   head; depth 2, with one rank in each node 1
//   CollNetChain    at most 256 KiB, halved likewise below 64, 8 and 1 x depth, the ranks of a node
//   PAT             halved down to 64 KiB where there are less than 32 (AllGather) or 16
std::int64_t nvls_chunk(std::int64_t most, const CommShape& shape, const ChunkLoad& load);
std::int64_t nvls_tree_chunk(const CommShape& shape, const ChunkLoad& load);
std::int64_t collnet_direct_chunk(std::int64_t most, std::int64_t heads, std::int64_t depth,
                                  const ChunkLoad& load);
std::int64_t collnet_chain_chunk(std::int64_t most, std::int64_t depth, const ChunkLoad& load);
std::int64_t pat_chunk(std::int64_t most, bool gather, const ChunkLoad& load);

// Tree LL128: small parts get shorter chunks, so that a chunk does not wait at every one of the
// tree's levels.
std::int64_t tree_ll128_chunk(std::int64_t chunk, std::int64_t part, const CommShape& shape);

// Payload of one FIFO step, at least its grain; Protocol::plain has none (checked).
sim::Bytes step_payload(sim::Protocol protocol, const FifoBytes& fifos);

// `part`: what one channel carries, in the unit of CollectiveCall::size.
Chunking chunking(const sim::CollectiveCall& call, const CommShape& shape, sim::Bytes part);

// FIFO depth of the connections of a call, in slices: the same for all of its parts.
std::uint32_t fifo_slices(const sim::CollectiveCall& call);

// Writes the chunking of `work.size` into `work`, with the alignment of a rotating last loop.
void set_chunking(const sim::CollectiveCall& call, const CommShape& shape, sim::Work& work);

}  // namespace railyard::algorithms
