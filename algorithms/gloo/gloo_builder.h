// What the builders of this folder share: lanes, and connections with the interfaces of two hosts.
#pragma once

#include <cstdint>
#include <utility>

#include "algorithms/builder.h"
#include "algorithms/gloo/schedules.h"
#include "algorithms/gloo/segments.h"

namespace railyard::algorithms::gloo {

class GlooBuilder {
 public:
  explicit GlooBuilder(const GlooInput& input) : input_(input), builder_(input.call, input.ranks) {}

  ScheduleBuilder& schedule() { return builder_; }

  // `work` is what it moves; `position`, where it enters the blocks of its operations, is the rank
  // unless given.
  struct LaneSpec {
    std::uint32_t rank = 0;
    sim::LaneRole role = sim::LaneRole::gloo_move;
    std::uint16_t phase = 0;
    sim::ProgramId program{};
    std::uint32_t work = 0;
    std::int64_t position = -1;
  };
  sim::LaneId lane(const LaneSpec& spec) {
    sim::Lane lane;
    lane.rank = spec.rank;
    lane.position = spec.position < 0 ? spec.rank : static_cast<std::uint32_t>(spec.position);
    lane.role = spec.role;
    lane.batch = spec.phase;
    lane.program = spec.program;
    lane.work = spec.work;
    return builder_.add_lane(lane);
  }

  // Two processes of one host exchange over its loopback interface.
  void connect(std::pair<sim::LaneId, std::uint32_t> from,
               std::pair<sim::LaneId, std::uint32_t> to) {
    NicPair nics;
    if (input_.hosts[from.second] != input_.hosts[to.second])
      nics = {input_.nics[from.second], input_.nics[to.second]};
    builder_.connect(from.first, to.first, nics);
  }

  sim::Schedule finish() && { return std::move(builder_).finish(kInFlight); }

 private:
  const GlooInput& input_;
  ScheduleBuilder builder_;
};

// The segments of the whole buffer as the blocks of one loop.
inline sim::Work segment_work(const GlooInput& input, const Segments& segments) {
  sim::Work work;
  work.layout = sim::Layout::rotating;
  work.size = input.call.size;
  work.chunk = sim::bytes(segments.size);
  work.align = segments.size;  // the last loop is no shorter either
  work.blocks = segments.count;
  return work;
}

}  // namespace railyard::algorithms::gloo
