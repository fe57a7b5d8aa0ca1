// What the topology tests share: building with a check, and a slow router as an oracle.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "topologies/cluster.h"

namespace railyard::topologies::test {

// Builds or fails the test with the error's text.
sim::Topology must_build(const ClusterSpec& spec);
std::string build_error(const ClusterSpec& spec);

ClusterSpec cluster(const std::string& machine, std::uint32_t nodes,
                    FabricKind kind = FabricKind::none);

sim::DeviceId device(const sim::Topology& topology, const std::string& name);
sim::Route must_route(const sim::Topology& topology, const std::string& from, const std::string& to,
                      std::uint64_t hash = 0);
// "a->b b->c", for comparison with golden text.
std::string route_text(const sim::Topology& topology, const sim::Route& route);

// Consecutive links from `from` to `to`, no device twice.
bool is_path(const sim::Topology& topology, const sim::Route& route, sim::DeviceId from,
             sim::DeviceId to);

// Links on the shortest way between two fabric endpoints through fabric switches only, by plain
// breadth-first search over every link; 0 if there is none.
class Oracle {
 public:
  explicit Oracle(const sim::Topology& topology);
  [[nodiscard]] std::vector<std::size_t> distances(sim::DeviceId from) const;

 private:
  const sim::Topology& topology_;
  std::vector<std::vector<std::size_t>> out_;
};

// Every fabric endpoint (NIC, or GPU of a flat machine).
std::vector<sim::DeviceId> endpoints(const sim::Topology& topology);

}  // namespace railyard::topologies::test
