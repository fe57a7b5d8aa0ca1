#include "algorithms/nvls.h"

#include <numeric>
#include <utility>
#include <vector>

#include "algorithms/chunking.h"

namespace railyard::algorithms {
namespace {

using sim::Buffer;
using sim::Collective;
using sim::HeadNode;
using sim::Lane;
using sim::LaneId;
using sim::LaneRole;
using sim::Op;
using sim::Primitive;
using sim::ProgramId;

constexpr std::uint32_t kWarps = 20;

struct Warps {
  std::uint32_t scatter = 0;
  std::uint32_t reduce = 0;
  std::uint32_t broadcast = 0;
  std::uint32_t gather = 0;
};

Warps split_warps(Collective collective, std::size_t ranks, bool below_root) {
  if (collective == Collective::all_gather) return {.broadcast = 12, .gather = 8};
  if (collective == Collective::reduce_scatter) return {.scatter = 8, .reduce = 12};
  Warps warps;
  warps.reduce = ranks <= 6 && !below_root ? 7 : 5;
  warps.broadcast = below_root ? 4 : 0;
  const std::uint32_t copies = kWarps - warps.reduce - warps.broadcast;
  warps.scatter = (copies + 1) / 2;
  warps.gather = copies / 2;
  return warps;
}

std::uint8_t percent(std::uint32_t warps) {
  return static_cast<std::uint8_t>(warps * 100 / kWarps);
}

// What all lanes of a kind run, on the blocks of the heads in their order, which is that of the
// slots.
struct Programs {
  ProgramId scatter;
  ProgramId gather;
  ProgramId pass;  // the sum of all that comes in (one of them: a copy of it), to all
  ProgramId own;   // AllGather: own block to all
  ProgramId keep;  // ReduceScatter: the sum of all into the output
};

Programs add_programs(const std::vector<std::uint32_t>& blocks, ScheduleBuilder& builder) {
  sim::Program scatter, gather;
  for (std::uint32_t h = 0; h < blocks.size(); ++h) {
    Op send;
    send.primitive = Primitive::send;
    send.block_base = static_cast<std::int32_t>(blocks[h]);
    send.send_slots = 1U << h;
    send.holds = h + 1 < blocks.size();
    scatter.push_back(send);
    Op recv;
    recv.primitive = Primitive::recv;
    recv.block_base = static_cast<std::int32_t>(blocks[h]);
    recv.recv_slots = 1U << h;
    gather.push_back(recv);
  }
  const auto of_head = [&](Primitive primitive, Buffer source) {
    Op op;
    op.primitive = primitive;
    op.block_per_position = 1;
    op.source = source;
    return builder.add_program({op});
  };
  return {.scatter = builder.add_program(scatter),
          .gather = builder.add_program(gather),
          .pass = of_head(Primitive::recv_reduce_send, Buffer::none),
          .own = of_head(Primitive::send, Buffer::input),
          .keep = of_head(Primitive::recv_reduce_copy, Buffer::none)};
}

sim::Work nvls_work(const BuildInput& input, const Part& part) {
  sim::Work work;
  work.offset = part.offset;
  work.size = part.size;
  work.blocks = input.shape.heads;
  work.layout = sim::Layout::rotating;
  set_chunking(input.call, input.shape, work);
  if (input.call.collective == Collective::all_reduce) return work;
  work.layout = sim::Layout::per_rank;
  work.stride = input.call.size;
  work.single_block_input = input.call.collective == Collective::all_gather;
  work.single_block_output = !work.single_block_input;
  return work;
}

// The lanes of one node on one channel.
struct NodeLanes {
  std::vector<LaneId> scatter, gather;    // by place in the node
  std::vector<LaneId> reduce, broadcast;  // by head; broadcast invalid at the root
};

class NvlsBuilder {
 public:
  NvlsBuilder(const BuildInput& input, const P2pLayout* layout)
      : input_(input),
        layout_(layout),
        builder_(input.call, input.shape.ranks),
        collective_(input.call.collective) {}

  sim::Schedule build() && {
    if (!input_.parts.empty()) programs_ = add_programs(blocks(), builder_);
    for (const Part& part : input_.parts) add_channel(part);
    return std::move(builder_).finish(kFifoSteps);
  }

 private:
  // By head. AllReduce cuts each loop among the heads, AllGather and ReduceScatter among the ranks.
  [[nodiscard]] std::vector<std::uint32_t> blocks() const {
    std::vector<std::uint32_t> blocks = input_.channels.front().heads.nodes.front().heads;
    if (collective_ == Collective::all_reduce) std::iota(blocks.begin(), blocks.end(), 0U);
    return blocks;
  }

  void add_channel(const Part& part) {
    const sim::Heads& heads = input_.channels[part.channel].heads;
    channel_ = part.channel;
    work_ = builder_.add_work(nvls_work(input_, part));
    std::vector<NodeLanes> nodes;
    for (std::size_t n = 0; n < heads.nodes.size(); ++n) {
      const bool below_root = layout_ != nullptr && heads.tree[n].up >= 0;
      nodes.push_back(add_node(heads.nodes[n], below_root));
      connect_node(nodes.back());
    }
    if (layout_ != nullptr) connect_tree(heads, nodes);
  }

  LaneId add(std::uint32_t rank, LaneRole role, ProgramId program, std::uint32_t warps) {
    Lane lane;
    lane.rank = rank;
    lane.channel = static_cast<std::uint16_t>(channel_);
    lane.role = role;
    lane.copy_percent = percent(warps);
    lane.program = program;
    lane.work = work_;
    lane.position = position_;
    lane.in_switch = switch_;
    return builder_.add_lane(lane);
  }

  NodeLanes add_node(const HeadNode& node, bool below_root) {
    const Warps warps = split_warps(collective_, node.ranks.size(), below_root);
    NodeLanes lanes;
    switch_ = {};
    position_ = 0;
    for (const std::uint32_t rank : node.ranks) {
      if (collective_ != Collective::all_gather)
        lanes.scatter.push_back(
            add(rank, LaneRole::nvls_scatter, programs_.scatter, warps.scatter));
      if (collective_ != Collective::reduce_scatter)
        lanes.gather.push_back(add(rank, LaneRole::nvls_gather, programs_.gather, warps.gather));
    }
    if (node.ranks.size() > 1) switch_ = node.nvswitch;
    for (std::uint32_t h = 0; h < node.heads.size(); ++h) {
      const std::uint32_t rank = node.heads[h];
      // Blocks of AllGather and ReduceScatter are those of ranks.
      position_ = collective_ == Collective::all_reduce ? h : rank;
      if (collective_ == Collective::all_gather) {
        lanes.reduce.push_back(add(rank, LaneRole::nvls_broadcast, programs_.own, warps.broadcast));
        continue;
      }
      lanes.reduce.push_back(add(
          rank, LaneRole::nvls_reduce,
          collective_ == Collective::all_reduce ? programs_.pass : programs_.keep, warps.reduce));
      if (below_root)
        lanes.broadcast.push_back(
            add(rank, LaneRole::nvls_broadcast, programs_.pass, warps.broadcast));
    }
    return lanes;
  }

  // Head by head, so that a rank's k-th slot is head k's.
  void connect_node(const NodeLanes& lanes) {
    for (std::size_t h = 0; h < lanes.reduce.size(); ++h) {
      for (const LaneId scatter : lanes.scatter) builder_.connect(scatter, lanes.reduce[h], {});
      const LaneId source = lanes.broadcast.empty() ? lanes.reduce[h] : lanes.broadcast[h];
      for (const LaneId gather : lanes.gather) builder_.connect(source, gather, {});
    }
  }

  void connect_tree(const sim::Heads& heads, const std::vector<NodeLanes>& nodes) {
    for (std::size_t n = 0; n < nodes.size(); ++n)
      for (const std::int32_t child : heads.tree[n].down)
        if (child >= 0) connect_edge(heads, nodes, n, static_cast<std::size_t>(child));
  }

  void connect_edge(const sim::Heads& heads, const std::vector<NodeLanes>& nodes,
                    std::size_t parent, std::size_t child) {
    for (std::size_t h = 0; h < heads.nodes[parent].heads.size(); ++h) {
      const std::uint32_t above = heads.nodes[parent].heads[h];
      const std::uint32_t below = heads.nodes[child].heads[h];
      const NodeLanes& from = nodes[parent];
      builder_.connect(nodes[child].reduce[h], from.reduce[h],
                       p2p_hop(*layout_, below, above, channel_));
      builder_.connect(from.broadcast.empty() ? from.reduce[h] : from.broadcast[h],
                       nodes[child].broadcast[h], p2p_hop(*layout_, above, below, channel_));
    }
  }

  const BuildInput& input_;
  const P2pLayout* layout_;  // null: one node
  ScheduleBuilder builder_;
  Collective collective_;
  Programs programs_{};
  std::uint32_t channel_ = 0;
  std::uint32_t work_ = 0;
  std::uint32_t position_ = 0;
  sim::DeviceId switch_;
};

}  // namespace

sim::Schedule nvls_schedule(const BuildInput& input) { return NvlsBuilder(input, nullptr).build(); }

sim::Schedule nvls_tree_schedule(const BuildInput& input, const P2pLayout& layout) {
  return NvlsBuilder(input, &layout).build();
}

}  // namespace railyard::algorithms
