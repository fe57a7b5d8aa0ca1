// ScheduleBuilder: collects programs, works, lanes and connections and lays out the slot table.
// What every algorithm here is built from: a BuildInput in, a sim::Schedule out.
// Invariant: a lane's incoming (outgoing) slots are in the order of the connect() calls.
// Cost: O(lanes + connections).
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/shape.h"
#include "algorithms/split.h"
#include "sim/collective.h"
#include "sim/schedule.h"

namespace railyard::algorithms {

// A call that has passed the communicator's checks, on its channels. References outlive the build.
struct BuildInput {
  const sim::CollectiveCall& call;
  const sim::Channels& channels;
  CommShape shape;
  std::vector<Part> parts;
};

// What a connection passes on its way from GPU to GPU; see sim::NetEdge.
struct NicPair {
  sim::DeviceId out;
  sim::DeviceId in;
  sim::DeviceId relay{};  // PXN: the sender's GPU next to `out`
  sim::HostStops host{};
};

// The NICs of a channel's edges, by (from, to); invalid ids for edges straight from GPU to GPU.
class NicTable {
 public:
  explicit NicTable(const sim::Channel& channel);
  [[nodiscard]] NicPair find(std::uint32_t from, std::uint32_t to) const;

 private:
  std::vector<sim::NetEdge> edges_;  // sorted by (from, to)
};

class ScheduleBuilder {
 public:
  ScheduleBuilder(const sim::CollectiveCall& call, std::uint32_t ranks);

  sim::ProgramId add_program(sim::Program program);
  std::uint32_t add_work(const sim::Work& work);
  std::uint32_t add_block_order(std::vector<std::uint32_t> order);
  // The slot ranges of `lane` are filled in by finish().
  sim::LaneId add_lane(const sim::Lane& lane);
  void connect(sim::LaneId from, sim::LaneId to, const NicPair& nics);
  // Lanes of one rank: `to` can wait for `from`.
  void signal(sim::LaneId from, sim::LaneId to);
  [[nodiscard]] sim::Schedule finish(std::uint32_t fifo_slices) &&;

 private:
  void lay_out_slots();
  sim::Schedule schedule_;
  std::vector<bool> channel_used_;
};

}  // namespace railyard::algorithms
