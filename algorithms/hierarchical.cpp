#include "algorithms/hierarchical.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/chunking.h"

namespace railyard::algorithms {
namespace {

using sim::Buffer;
using sim::bytes;
using sim::Lane;
using sim::LaneId;
using sim::LaneRole;
using sim::Op;
using sim::Primitive;
using sim::Program;
using sim::ProgramId;
using sim::Work;

constexpr std::int64_t kMaxChunk = 2 << 20;  // 4 slices; a FIFO full of 8 would stop the ring
constexpr std::int64_t kSmallSubChunk = 32 << 10;
constexpr std::int64_t kWantedChunks = 4;
constexpr std::uint8_t kPercent = 33;
constexpr std::int64_t kAlign = 16;

// `repeat` operations on the blocks at distance `block`, block - 1, ... from the lane's own.
void append(Program& program, Primitive primitive, std::uint32_t repeat, std::int32_t block) {
  if (repeat == 0) return;
  Op op;
  op.primitive = primitive;
  op.repeat = repeat;
  op.block_base = block;
  op.block_per_position = 1;
  op.block_step = -1;
  op.recv_slots = op.send_slots = 1;  // the ring's; the other slot is a signal
  program.push_back(op);
}

constexpr std::uint32_t kSignalSlot = 2;  // the second connection of a lane

Program reduce_program(std::uint32_t ranks) {
  Program program;
  append(program, Primitive::send, 1, -1);
  append(program, Primitive::recv_reduce_send, ranks - 2, -2);
  append(program, Primitive::recv_reduce_copy, 1, 0);
  program.back().signal_slots = kSignalSlot;
  return program;
}

// Around the nodes; what it sums lies in the output.
Program exchange_program(std::uint32_t nodes) {
  Program program;
  append(program, Primitive::send, 1, -1);
  append(program, Primitive::recv_reduce_send, nodes - 2, -2);
  append(program, Primitive::recv_reduce_copy_send, 1, 0);
  append(program, Primitive::recv_copy_send, nodes - 2, -1);
  append(program, Primitive::recv, 1, 1);
  for (Op& op : program) op.source = Buffer::output;
  program.front().wait_slots = kSignalSlot;
  program.back().signal_slots = kSignalSlot;
  return program;
}

Program gather_program(std::uint32_t ranks) {
  Program program;
  append(program, Primitive::send, 1, 0);
  append(program, Primitive::recv_copy_send, ranks - 2, -1);
  append(program, Primitive::recv, 1, 1);
  program.front().source = Buffer::output;
  program.front().wait_slots = kSignalSlot;
  return program;
}

// Bytes of a sub-chunk: see the header.
std::int64_t sub_chunk(const BuildInput& input, sim::Bytes part, std::int64_t ranks,
                       std::int64_t nodes) {
  if (input.call.protocol == sim::Protocol::plain)
    return align_up(div_up(part.raw(), ranks * nodes), kAlign);
  const std::int64_t step = step_payload(input.call.protocol, input.shape.fifos).raw();
  std::int64_t sub = std::min(step, kMaxChunk / nodes / kAlign * kAlign);
  sub = std::max(sub, kAlign);
  while (sub > kSmallSubChunk && part.raw() < kWantedChunks * ranks * nodes * sub)
    sub = align_up(sub / 2, kAlign);
  return sub;
}

// The lanes of one rank on one channel.
struct RankLanes {
  LaneId reduce;
  LaneId exchange;
  LaneId gather;
};

class HierarchicalBuilder {
 public:
  HierarchicalBuilder(const BuildInput& input, const P2pLayout& layout)
      : input_(input),
        layout_(layout),
        ranks_(static_cast<std::uint32_t>(input.channels.front().heads.nodes.front().ranks.size())),
        nodes_(input.shape.nodes),
        builder_(input.call, input.shape.ranks) {}

  sim::Schedule build() && {
    reduce_ = builder_.add_program(reduce_program(ranks_));
    exchange_ = builder_.add_program(exchange_program(nodes_));
    gather_ = builder_.add_program(gather_program(ranks_));
    for (const Part& part : input_.parts) add_channel(part);
    return std::move(builder_).finish(kFifoSteps);
  }

 private:
  void add_channel(const Part& part) {
    const auto& nodes = input_.channels[part.channel].heads.nodes;
    channel_ = part.channel;
    Work inner;
    inner.layout = sim::Layout::rotating;
    inner.offset = part.offset;
    inner.size = part.size;
    inner.blocks = ranks_;
    const std::int64_t sub = sub_chunk(input_, part.size, ranks_, nodes_);
    inner.chunk = bytes(sub * nodes_);
    if (input_.call.protocol != sim::Protocol::plain) {
      const std::int64_t step = step_payload(input_.call.protocol, input_.shape.fifos).raw();
      inner.slices_per_chunk = static_cast<std::uint32_t>(div_up(inner.chunk.raw(), step));
    }
    inner.align = inner.slice_align = kAlign;
    const std::uint32_t work = builder_.add_work(inner);
    std::vector<std::vector<RankLanes>> lanes(nodes.size());
    for (std::uint32_t place = 0; place < ranks_; ++place) {
      Work outer = inner;
      outer.outer_blocks = ranks_;
      outer.outer_block = place;
      outer.blocks = nodes_;
      outer.chunk = bytes(sub);
      outer.slices_per_chunk = 1;
      const std::uint32_t exchange = builder_.add_work(outer);
      for (std::uint32_t n = 0; n < nodes.size(); ++n)
        lanes[n].push_back(add_rank(nodes[n].ranks[place], {work, place}, {exchange, n}));
    }
    connect(nodes, lanes);
  }

  struct Task {
    std::uint32_t work = 0;
    std::uint32_t position = 0;
  };
  RankLanes add_rank(std::uint32_t rank, const Task& inner, const Task& outer) {
    return {add(rank, LaneRole::hierarchical_reduce, reduce_, inner),
            add(rank, LaneRole::hierarchical_exchange, exchange_, outer),
            add(rank, LaneRole::hierarchical_gather, gather_, inner)};
  }
  LaneId add(std::uint32_t rank, LaneRole role, ProgramId program, const Task& task) {
    Lane lane;
    lane.rank = rank;
    lane.channel = static_cast<std::uint16_t>(channel_);
    lane.role = role;
    lane.copy_percent = kPercent;
    lane.program = program;
    lane.work = task.work;
    lane.position = task.position;
    return builder_.add_lane(lane);
  }

  // The rings first: they are the lanes' first slots.
  void connect(const std::vector<sim::HeadNode>& nodes,
               const std::vector<std::vector<RankLanes>>& lanes) {
    for (std::size_t n = 0; n < nodes.size(); ++n)
      for (std::size_t place = 0; place < ranks_; ++place) {
        const RankLanes& here = lanes[n][place];
        const RankLanes& next = lanes[n][(place + 1) % ranks_];
        builder_.connect(here.reduce, next.reduce, {});
        builder_.connect(here.gather, next.gather, {});
        const std::size_t to = (n + 1) % nodes.size();
        builder_.connect(here.exchange, lanes[to][place].exchange,
                         p2p_hop(layout_, nodes[n].ranks[place], nodes[to].ranks[place], channel_));
      }
    for (const auto& node : lanes)
      for (const RankLanes& here : node) {
        builder_.signal(here.reduce, here.exchange);
        builder_.signal(here.exchange, here.gather);
      }
  }

  const BuildInput& input_;
  const P2pLayout& layout_;
  std::uint32_t ranks_;  // per node
  std::uint32_t nodes_;
  ScheduleBuilder builder_;
  ProgramId reduce_, exchange_, gather_;
  std::uint32_t channel_ = 0;
};

}  // namespace

sim::Schedule hierarchical_schedule(const BuildInput& input, const P2pLayout& layout) {
  if (input.parts.empty()) return ScheduleBuilder(input.call, input.shape.ranks).finish(kFifoSteps);
  return HierarchicalBuilder(input, layout).build();
}

}  // namespace railyard::algorithms
