// Independent counts over a schedule: walks every lane's program slice by slice, with the plain
// definition of sim/schedule.h and none of the checkers' code.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/schedule.h"

namespace railyard::test {

// Sizes of all slices that a lane sends (or receives) on each of its connections, in order.
inline std::vector<sim::Bytes> lane_slices(const sim::Schedule& schedule, const sim::Lane& lane,
                                           bool sending) {
  std::vector<sim::Bytes> slices;
  const sim::Work& work = schedule.works[lane.work];
  const auto add = [&](const sim::Op& op, std::uint32_t loop, std::uint32_t repeat) {
    const std::int64_t blocks = work.blocks;
    const std::int64_t at = op.block_base + std::int64_t{lane.position} * op.block_per_position +
                            std::int64_t{repeat} * op.block_step;
    const auto block = static_cast<std::uint32_t>((at % blocks + blocks) % blocks);
    const sim::Region region = block_region(work, loop, block);
    for (std::uint32_t s = 0; s < work.slices_per_chunk; ++s)
      slices.push_back(slice_region(work, region, s).size);
  };
  for (std::uint32_t loop = 0; loop < loop_count(work); ++loop)
    for (const sim::Op& op : schedule.programs[lane.program.index()]) {
      if (!(sending ? sends(op.primitive) : receives(op.primitive))) continue;
      for (std::uint32_t repeat = 0; repeat < op.repeat; ++repeat) add(op, loop, repeat);
    }
  return slices;
}

// Whether the ends of every connection move the same slices. For lanes whose operations use all of
// their slots, as all of algorithms/ do.
inline bool slices_agree(const sim::Schedule& schedule) {
  for (const sim::Connection& connection : schedule.connections)
    if (lane_slices(schedule, schedule.lanes[connection.from.index()], true) !=
        lane_slices(schedule, schedule.lanes[connection.to.index()], false))
      return false;
  return true;
}

// Payload on each (channel, from rank, to rank).
class LinkBytes {
 public:
  explicit LinkBytes(const sim::Schedule& schedule) {
    for (const sim::Connection& connection : schedule.connections) {
      const sim::Lane& from = schedule.lanes[connection.from.index()];
      const sim::Lane& to = schedule.lanes[connection.to.index()];
      sim::Bytes& link = links_[{from.channel, from.rank, to.rank}];
      for (const sim::Bytes slice : lane_slices(schedule, from, true)) link += slice;
    }
  }
  [[nodiscard]] sim::Bytes on(std::uint32_t channel, std::uint32_t from, std::uint32_t to) const {
    const auto found = links_.find({channel, from, to});
    return found == links_.end() ? sim::Bytes{} : found->second;
  }
  [[nodiscard]] sim::Bytes total() const {
    sim::Bytes sum;
    for (const auto& link : links_) sum += link.second;
    return sum;
  }
  [[nodiscard]] std::size_t links() const { return links_.size(); }

 private:
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, sim::Bytes> links_;
};

}  // namespace railyard::test
