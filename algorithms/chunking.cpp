#include "algorithms/chunking.h"

#include <algorithm>
#include <vector>

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

// Fewer bytes than chunks would fill: smaller ones. `all` is what the channel carries of all ranks.
std::int64_t shrink_pat(const CollectiveCall& call, std::int64_t chunk, std::int64_t all) {
  const std::int64_t chunks = call.collective == Collective::all_gather ? 32 : 16;
  while (chunk * chunks > all && chunk > 65'536) chunk /= 2;
  return chunk;
}

// A chunk is `to` where it is larger and the channel carries less than `count` of them per head.
struct Step {
  std::int64_t count;
  std::int64_t to;
};
std::int64_t shrink_by_steps(std::int64_t chunk, std::int64_t per_head,
                             const std::vector<Step>& steps) {
  for (const Step& step : steps)
    if (chunk > step.to && per_head < step.count * chunk) chunk = step.to;
  return chunk;
}

std::int64_t nvls_chunk(const CollectiveCall& call, const CommShape& shape, std::int64_t part) {
  if (call.algorithm == Algorithm::nvls) {
    const std::int64_t all = call.collective == Collective::all_reduce ? part : part * shape.ranks;
    return shrink_by_steps(131'072, all / shape.heads, {{64, 65'536}, {8, 32'768}, {2, 16'384}});
  }
  const std::int64_t most = shape.nodes >= 4 ? 65'536 : 131'072;
  return shrink_by_steps(most, part / shape.heads,
                         {{32, 262'144}, {16, 131'072}, {4, 65'536}, {1, 32'768}});
}

// `part` bytes of a channel; halved while there are few chunks for the way they go.
std::int64_t collnet_chunk(const CollectiveCall& call, const CommShape& shape, std::int64_t part) {
  const std::int64_t per_node = div_up(shape.ranks, shape.nodes);
  const bool direct = call.algorithm == Algorithm::collnet_direct;
  const std::int64_t depth = direct ? std::min<std::int64_t>(per_node, 2) : per_node;
  const std::int64_t each = direct ? part / shape.heads : part;
  std::int64_t chunk = direct ? 524'288 : 262'144;
  const auto halve = [&](std::int64_t chunks, std::int64_t floor) {
    while (each / chunk < chunks && chunk > floor) chunk /= 2;
  };
  halve(64 * depth, 131'072);
  halve(8 * depth, 65'536);
  halve(direct ? 8 * depth : depth, 32'768);
  return chunk;
}

bool is_nvls(Algorithm algorithm) {
  return algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
}
bool is_collnet(Algorithm algorithm) {
  return algorithm == Algorithm::collnet_direct || algorithm == Algorithm::collnet_chain;
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

Bytes step_payload(Protocol protocol) {
  switch (protocol) {
    case Protocol::ll: return bytes(32'768);
    case Protocol::ll128: return bytes(576'000);
    case Protocol::simple: return bytes(524'288);
    case Protocol::plain: break;
  }
  RAILYARD_CHECK(false, "the plain protocol has no step");
}

std::uint32_t fifo_slices(const CollectiveCall& call) {
  return has_long_chunks(call) ? kFifoSteps / static_cast<std::uint32_t>(kSliceSteps) : kFifoSteps;
}

Chunking chunking(const CollectiveCall& call, const CommShape& shape, Bytes part) {
  Chunking result;
  result.fifo_slices = fifo_slices(call);
  if (call.protocol == Protocol::plain) {
    result.chunk = plain_chunk(call, shape, part);
    return result;
  }
  const Bytes step = step_payload(call.protocol);
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
  if (is_nvls(call.algorithm)) result.chunk = bytes(nvls_chunk(call, shape, part.raw()));
  if (is_collnet(call.algorithm)) result.chunk = bytes(collnet_chunk(call, shape, part.raw()));
  if (call.algorithm == Algorithm::pat)
    result.chunk = bytes(shrink_pat(call, result.chunk.raw(), part.raw() * shape.ranks));
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
