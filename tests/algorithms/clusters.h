// Small topologies built by hand, without topologies/: what the tests of this folder run on.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collective.h"
#include "sim/topology.h"
#include "sim/units.h"

namespace railyard::test {

struct ClusterSpec {
  std::uint32_t nodes = 1;
  std::uint32_t gpus = 8;  // per node
  std::uint32_t nics = 0;  // per node; NIC i hangs off the PCIe switch of GPU i * gpus / nics
  bool nvswitch = true;
  std::uint32_t gpus_per_pcie_switch = 1;
  std::uint32_t nodes_per_domain = 1;  // of NVLink
};

// GPU - PCIe switch - CPU, NICs on the PCIe switches, one fabric switch per rail.
sim::Topology cluster(const ClusterSpec& spec);

// `gpus` nodes of one GPU each, all directly on one switch.
sim::Topology gpus_on_a_switch(std::uint32_t gpus);

// All GPUs, node by node.
sim::Group everyone(const sim::Topology& topology);

// `count` channels over `ranks` in a random order, with random trees (up to three children). Fixed
// by `seed`.
sim::Channels random_channels(std::uint32_t ranks, std::uint32_t count, std::uint64_t seed);

}  // namespace railyard::test
