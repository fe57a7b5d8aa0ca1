// GlooCommunicator: Gloo's collectives of one group of processes as schedules; the
// sim::CollectiveSource of a job whose back end is Gloo. Every process stands where a rank of the
// group stands, its data in the host's memory; all processes of a host share one interface, the
// host's first NIC. Calls are checked, then built once and kept. Not for concurrent use.
//
//   RAILYARD_ASSIGN(auto communicator, GlooCommunicator::create(topology, group));
//   RAILYARD_ASSIGN(auto schedule, communicator->schedule({.algorithm = Algorithm::gloo, ...}));
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "sim/collective.h"
#include "sim/result.h"
#include "sim/schedule.h"
#include "sim/topology.h"

namespace railyard::algorithms {

class GlooCommunicator final : public sim::CollectiveSource {
 public:
  // Errors: an empty group; a member that is on no GPU (or process) of the topology.
  static sim::Result<std::unique_ptr<GlooCommunicator>> create(const sim::Topology& topology,
                                                               const sim::Group& group);

  // AllReduce (gloo, gloo_bcube), AllGather, Broadcast, Reduce (gloo). Errors: another collective
  // or algorithm; a size that is negative or no whole number of elements; a root out of range.
  sim::Result<std::shared_ptr<const sim::Schedule>> schedule(
      const sim::CollectiveCall& call) override;

  // None: Gloo runs on processors.
  [[nodiscard]] std::uint32_t sm_count(const sim::Schedule&) const override { return 0; }

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(hosts_.size()); }

 private:
  using Key =
      std::tuple<sim::Collective, sim::Bytes, std::int64_t, std::uint32_t, sim::Algorithm, bool>;

  GlooCommunicator(std::vector<std::uint32_t> hosts, std::vector<sim::DeviceId> nics);
  [[nodiscard]] sim::Result<void> check(const sim::CollectiveCall& call) const;
  [[nodiscard]] sim::Schedule build(const sim::CollectiveCall& call) const;

  std::vector<std::uint32_t> hosts_;  // by rank
  std::vector<sim::DeviceId> nics_;   // by rank
  std::map<Key, std::shared_ptr<const sim::Schedule>> cache_;
};

}  // namespace railyard::algorithms
