// Places: where the ranks of a group sit, as the channel and point-to-point rules need it.
//
// A *place* is what NCCL calls a node: all GPUs of the group in one NVLink domain
// (Node::nvlink_domain), so an NVL72 rack is one place though its trays are many Topology::nodes.
// Places are numbered by their lowest group rank. A NIC's *rail* is its index among the NICs of its
// place (nodes in order, then local index).
// The NICs nearest a GPU are found by hops over links other than NVLink and the fabric. Cost:
// O(devices + links) plus one walk over a node's own devices for each GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/shape.h"
#include "sim/collective.h"
#include "sim/result.h"
#include "sim/topology.h"

namespace railyard::algorithms {

struct Place {
  std::vector<std::uint32_t> ranks;  // group ranks, by (node, local index of the GPU)
  std::vector<sim::DeviceId> nics;   // by rail
  std::vector<std::uint32_t> rails;  // rails that are nearest to one of its GPUs, ascending
};

struct Places {
  std::vector<Place> places;
  std::vector<std::uint32_t> place_of;                    // by group rank
  std::vector<std::vector<std::uint32_t>> nearest_rails;  // by group rank; ascending
  // Those of them to which no other rank of the place is nearer: where few NICs are cabled, a GPU
  // far from all of them has a nearest rail and is no gateway to it.
  std::vector<std::vector<std::uint32_t>> gateway_rails;  // by group rank; ascending
  // NVLinks join all of the group's GPUs in a place, directly, by a switch or by one another; false
  // for bridged pairs.
  bool nvlink = false;
  bool nvswitch = false;  // one of the GPUs is on an NVSwitch
  bool pcie = false;      // one of the GPUs has a PCIe or C2C link
};

// Errors: an empty group; a member that is no GPU of the topology; a GPU that is there twice.
sim::Result<Places> find_places(const sim::Topology& topology, const sim::Group& group);

CommShape shape_of(const Places& places);

// Whether `rail` is among the nearest of `rank`.
bool is_nearest(const Places& places, std::uint32_t rank, std::uint32_t rail);
bool is_gateway(const Places& places, std::uint32_t rank, std::uint32_t rail);

}  // namespace railyard::algorithms
