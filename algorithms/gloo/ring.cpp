// Rings: AllReduce, Reduce, AllGather.
#include <algorithm>
#include <vector>

#include "algorithms/gloo/gloo_builder.h"

namespace railyard::algorithms::gloo {
namespace {

using sim::Buffer;
using sim::bytes;
using sim::LaneId;
using sim::LaneRole;
using sim::Op;
using sim::Primitive;
using sim::Program;
using sim::ProgramId;
using sim::Work;

// One operation on the segment at distance `block` from the beginning of the rank's own chunk.
Op segment_op(Primitive primitive, std::uint32_t block, std::uint32_t per_chunk) {
  Op op;
  op.primitive = primitive;
  op.block_base = static_cast<std::int32_t>(block);
  op.block_per_position = static_cast<std::int32_t>(per_chunk);
  return op;
}

// `sent` segments, beginning with the next rank's chunk; `sums` is where partial sums are kept.
Program reduce_program(const Segments& segments, std::uint32_t sent, Buffer sums) {
  const std::uint32_t k = segments.per_chunk;
  Program program;
  for (std::uint32_t i = 0; i < sent + kInFlight; ++i) {
    if (i >= kInFlight) {
      Op add = segment_op(Primitive::recv_reduce_copy, 2 * k + i - kInFlight, k);
      add.target = sums;
      program.push_back(add);
    }
    if (i >= sent) continue;
    Op send = segment_op(Primitive::send, k + i, k);
    send.source = i < k ? Buffer::input : sums;
    program.push_back(send);
  }
  return program;
}

Program gather_program(const Segments& segments) {
  const std::uint32_t k = segments.per_chunk;
  const std::uint32_t sent = segments.count - k;
  Program program;
  for (std::uint32_t i = 0; i < sent + kInFlight; ++i) {
    if (i >= kInFlight) program.push_back(segment_op(Primitive::recv, k + i - kInFlight, k));
    if (i >= sent) continue;
    Op send = segment_op(Primitive::send, i, k);
    send.source = Buffer::output;
    program.push_back(send);
  }
  return program;
}

// AllGather: every rank passes on what it has received, beginning with its own block, to the rank
// above it.
Program pass_on_program(const Segments& halves) {
  const auto k = static_cast<std::int32_t>(halves.per_chunk);
  const std::uint32_t sent = halves.count - halves.per_chunk;
  const auto op_on = [&](Primitive primitive, std::uint32_t i, std::int32_t blocks_below) {
    Op op;
    op.primitive = primitive;
    op.source = Buffer::output;
    const auto step = static_cast<std::int32_t>(i);
    op.block_base = step % k - (step / k + blocks_below) * k;
    op.block_per_position = k;
    return op;
  };
  Program program;
  for (std::uint32_t i = 0; i < sent + halves.per_chunk; ++i) {
    if (i >= halves.per_chunk) program.push_back(op_on(Primitive::recv, i - halves.per_chunk, 1));
    if (i < sent) program.push_back(op_on(Primitive::send, i, 0));
  }
  return program;
}

// AllGather: what every rank does first, if its input is not in the output already.
void add_copies_into_place(const GlooInput& input, GlooBuilder& builder) {
  Work blocks;
  blocks.layout = sim::Layout::per_rank;
  blocks.size = blocks.chunk = blocks.stride = input.call.size;
  blocks.blocks = input.ranks;
  blocks.single_block_input = true;
  const std::uint32_t work = builder.schedule().add_work(blocks);
  const ProgramId copying = builder.schedule().add_program({segment_op(Primitive::copy, 0, 1)});
  for (std::uint32_t rank = 0; rank < input.ranks; ++rank)
    builder.lane({.rank = rank, .role = LaneRole::local, .program = copying, .work = work});
}

// A lane of every rank, each sending to the rank `step` further on.
void add_ring(const GlooInput& input, const std::vector<LaneId>& lanes, std::uint32_t step,
              GlooBuilder& builder) {
  for (std::uint32_t rank = 0; rank < input.ranks; ++rank) {
    const std::uint32_t to = (rank + step) % input.ranks;
    builder.connect({lanes[rank], rank}, {lanes[to], to});
  }
}

// Every rank but the root sends its chunk to the root, each in one message.
void add_gather_to_root(const GlooInput& input, const Segments& segments, GlooBuilder& builder) {
  const std::uint32_t root = input.call.root;
  Work chunks = segment_work(input, {segments.size * segments.per_chunk, 1, input.ranks});
  chunks.align = chunks.chunk.raw();
  const std::uint32_t work = builder.schedule().add_work(chunks);
  Op send = segment_op(Primitive::send, 0, 1);
  send.source = Buffer::scratch;
  const ProgramId sending = builder.schedule().add_program({send});
  const ProgramId receiving = builder.schedule().add_program({segment_op(Primitive::recv, 0, 1)});
  for (std::uint32_t rank = 0; rank < input.ranks; ++rank) {
    if (rank == root) continue;
    const LaneId from = builder.lane({.rank = rank, .phase = 1, .program = sending, .work = work});
    const LaneId to = builder.lane(
        {.rank = root, .phase = 1, .program = receiving, .work = work, .position = rank});
    builder.connect({from, rank}, {to, root});
  }
}

}  // namespace

sim::Schedule ring_all_reduce(const GlooInput& input) {
  const Segments segments =
      all_reduce_segments(input.call.size.raw(), input.call.element_size, input.ranks);
  GlooBuilder builder(input);
  const std::uint32_t work = builder.schedule().add_work(segment_work(input, segments));
  const ProgramId reduce = builder.schedule().add_program(
      reduce_program(segments, segments.count - segments.per_chunk, Buffer::output));
  const ProgramId gather = builder.schedule().add_program(gather_program(segments));
  std::vector<LaneId> reducing;
  std::vector<LaneId> gathering;
  for (std::uint32_t rank = 0; rank < input.ranks; ++rank) {
    reducing.push_back(builder.lane(
        {.rank = rank, .role = LaneRole::gloo_reduce, .program = reduce, .work = work}));
    gathering.push_back(builder.lane({.rank = rank, .phase = 1, .program = gather, .work = work}));
  }
  add_ring(input, reducing, input.ranks - 1, builder);
  add_ring(input, gathering, input.ranks - 1, builder);
  return std::move(builder).finish();
}

sim::Schedule ring_reduce(const GlooInput& input) {
  const Segments segments =
      reduce_segments(input.call.size.raw(), input.call.element_size, input.ranks);
  const std::uint32_t sent = segments.count - kInFlight;
  GlooBuilder builder(input);
  const std::uint32_t work = builder.schedule().add_work(segment_work(input, segments));
  const ProgramId at_root =
      builder.schedule().add_program(reduce_program(segments, sent, Buffer::output));
  const ProgramId elsewhere =
      builder.schedule().add_program(reduce_program(segments, sent, Buffer::scratch));
  std::vector<LaneId> lanes;
  for (std::uint32_t rank = 0; rank < input.ranks; ++rank)
    lanes.push_back(builder.lane({.rank = rank,
                                  .role = LaneRole::gloo_reduce,
                                  .program = rank == input.call.root ? at_root : elsewhere,
                                  .work = work}));
  add_ring(input, lanes, input.ranks - 1, builder);
  add_gather_to_root(input, segments, builder);
  sim::Schedule schedule = std::move(builder).finish();
  schedule.scratch = bytes(segments.size * segments.count);
  return schedule;
}

sim::Schedule ring_all_gather(const GlooInput& input) {
  GlooBuilder builder(input);
  const Segments halves = all_gather_segments(input.call.size.raw(), input.ranks);
  Work whole;
  whole.layout = sim::Layout::rotating;
  whole.size = input.call.size * input.ranks;
  whole.chunk = bytes(halves.size);
  whole.align = halves.size;
  whole.blocks = halves.count;
  const std::uint32_t work = builder.schedule().add_work(whole);
  const ProgramId moving = builder.schedule().add_program(pass_on_program(halves));
  std::vector<LaneId> lanes;
  for (std::uint32_t rank = 0; rank < input.ranks; ++rank)
    lanes.push_back(builder.lane({.rank = rank, .phase = 1, .program = moving, .work = work}));
  add_ring(input, lanes, 1, builder);
  if (!input.call.in_place) add_copies_into_place(input, builder);
  return std::move(builder).finish();
}

}  // namespace railyard::algorithms::gloo
