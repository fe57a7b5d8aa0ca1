// Communicator: the collectives of one group of ranks as schedules; sim::CollectiveSource for a
// (topology, group, channels). Calls are checked, then built once and kept: equal calls share one
// schedule. Nothing of the topology is kept. Not for concurrent use.
//
//   RAILYARD_ASSIGN(Channels channels, default_channels(topology, group, {}));
//   RAILYARD_ASSIGN(auto communicator, Communicator::create(topology, group, channels));
//   RAILYARD_ASSIGN(auto schedule, communicator->schedule({.size = 64_MiB}));
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "algorithms/point_to_point.h"
#include "algorithms/shape.h"
#include "algorithms/split.h"
#include "sim/collective.h"
#include "sim/result.h"
#include "sim/schedule.h"
#include "sim/topology.h"

namespace railyard::algorithms {

struct CommunicatorOptions {
  LaunchLimits limits;
  P2pOptions p2p;
  NvlsChunks nvls_chunks{};
  FifoBytes fifos{};
};

class Communicator final : public sim::CollectiveSource {
 public:
  // Errors: an empty group; a member that is no GPU of the topology, or there twice; channels that
  // do not fit the group (see check_channels()).
  static sim::Result<std::unique_ptr<Communicator>> create(const sim::Topology& topology,
                                                           const sim::Group& group,
                                                           sim::Channels channels,
                                                           const CommunicatorOptions& options = {});

  // Errors: a size that is negative or no whole number of elements (AllToAll: of elements per
  // peer); an element of other than 1, 2, 4 or 8 bytes; a root out of range; an algorithm that the
  // collective or the group does not have (algorithms/availability.h); sends and receives
  // (AllToAll, Gather, Scatter, SendRecv) under LL128; AllToAll and SendRecv in place.
  sim::Result<std::shared_ptr<const sim::Schedule>> schedule(
      const sim::CollectiveCall& call) override;

  // What NCCL uses for the sends and receives of a call (AllToAll, Gather, Scatter, SendRecv).
  [[nodiscard]] sim::Protocol point_to_point_protocol(const sim::CollectiveCall& call) const;

  // One SM per channel used; none for the copy of a one-rank communicator.
  [[nodiscard]] std::uint32_t sm_count(const sim::Schedule& schedule) const override;

  [[nodiscard]] const CommShape& shape() const { return shape_; }
  [[nodiscard]] const sim::Channels& channels() const { return channels_; }

 private:
  using Key = std::tuple<sim::Collective, sim::Bytes, std::int64_t, std::uint32_t, sim::Algorithm,
                         sim::Protocol, std::uint32_t, bool>;

  Communicator(CommShape shape, sim::Channels channels, LaunchLimits limits, P2pLayout p2p);
  [[nodiscard]] sim::Result<void> check(const sim::CollectiveCall& call) const;
  [[nodiscard]] sim::Result<sim::Schedule> build(const sim::CollectiveCall& call) const;

  CommShape shape_;
  sim::Channels channels_;
  LaunchLimits limits_;
  P2pLayout p2p_;
  std::map<Key, std::shared_ptr<const sim::Schedule>> cache_;
};

}  // namespace railyard::algorithms
