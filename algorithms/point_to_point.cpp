#include "algorithms/point_to_point.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "algorithms/chunking.h"

namespace railyard::algorithms {
namespace {

using sim::bytes;
using sim::Bytes;
using sim::Collective;
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
class PointToPoint {
 public:
  PointToPoint(const sim::CollectiveCall& call, const P2pLayout& layout)
      : call_(call),
        layout_(layout),
        each_(p2p_message(call, layout.shape.ranks)),
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
    sends_.resize(layout_.shape.ranks * slots_.size());
    recvs_.resize(sends_.size());
    for (std::uint32_t place = 0; place < layout_.shape.ranks; ++place) add_lanes(place);
    for (std::uint32_t place = 0; place < layout_.shape.ranks; ++place) connect(place);
    return std::move(builder_).finish(kFifoSteps);
  }

 private:
  struct Slot {
    std::uint32_t channel = 0;
    std::uint16_t batch = 0;
  };

  [[nodiscard]] bool has_message(std::uint32_t from, std::uint32_t to) const {
    switch (call_.collective) {
      case Collective::gather: return to == call_.root;
      case Collective::scatter: return from == call_.root;
      case Collective::send_recv: return to == (from + 1) % layout_.shape.ranks;
      default: return true;
    }
  }

  // works[(between nodes, peer, part)]: the block for `peer` in the sender's input, and that from
  // `peer` in the receiver's output.
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
      const bool one_input = call_.collective == Collective::gather;
      const bool one_output = call_.collective == Collective::scatter;
      if (call_.collective != Collective::send_recv) {
        if (!one_input) work.input_shift = each_ * peer;
        if (!one_output) work.output_shift = each_ * peer;
      }
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

  // Works that a rank has on every (channel, batch): the rounds in which it sends or receives.
  [[nodiscard]] std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint32_t> count_works(
      std::uint32_t place) const {
    std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint32_t> works;
    for (std::uint32_t round = 0; round < layout_.rounds.size(); ++round) {
      const Peers peers = peers_of(place, round);
      if (!peers.sends && !peers.receives) continue;
      for (std::uint32_t part = 0; part < parts_.count; ++part) {
        const Slot& slot = slots_[round * parts_.count + part];
        ++works[{slot.channel, slot.batch}];
      }
    }
    return works;
  }

  struct Peers {
    std::uint32_t to = 0;
    std::uint32_t from = 0;
    bool sends = false;
    bool receives = false;
  };
  [[nodiscard]] Peers peers_of(std::uint32_t place, std::uint32_t round) const {
    const P2pPeers places = p2p_peers(layout_, layout_.rounds[round], place);
    const std::uint32_t self = layout_.order[place];
    Peers peers{layout_.order[places.send_to], layout_.order[places.recv_from]};
    peers.sends = has_message(self, peers.to) && !(round == 0 && call_.in_place);
    peers.receives = has_message(peers.from, self) && !(round == 0 && call_.in_place);
    return peers;
  }

  void add_lanes(std::uint32_t place) {
    const auto works = count_works(place);
    for (std::uint32_t round = 0; round < layout_.rounds.size(); ++round) {
      const Peers peers = peers_of(place, round);
      if (!peers.sends && !peers.receives) continue;
      for (std::uint32_t part = 0; part < parts_.count; ++part) {
        const std::uint32_t index = round * parts_.count + part;
        const Slot& slot = slots_[index];
        Lane lane;
        lane.rank = layout_.order[place];
        lane.channel = static_cast<std::uint16_t>(slot.channel);
        lane.batch = slot.batch;
        const std::uint32_t warps = kWarps / works.at({slot.channel, slot.batch});
        add_round(lane, peers, {place * slots_.size() + index, part, warps, round == 0});
      }
    }
  }

  // Part `part` of a rank's round: what it sends and what it receives, or the copy to itself.
  struct RoundPart {
    std::size_t index = 0;  // into sends_ and recvs_
    std::uint32_t part = 0;
    std::uint32_t warps = 1;
    bool own = false;
  };
  void add_round(const Lane& lane, const Peers& peers, const RoundPart& at) {
    if (at.own) {
      add(lane, LaneRole::local,
          {programs_.copy, work_of(lane.rank, lane.rank, at.part), at.warps});
      return;
    }
    // A large work gives sending one warp more; a direction that is alone has them all.
    std::uint32_t recv = at.warps <= 4 ? at.warps / 2 : (at.warps - 1) / 2;
    std::uint32_t send = at.warps <= 4 ? recv : recv + 1;
    if (!peers.receives) send = at.warps;
    if (!peers.sends) recv = at.warps;
    if (peers.sends)
      sends_[at.index] = add(lane, LaneRole::p2p_send,
                             {programs_.send, work_of(lane.rank, peers.to, at.part), send});
    if (peers.receives)
      recvs_[at.index] = add(lane, LaneRole::p2p_recv,
                             {programs_.recv, work_of(lane.rank, peers.from, at.part), recv});
  }

  struct Task {
    ProgramId program;
    std::uint32_t work = 0;
    std::uint32_t warps = 1;
  };
  LaneId add(Lane lane, LaneRole role, const Task& task) {
    lane.role = role;
    lane.program = task.program;
    lane.work = task.work;
    lane.copy_percent = static_cast<std::uint8_t>(task.warps * 100 / kWarps);
    return builder_.add_lane(lane);
  }

  void connect(std::uint32_t place) {
    for (std::uint32_t round = 1; round < layout_.rounds.size(); ++round) {
      if (!peers_of(place, round).sends) continue;
      const std::uint32_t to = p2p_peers(layout_, layout_.rounds[round], place).send_to;
      for (std::uint32_t part = 0; part < parts_.count; ++part) {
        const std::uint32_t index = round * parts_.count + part;
        const NicPair hop = p2p_hop(layout_, layout_.order[place], layout_.order[to],
                                    p2p_channel(layout_, layout_.rounds[round], part));
        builder_.connect(sends_[place * slots_.size() + index], recvs_[to * slots_.size() + index],
                         hop);
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
  std::vector<LaneId> sends_, recvs_;     // by (place, round, part)
};

}  // namespace

Bytes p2p_message(const sim::CollectiveCall& call, std::uint32_t ranks) {
  return call.collective == Collective::all_to_all ? call.size / std::int64_t{ranks} : call.size;
}

Result<Schedule> point_to_point_schedule(const sim::CollectiveCall& call, const P2pLayout& layout) {
  const std::int64_t ranks = layout.shape.ranks;
  if (call.size.raw() == 0) return ScheduleBuilder(call, layout.shape.ranks).finish(kFifoSteps);
  const P2pParts parts =
      p2p_parts(layout, call.protocol, p2p_message(call, layout.shape.ranks), false);
  const bool to_all = call.collective == Collective::all_to_all;
  const std::int64_t lanes = 2 * ranks * (to_all ? ranks : 1) * parts.count;
  if (lanes > std::numeric_limits<std::int32_t>::max())
    return sim::Error{sim::ErrorCode::unsupported,
                      std::string(to_text(call.collective)) + " of " + std::to_string(ranks) +
                          " ranks would have " + std::to_string(lanes) +
                          " lanes, which is too many",
                      ""};
  return PointToPoint(call, layout).build();
}

}  // namespace railyard::algorithms
