#include "algorithms/tree.h"

#include <utility>

#include "algorithms/chunking.h"

namespace railyard::algorithms {
namespace {

using sim::Lane;
using sim::LaneId;
using sim::LaneRole;
using sim::Op;
using sim::Primitive;
using sim::ProgramId;
using sim::Protocol;

struct TreePrograms {
  ProgramId root;
  ProgramId up_leaf;
  ProgramId up_inner;
  ProgramId down_leaf;
  ProgramId down_inner;
};

TreePrograms add_programs(ScheduleBuilder& builder) {
  const auto add = [&](Primitive primitive) {
    return builder.add_program({Op{.primitive = primitive}});
  };
  return {.root = add(Primitive::recv_reduce_copy_send),
          .up_leaf = add(Primitive::send),
          .up_inner = add(Primitive::recv_reduce_send),
          .down_leaf = add(Primitive::recv),
          .down_inner = add(Primitive::recv_copy_send)};
}

std::uint8_t up_percent(Protocol protocol) {
  switch (protocol) {
    case Protocol::simple: return 60;
    case Protocol::ll:
    case Protocol::ll128: return 70;
    case Protocol::plain: break;
  }
  return 50;
}

bool is_leaf(const sim::TreeEdges& edges) {
  for (const std::int32_t child : edges.down)
    if (child >= 0) return false;
  return true;
}

// The lanes of one rank on one channel; the root's are the same lane.
struct RankLanes {
  LaneId up;
  LaneId down;
};

std::vector<RankLanes> add_lanes(const sim::Channel& channel, const TreePrograms& programs,
                                 Lane lane, Protocol protocol, ScheduleBuilder& builder) {
  std::vector<RankLanes> lanes(channel.tree.size());
  for (std::uint32_t rank = 0; rank < channel.tree.size(); ++rank) {
    const sim::TreeEdges& edges = channel.tree[rank];
    const bool leaf = is_leaf(edges);
    lane.rank = rank;
    if (edges.up < 0) {
      lane.role = LaneRole::tree_root;
      lane.copy_percent = 100;
      lane.program = programs.root;
      lanes[rank].up = lanes[rank].down = builder.add_lane(lane);
      continue;
    }
    lane.role = LaneRole::tree_up;
    lane.copy_percent = up_percent(protocol);
    lane.program = leaf ? programs.up_leaf : programs.up_inner;
    lanes[rank].up = builder.add_lane(lane);
    lane.role = LaneRole::tree_down;
    lane.copy_percent = static_cast<std::uint8_t>(100 - up_percent(protocol));
    lane.program = leaf ? programs.down_leaf : programs.down_inner;
    lanes[rank].down = builder.add_lane(lane);
  }
  return lanes;
}

// Both directions of every edge, in the order of each parent's children.
void connect_lanes(const sim::Channel& channel, const std::vector<RankLanes>& lanes,
                   ScheduleBuilder& builder) {
  const NicTable nics(channel);
  for (std::uint32_t rank = 0; rank < channel.tree.size(); ++rank) {
    for (const std::int32_t down : channel.tree[rank].down) {
      if (down < 0) continue;
      const auto child = static_cast<std::uint32_t>(down);
      builder.connect(lanes[child].up, lanes[rank].up, nics.find(child, rank));
      builder.connect(lanes[rank].down, lanes[child].down, nics.find(rank, child));
    }
  }
}

}  // namespace

sim::Schedule tree_schedule(const BuildInput& input) {
  RAILYARD_CHECK(input.shape.ranks >= 2, "a tree has at least two ranks");
  ScheduleBuilder builder(input.call, input.shape.ranks);
  const TreePrograms programs = add_programs(builder);
  for (const Part& part : input.parts) {
    sim::Work work;
    work.offset = part.offset;
    work.size = part.size;
    set_chunking(input.call, input.shape, work);
    Lane lane;
    lane.channel = static_cast<std::uint16_t>(part.channel);
    lane.work = builder.add_work(work);
    const sim::Channel& channel = input.channels[part.channel];
    connect_lanes(channel, add_lanes(channel, programs, lane, input.call.protocol, builder),
                  builder);
  }
  return std::move(builder).finish(fifo_slices(input.call));
}

}  // namespace railyard::algorithms
