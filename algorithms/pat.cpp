#include "algorithms/pat.h"

#include <utility>
#include <vector>

#include "algorithms/chunking.h"
#include "algorithms/pat_order.h"

namespace railyard::algorithms {
namespace {

using sim::Buffer;
using sim::Collective;
using sim::Lane;
using sim::LaneId;
using sim::Op;
using sim::Primitive;

Op plain_op(const PatStep& step) {
  Op op;
  op.block_base = static_cast<std::int32_t>(step.distance);
  op.block_per_position = 1;
  op.recv_part = step.recv;
  op.send_part = step.send;
  if (step.recv_dimension >= 0) op.recv_slots = 1U << step.recv_dimension;
  if (step.send_dimension >= 0) op.send_slots = 1U << step.send_dimension;
  return op;
}

sim::Program gather_program(const PatShape& shape, bool in_place) {
  sim::Program program;
  bool own_copied = in_place;
  for (const PatStep& step : pat_all_gather_order(shape)) {
    Op op = plain_op(step);
    op.primitive = step.send_dimension < 0 ? Primitive::recv : Primitive::recv_copy_send;
    if (step.recv_dimension < 0)
      op.primitive = std::exchange(own_copied, true) ? Primitive::send : Primitive::copy_send;
    program.push_back(op);
  }
  return program;
}

// The first operation on a block adds this rank's own; the later ones add to what is there.
sim::Program scatter_program(const PatShape& shape) {
  sim::Program program;
  std::vector<bool> begun(shape.ranks, false);
  for (const PatStep& step : pat_reduce_scatter_order(shape)) {
    Op op = plain_op(step);
    const bool stays = step.send_dimension < 0;
    op.primitive = stays ? Primitive::recv_reduce_copy : Primitive::recv_reduce_send;
    if (step.recv_dimension < 0) op.primitive = Primitive::send;
    if (begun[step.distance]) op.source = stays ? Buffer::output : Buffer::none;
    begun[step.distance] = true;
    program.push_back(op);
  }
  return program;
}

sim::Work pat_work(const BuildInput& input, const Part& part) {
  sim::Work work;
  work.layout = sim::Layout::per_rank;
  work.blocks = input.shape.ranks;
  work.offset = part.offset;
  work.size = part.size;
  work.stride = input.call.size;
  set_chunking(input.call, input.shape, work);
  work.single_block_input = input.call.collective == Collective::all_gather;
  work.single_block_output = !work.single_block_input;
  return work;
}

void connect(const BuildInput& input, const P2pLayout& layout, std::uint32_t channel,
             const std::vector<LaneId>& lanes, ScheduleBuilder& builder) {
  const std::uint32_t ranks = input.shape.ranks;
  const bool down = input.call.collective == Collective::all_gather;
  for (std::uint32_t d = 0; d < pat_dimensions(ranks); ++d)
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t far = 1U << d;
      const std::uint32_t to = (rank + (down ? ranks - far : far)) % ranks;
      builder.connect(lanes[rank], lanes[to], p2p_hop(layout, rank, to, channel));
    }
}

}  // namespace

sim::Schedule pat_schedule(const BuildInput& input, const P2pLayout& layout) {
  RAILYARD_CHECK(input.shape.ranks >= 2, "PAT joins at least two ranks");
  ScheduleBuilder builder(input.call, input.shape.ranks);
  for (const Part& part : input.parts) {
    Lane lane;
    lane.role = sim::LaneRole::pat;
    lane.channel = static_cast<std::uint16_t>(part.channel);
    const sim::Work work = pat_work(input, part);
    const PatShape shape = pat_shape(input.shape.ranks, work.chunk, part.size, kFifoSteps);
    lane.program = builder.add_program(input.call.collective == Collective::all_gather
                                           ? gather_program(shape, input.call.in_place)
                                           : scatter_program(shape));
    lane.work = builder.add_work(work);
    std::vector<LaneId> lanes;
    for (lane.rank = 0; lane.rank < input.shape.ranks; ++lane.rank) {
      lane.position = lane.rank;
      lanes.push_back(builder.add_lane(lane));
    }
    connect(input, layout, part.channel, lanes, builder);
  }
  return std::move(builder).finish(fifo_slices(input.call));
}

}  // namespace railyard::algorithms
