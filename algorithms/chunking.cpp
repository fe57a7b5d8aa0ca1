#include "algorithms/chunking.h"

#include <algorithm>

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
constexpr std::int64_t kChunkSteps = 4;         // Ring Simple AllReduce, AllGather, ReduceScatter
constexpr std::int64_t kSliceSteps = 2;

bool has_long_chunks(const CollectiveCall& call) {
  return call.algorithm == Algorithm::ring && call.protocol == Protocol::simple &&
         (call.collective == Collective::all_reduce || call.collective == Collective::all_gather ||
          call.collective == Collective::reduce_scatter);
}

Bytes plain_chunk(const CollectiveCall& call, const CommShape& shape, Bytes part) {
  const bool rotating =
      call.collective == Collective::all_reduce && call.algorithm == Algorithm::ring;
  const std::int64_t blocks = rotating ? shape.ranks : 1;
  const std::int64_t chunk = align_up(div_up(part.raw(), blocks), call.element_size);
  return bytes(std::max(chunk, call.element_size));
}

// Fewer bytes than chunks would fill: smaller ones. `all` is what the channel carries of all ranks.
std::int64_t shrink_pat(const CollectiveCall& call, std::int64_t chunk, std::int64_t all) {
  const std::int64_t chunks = call.collective == Collective::all_gather ? 32 : 16;
  while (chunk * chunks > all && chunk > 65'536) chunk /= 2;
  return chunk;
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
  work.align = call.protocol == Protocol::plain ? call.element_size : kRingAlign;
}

}  // namespace railyard::algorithms
