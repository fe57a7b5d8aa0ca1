#include "algorithms/chunking.h"

#include <algorithm>
#include <span>

namespace railyard::algorithms {
namespace {

using sim::Algorithm;
using sim::bytes;
using sim::Bytes;
using sim::Collective;
using sim::CollectiveCall;
using sim::Protocol;

constexpr std::int64_t kRingAlign = 16;  // of the last loop's chunk
constexpr std::int64_t kSimpleSliceElements = 16;
constexpr std::int64_t kMinSliceFraction = 32;  // a slice is at least this part of the largest
constexpr std::int64_t kHeadAlign = 16'384;     // NVLS: of the last loop's chunk
constexpr std::int64_t kChunkSteps = 4;         // Ring Simple AllReduce, AllGather, ReduceScatter
constexpr std::int64_t kSliceSteps = 2;

bool has_long_chunks(const CollectiveCall& call) {
  return call.algorithm == Algorithm::ring && call.protocol == Protocol::simple &&
         (call.collective == Collective::all_reduce || call.collective == Collective::all_gather ||
          call.collective == Collective::reduce_scatter);
}

// A chunk is `to` where it is larger and each taker gets less than `count` of them.
struct Stage {
  std::int64_t count;
  std::int64_t to;
};
std::int64_t staged(std::int64_t chunk, std::int64_t takers, std::int64_t total,
                    std::span<const Stage> stages) {
  for (const Stage& stage : stages)
    if (chunk > stage.to && total < stage.count * takers * chunk) chunk = stage.to;
  return chunk;
}

// Halved while each taker gets less than `count` whole chunks, down to `to`.
std::int64_t halved(std::int64_t chunk, std::int64_t takers, std::int64_t total,
                    std::span<const Stage> stages) {
  for (const Stage& stage : stages)
    while (chunk > stage.to && total / (takers * chunk) < stage.count) chunk /= 2;
  return chunk;
}

bool is_nvls(Algorithm algorithm) {
  return algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
}

// Blocks that a rotating work of the call has.
std::int64_t rotating_blocks(const CollectiveCall& call, const CommShape& shape) {
  if (call.collective != Collective::all_reduce) return 1;
  if (call.algorithm == Algorithm::ring) return shape.ranks;
  return is_nvls(call.algorithm) || call.algorithm == Algorithm::collnet_direct ? shape.heads : 1;
}

Bytes plain_chunk(const CollectiveCall& call, const CommShape& shape, Bytes part) {
  const std::int64_t blocks = rotating_blocks(call, shape);
  const std::int64_t chunk = align_up(div_up(part.raw(), blocks), call.element_size);
  return bytes(std::max(chunk, call.element_size));
}

}  // namespace

std::int64_t chunk_grain(Protocol protocol) {
  switch (protocol) {
    case Protocol::ll: return 16;
    case Protocol::ll128: return 1'920;
    case Protocol::simple:
    case Protocol::plain: break;
  }
  return 512;
}

std::int64_t nvls_chunk(std::int64_t most, const CommShape& shape, const ChunkLoad& load) {
  constexpr Stage kStages[] = {{64, 65'536}, {8, 32'768}, {2, 16'384}};
  return staged(std::min(most, shape.nvls_chunks.nvls), load.channels * shape.heads, load.bytes,
                kStages);
}

std::int64_t nvls_tree_chunk(const CommShape& shape, const ChunkLoad& load) {
  constexpr Stage kStages[] = {{32, 262'144}, {16, 131'072}, {4, 65'536}, {1, 32'768}};
  const NvlsChunks& settled = shape.nvls_chunks;
  const std::int64_t by_nodes =
      shape.nodes >= 4 ? std::min<std::int64_t>(settled.nvls, 65'536) : settled.nvls;
  return staged(settled.tree > 0 ? settled.tree : by_nodes, load.channels * shape.heads, load.bytes,
                kStages);
}

std::int64_t collnet_direct_chunk(std::int64_t most, std::int64_t heads, std::int64_t depth,
                                  const ChunkLoad& load) {
  const Stage stages[] = {{64 * depth, 131'072}, {8 * depth, 65'536}, {8 * depth, 32'768}};
  return halved(most, load.channels * heads, load.bytes, stages);
}

std::int64_t collnet_chain_chunk(std::int64_t most, std::int64_t depth, const ChunkLoad& load) {
  const Stage stages[] = {{64 * depth, 131'072}, {8 * depth, 65'536}, {depth, 32'768}};
  return halved(std::min<std::int64_t>(most, 262'144), load.channels, load.bytes, stages);
}

std::int64_t pat_chunk(std::int64_t most, bool gather, const ChunkLoad& load) {
  const std::int64_t chunks = gather ? 32 : 16;
  while (most * load.channels * chunks > load.bytes && most > 65'536) most /= 2;
  return most;
}

// NCCL computes in single precision; so do we, for the same comparisons.
std::int64_t tree_ll128_chunk(std::int64_t chunk, std::int64_t part, const CommShape& shape) {
  const float per_node = static_cast<float>(shape.ranks) / static_cast<float>(shape.nodes);
  const auto levels =
      static_cast<float>(1 + log2_floor(shape.nodes) + 0.1 * static_cast<double>(per_node));
  const auto shrink = [&](float chunks_per_level, std::int64_t floor) {
    while (chunk > floor && static_cast<float>(part / chunk) < levels * chunks_per_level / per_node)
      chunk /= 2;
  };
  shrink(64, 131'072);
  shrink(16, 32'768);
  return chunk;
}

Bytes step_payload(Protocol protocol, const FifoBytes& fifos) {
  RAILYARD_CHECK(protocol != Protocol::plain, "the plain protocol has no step");
  std::int64_t step = fifos.simple / kFifoSteps;
  if (protocol == Protocol::ll) step = fifos.ll / kFifoSteps / 2;
  if (protocol == Protocol::ll128) step = fifos.ll128 / kFifoSteps / 16 * 15;
  return bytes(std::max(step, chunk_grain(protocol)));
}

std::uint32_t fifo_slices(const CollectiveCall& call) {
  return has_long_chunks(call) ? kFifoSteps / static_cast<std::uint32_t>(kSliceSteps) : kFifoSteps;
}

namespace {

// Of the algorithms that sum in switches, and of PAT; the others keep theirs.
std::int64_t switch_chunk(const CollectiveCall& call, const CommShape& shape, std::int64_t most,
                          Bytes part) {
  const bool one_buffer = call.collective == Collective::all_reduce;
  const ChunkLoad load{.bytes = part.raw() * (one_buffer ? 1 : shape.ranks)};
  const std::int64_t per_node = shape.ranks / shape.nodes;
  switch (call.algorithm) {
    case Algorithm::nvls: return nvls_chunk(most, shape, load);
    case Algorithm::nvls_tree: return nvls_tree_chunk(shape, load);
    case Algorithm::collnet_direct:
      return collnet_direct_chunk(most, shape.heads, std::min<std::int64_t>(per_node, 2), load);
    case Algorithm::collnet_chain: return collnet_chain_chunk(most, per_node, load);
    case Algorithm::pat: return pat_chunk(most, call.collective == Collective::all_gather, load);
    default: return most;
  }
}

}  // namespace

Chunking chunking(const CollectiveCall& call, const CommShape& shape, Bytes part) {
  Chunking result;
  result.fifo_slices = fifo_slices(call);
  if (call.protocol == Protocol::plain) {
    result.chunk = plain_chunk(call, shape, part);
    return result;
  }
  const Bytes step = step_payload(call.protocol, shape.fifos);
  result.chunk = step;
  if (call.protocol == Protocol::simple) {
    result.slice_align = kSimpleSliceElements * call.element_size;
    result.min_slice = step / kMinSliceFraction;
  }
  if (has_long_chunks(call)) {
    result.chunk = step * kChunkSteps;
    result.slices_per_chunk = static_cast<std::uint32_t>(kChunkSteps / kSliceSteps);
    result.min_slice = step * kSliceSteps / kMinSliceFraction;
  }
  if (call.algorithm == Algorithm::tree && call.protocol == Protocol::ll128)
    result.chunk = bytes(tree_ll128_chunk(result.chunk.raw(), part.raw(), shape));
  result.chunk = bytes(switch_chunk(call, shape, result.chunk.raw(), part));
  const std::int64_t unit = chunk_grain(call.protocol);
  result.chunk = bytes(result.chunk.raw() / unit * unit);
  return result;
}

void set_chunking(const CollectiveCall& call, const CommShape& shape, sim::Work& work) {
  const Chunking portions = chunking(call, shape, work.size);
  work.chunk = portions.chunk;
  work.slices_per_chunk = portions.slices_per_chunk;
  work.min_slice = portions.min_slice;
  work.slice_align = portions.slice_align;
  work.align = is_nvls(call.algorithm) ? kHeadAlign : kRingAlign;
  if (call.protocol == Protocol::plain) work.align = call.element_size;
}

}  // namespace railyard::algorithms
