#include "algorithms/point_to_point.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "algorithms/chunking.h"

namespace railyard::algorithms {
namespace {

using sim::bytes;
using sim::Bytes;
using sim::Lane;
using sim::LaneId;
using sim::LaneRole;
using sim::Op;
using sim::Primitive;
using sim::ProgramId;
using sim::Result;
using sim::Schedule;

constexpr std::uint32_t kWorksPerBatch = 8;
constexpr std::uint32_t kWarps = 20;  // of a 640-thread CTA

struct P2pPrograms {
  ProgramId send;
  ProgramId recv;
  ProgramId copy;
};

// Builds the lanes of every (rank, round, part), then joins each send with its receive.
class AllToAll {
 public:
  AllToAll(const sim::CollectiveCall& call, const P2pLayout& layout)
      : call_(call),
        layout_(layout),
        each_(call.size / std::int64_t{layout.shape.ranks}),
        parts_(p2p_parts(layout, call.protocol, each_, false)),
        builder_(call, layout.shape.ranks) {}

  Schedule build() && {
    const auto add = [&](Primitive primitive) {
      return builder_.add_program({Op{.primitive = primitive}});
    };
    programs_ = {
        .send = add(Primitive::send), .recv = add(Primitive::recv), .copy = add(Primitive::copy)};
    add_works();
    plan_batches();
    for (std::uint32_t place = 0; place < layout_.shape.ranks; ++place) add_lanes(place);
    for (std::uint32_t place = 0; place < layout_.shape.ranks; ++place) connect(place);
    return std::move(builder_).finish(kFifoSteps);
  }

 private:
  struct Slot {
    std::uint32_t channel = 0;
    std::uint16_t batch = 0;
  };

  // works[(between nodes, peer, part)]: the block for or from `peer`, in the sender's input and the
  // receiver's output alike.
  void add_works() {
    for (const bool between : {false, true}) {
      if (between && layout_.shape.nodes == 1) continue;
      const P2pParts parts = p2p_parts(layout_, call_.protocol, each_, between);
      for (std::uint32_t peer = 0; peer < layout_.shape.ranks; ++peer) add_peer(peer, parts);
    }
  }

  void add_peer(std::uint32_t peer, const P2pParts& parts) {
    for (std::uint32_t part = 0; part < parts.count; ++part) {
      sim::Work work;
      work.offset = parts.size * part;
      work.size = std::min(parts.size, each_ - work.offset);
      work.chunk = parts.chunk;
      work.input_shift = work.output_shift = each_ * peer;
      builder_.add_work(work);
    }
  }

  [[nodiscard]] bool between_nodes(std::uint32_t a, std::uint32_t b) const {
    return layout_.places.place_of[a] != layout_.places.place_of[b];
  }

  [[nodiscard]] std::uint32_t work_of(std::uint32_t self, std::uint32_t peer,
                                      std::uint32_t part) const {
    const std::uint32_t table = between_nodes(self, peer) ? layout_.shape.ranks : 0;
    return (table + peer) * parts_.count + part;
  }

  // The n-th round on a channel is in its batch n / 8. Equal on all ranks, so batches cannot wait
  // for each other in a circle.
  void plan_batches() {
    rounds_on_.assign(layout_.channels, 0);
    for (const P2pRound& round : layout_.rounds) {
      for (std::uint32_t part = 0; part < parts_.count; ++part) {
        const std::uint32_t channel = p2p_channel(layout_, round, part);
        const std::uint32_t before = rounds_on_[channel]++;
        slots_.push_back({channel, static_cast<std::uint16_t>(before / kWorksPerBatch)});
      }
    }
  }

  // Warps of one round's work: a batch divides its CTA's among its works.
  [[nodiscard]] std::uint32_t warps(const Slot& slot) const {
    const std::uint32_t first = slot.batch * kWorksPerBatch;
    return kWarps / std::min(kWorksPerBatch, rounds_on_[slot.channel] - first);
  }

  void add_lanes(std::uint32_t place) {
    const std::uint32_t self = layout_.order[place];
    for (std::uint32_t round = 0; round < layout_.rounds.size(); ++round) {
      const P2pPeers peers = p2p_peers(layout_, layout_.rounds[round], place);
      for (std::uint32_t part = 0; part < parts_.count; ++part) {
        const Slot& slot = slots_[round * parts_.count + part];
        Lane lane;
        lane.rank = self;
        lane.channel = static_cast<std::uint16_t>(slot.channel);
        lane.batch = slot.batch;
        if (round == 0) {
          add(lane, LaneRole::local, {programs_.copy, work_of(self, self, part), warps(slot)});
          continue;
        }
        const std::uint32_t all = warps(slot);  // a large work gives sending one warp more
        const std::uint32_t recv = all <= 4 ? all / 2 : (all - 1) / 2;
        const std::uint32_t to = layout_.order[peers.send_to];
        const std::uint32_t from = layout_.order[peers.recv_from];
        add(lane, LaneRole::p2p_send,
            {programs_.send, work_of(self, to, part), all <= 4 ? recv : recv + 1});
        add(lane, LaneRole::p2p_recv, {programs_.recv, work_of(self, from, part), recv});
      }
    }
  }

  struct Task {
    ProgramId program;
    std::uint32_t work = 0;
    std::uint32_t warps = 1;
  };
  void add(Lane lane, LaneRole role, const Task& task) {
    lane.role = role;
    lane.program = task.program;
    lane.work = task.work;
    lane.copy_percent = static_cast<std::uint8_t>(task.warps * 100 / kWarps);
    builder_.add_lane(lane);
  }

  // add_lanes() makes one lane per part in round 0 and two in every later one.
  [[nodiscard]] std::uint32_t lane_index(std::uint32_t place, std::uint32_t round,
                                         std::uint32_t part) const {
    const auto rounds = static_cast<std::uint32_t>(layout_.rounds.size());
    const std::uint32_t per_place = parts_.count * (2 * rounds - 1);
    return place * per_place + parts_.count * (2 * round - 1) + 2 * part;
  }

  void connect(std::uint32_t place) {
    for (std::uint32_t round = 1; round < layout_.rounds.size(); ++round) {
      const std::uint32_t to = p2p_peers(layout_, layout_.rounds[round], place).send_to;
      for (std::uint32_t part = 0; part < parts_.count; ++part) {
        const NicPair hop = p2p_hop(layout_, layout_.order[place], layout_.order[to], part);
        builder_.connect(LaneId(lane_index(place, round, part)),
                         LaneId(lane_index(to, round, part) + 1), hop);
      }
    }
  }

  const sim::CollectiveCall& call_;
  const P2pLayout& layout_;
  Bytes each_;
  P2pParts parts_;
  ScheduleBuilder builder_;
  P2pPrograms programs_;
  std::vector<std::uint32_t> rounds_on_;  // by channel
  std::vector<Slot> slots_;               // by (round, part)
};

}  // namespace

Result<Schedule> all_to_all_schedule(const sim::CollectiveCall& call, const P2pLayout& layout) {
  const std::int64_t ranks = layout.shape.ranks;
  if (call.size.raw() == 0) return ScheduleBuilder(call, layout.shape.ranks).finish(kFifoSteps);
  const P2pParts parts = p2p_parts(layout, call.protocol, call.size / ranks, false);
  const std::int64_t lanes = 2 * ranks * ranks * parts.count;
  if (lanes > std::numeric_limits<std::int32_t>::max())
    return sim::Error{sim::ErrorCode::unsupported,
                      "AllToAll of " + std::to_string(ranks) + " ranks would have " +
                          std::to_string(lanes) + " lanes, which is too many",
                      ""};
  return AllToAll(call, layout).build();
}

}  // namespace railyard::algorithms
