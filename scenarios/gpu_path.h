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
  bool network = false;   // it passes NICs
  sim::DeviceId nic_out;  // those, if it does
  sim::DeviceId nic_in;
};

enum class PathKind {
  direct,  // GPU to GPU, or to its NIC
  hosts    // through the memory of both hosts, as without GPUDirect
};

struct PathChoice {
  PathKind kind = PathKind::direct;
  bool network = false;      // through NICs also where the GPUs share a node
  bool every_nic = false;    // of their places, else those nearest to each
  std::uint32_t stripe = 0;  // the how many-th of those NICs, modulo their number
};

// The CPU with the shortest route from a GPU; invalid where the node has none.
sim::DeviceId nearest_cpu(const sim::Topology& topology, sim::DeviceId gpu);

// Between two ranks of the world, whose places are given.
Result<GpuPath> gpu_path(const Bound& bound, const algorithms::Places& places, std::uint32_t from,
                         std::uint32_t to, const PathChoice& choice = {});

// Between any two members of a group.
struct GroupPlaces {
  const sim::Group& group;
  const algorithms::Places& places;
};
Result<GpuPath> gpu_path(const Bound& bound, const GroupPlaces& of, std::uint32_t from,
                         std::uint32_t to, const PathChoice& choice = {});

// From a GPU into the memory of its host, or back.
Result<GpuPath> host_path(const Bound& bound, std::uint32_t rank, bool to_host);

// How many NICs a rank may use: as `stripe` counts them.
std::size_t nic_count(const algorithms::Places& places, std::uint32_t rank, bool every_nic);

}  // namespace railyard::scenarios
