#include "algorithms/ring.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "algorithms/chunking.h"

namespace railyard::algorithms {
namespace {

using sim::Collective;
using sim::Lane;
using sim::LaneId;
using sim::Layout;
using sim::Op;
using sim::Primitive;
using sim::Program;
using sim::ProgramId;
using sim::Work;

// `repeat` operations on the blocks at distance `block`, block - 1, ... from the lane's own.
Op rotating_op(Primitive primitive, std::uint32_t repeat, std::int32_t block) {
  return {.primitive = primitive,
          .repeat = repeat,
          .block_base = block,
          .block_per_position = 1,
          .block_step = -1};
}

void drop_empty(Program& program) {
  program.erase(
      std::remove_if(program.begin(), program.end(), [](const Op& op) { return op.repeat == 0; }),
      program.end());
}

Program rotating_program(const sim::CollectiveCall& call, std::uint32_t ranks) {
  const std::uint32_t middle = ranks - 2;
  Program program;
  if (call.collective != Collective::all_gather) {
    program.push_back(rotating_op(Primitive::send, 1, -1));
    program.push_back(rotating_op(Primitive::recv_reduce_send, middle, -2));
  }
  switch (call.collective) {
    case Collective::all_reduce:
      program.push_back(rotating_op(Primitive::recv_reduce_copy_send, 1, 0));
      break;
    case Collective::all_gather:
      program.push_back(rotating_op(call.in_place ? Primitive::send : Primitive::copy_send, 1, 0));
      break;
    default: program.push_back(rotating_op(Primitive::recv_reduce_copy, 1, 0));
  }
  if (call.collective != Collective::reduce_scatter) {
    program.push_back(rotating_op(Primitive::recv_copy_send, middle, -1));
    program.push_back(rotating_op(Primitive::recv, 1, 1));
  }
  drop_empty(program);
  return program;
}

// The ring turned so that `rank` comes first.
std::vector<std::uint32_t> ring_from(const sim::Channel& channel, std::uint32_t rank) {
  std::vector<std::uint32_t> ring = channel.ring;
  std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), rank), ring.end());
  return ring;
}

bool is_identity(const std::vector<std::uint32_t>& order) {
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != i) return false;
  return true;
}

Work rotating_work(const BuildInput& input, const Part& part) {
  Work work;
  work.offset = part.offset;
  work.size = part.size;
  work.blocks = input.shape.ranks;
  work.layout = Layout::rotating;
  if (input.call.collective != Collective::all_reduce) {
    work.layout = Layout::per_rank;
    work.stride = input.call.size;
    work.single_block_input = input.call.collective == Collective::all_gather;
    work.single_block_output = input.call.collective == Collective::reduce_scatter;
  }
  set_chunking(input.call, input.shape, work);
  return work;
}

// One channel of AllReduce, AllGather or ReduceScatter: equal lanes that differ in position only.
void add_rotating_ring(const BuildInput& input, const Part& part, ProgramId program,
                       ScheduleBuilder& builder) {
  const sim::Channel& channel = input.channels[part.channel];
  std::vector<std::uint32_t> order = ring_from(channel, 0);
  const NicTable nics(channel);
  Work work = rotating_work(input, part);
  if (work.layout == Layout::per_rank && !is_identity(order))
    work.block_order = builder.add_block_order(order);
  Lane lane;
  lane.channel = static_cast<std::uint16_t>(part.channel);
  lane.program = program;
  lane.work = builder.add_work(work);
  std::vector<LaneId> lanes(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    lane.rank = order[i];
    lane.position = static_cast<std::uint32_t>(i);
    lanes[i] = builder.add_lane(lane);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t next = (i + 1) % order.size();
    builder.connect(lanes[i], lanes[next], nics.find(order[i], order[next]));
  }
}

// Programs of the first, the middle and the last lane of a chain.
struct ChainPrograms {
  ProgramId first;
  ProgramId middle;
  ProgramId last;
};

ChainPrograms add_chain_programs(const sim::CollectiveCall& call, ScheduleBuilder& builder) {
  const auto add = [&](Primitive primitive) {
    return builder.add_program({Op{.primitive = primitive}});
  };
  if (call.collective == Collective::reduce)
    return {add(Primitive::send), add(Primitive::recv_reduce_send),
            add(Primitive::recv_reduce_copy)};
  return {add(call.in_place ? Primitive::send : Primitive::copy_send),
          add(Primitive::recv_copy_send), add(Primitive::recv)};
}

// One channel of Broadcast or Reduce: a chain along the ring, from the root or to it.
void add_chain(const BuildInput& input, const Part& part, const ChainPrograms& programs,
               ScheduleBuilder& builder) {
  const sim::Channel& channel = input.channels[part.channel];
  std::vector<std::uint32_t> chain = ring_from(channel, input.call.root);
  if (input.call.collective == Collective::reduce)  // the root comes last
    std::rotate(chain.begin(), chain.begin() + 1, chain.end());
  const NicTable nics(channel);
  Work work;
  work.offset = part.offset;
  work.size = part.size;
  set_chunking(input.call, input.shape, work);
  Lane lane;
  lane.channel = static_cast<std::uint16_t>(part.channel);
  lane.work = builder.add_work(work);
  LaneId previous;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    lane.rank = chain[i];
    lane.position = static_cast<std::uint32_t>(i);
    lane.program = programs.middle;
    if (i == 0) lane.program = programs.first;
    if (i + 1 == chain.size()) lane.program = programs.last;
    const LaneId here = builder.add_lane(lane);
    if (i > 0) builder.connect(previous, here, nics.find(chain[i - 1], chain[i]));
    previous = here;
  }
}

}  // namespace

sim::Schedule ring_schedule(const BuildInput& input) {
  RAILYARD_CHECK(input.shape.ranks >= 2, "a ring has at least two ranks");
  ScheduleBuilder builder(input.call, input.shape.ranks);
  const Collective collective = input.call.collective;
  if (collective == Collective::broadcast || collective == Collective::reduce) {
    const ChainPrograms programs = add_chain_programs(input.call, builder);
    for (const Part& part : input.parts) add_chain(input, part, programs, builder);
  } else {
    const ProgramId program = builder.add_program(rotating_program(input.call, input.shape.ranks));
    for (const Part& part : input.parts) add_rotating_ring(input, part, program, builder);
  }
  return std::move(builder).finish(fifo_slices(input.call));
}

}  // namespace railyard::algorithms
