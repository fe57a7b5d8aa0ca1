// The way of raw bytes from one GPU of the job to another: through the NICs nearest to both where
// they do not share a node or NVLink domain.
#pragma once

#include <vector>

#include "algorithms/places.h"
#include "scenarios/bind.h"
#include "sim/flow.h"

namespace railyard::scenarios {

struct GpuPath {
  std::vector<sim::ResourceUse> uses;
  sim::Duration latency{};
  bool network = false;  // it passes NICs
};

enum class PathKind {
  direct,  // GPU to GPU, or to its NIC
  hosts    // across nodes through the memory of both hosts, as without GPUDirect
};

// The CPU with the shortest route from a GPU; invalid where the node has none.
sim::DeviceId nearest_cpu(const sim::Topology& topology, sim::DeviceId gpu);

// Between two ranks of the world, whose places are given.
Result<GpuPath> gpu_path(const Bound& bound, const algorithms::Places& places, std::uint32_t from,
                         std::uint32_t to, PathKind kind = PathKind::direct);

// Between any two members of a group.
struct GroupPlaces {
  const sim::Group& group;
  const algorithms::Places& places;
};
Result<GpuPath> gpu_path(const Bound& bound, const GroupPlaces& of, std::uint32_t from,
                         std::uint32_t to, PathKind kind = PathKind::direct);

}  // namespace railyard::scenarios
