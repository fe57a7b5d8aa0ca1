// All mutable state that the parts of one run share: clock, queue and network. No globals: any
// number of simulations live side by side in one process and do not see each other.
#pragma once

#include <vector>

#include "sim/cost.h"
#include "sim/event_queue.h"
#include "sim/network.h"
#include "sim/topology.h"

namespace railyard::sim {

class Simulation {
 public:
  // Network resource i is topology link i, at its achievable rate.
  Simulation(const Topology& topology, const CostModel& costs) : network_(queue_) {
    queue_.set_settler(&network_);
    for (const Link& link : topology.links)
      network_.add_resource(costs.link_capacity(link), link.multiplicity);
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  [[nodiscard]] EventQueue& queue() { return queue_; }
  [[nodiscard]] Network& network() { return network_; }
  [[nodiscard]] Time now() const { return queue_.now(); }

 private:
  EventQueue queue_;
  Network network_;
};

}  // namespace railyard::sim
