// Placement: which rank of the job runs on which GPU, and which ranks form a group.
//
//   PlacementSpec spec;                                  // every GPU, host by host
//   RAILYARD_ASSIGN(const sim::Group world, place_world(topology, spec));
//   RAILYARD_ASSIGN(const auto dp, sub_groups(world, {.name = "dp", .size = 8, .stride = 4}));
//   dp[1] = ranks 1, 5, 9, ..., 29
//
// Cost: O(ranks).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collective.h"
#include "sim/enum_table.h"
#include "sim/result.h"
#include "sim/topology.h"

namespace railyard::topologies {

enum class PlacementOrder {
  host_major,  // ranks 0..g-1 on the first node, as torchrun does
  round_robin  // rank r on node r mod n, as mpirun --map-by node does
};

struct PlacementSpec {
  PlacementOrder order = PlacementOrder::host_major;
  std::uint32_t ranks = 0;             // world size; 0 = all the GPUs selected below
  std::uint32_t gpus_per_node = 0;     // the first n of every node; 0 = all
  std::vector<std::uint32_t> gpus;     // or these local indices, in this order
  std::vector<std::uint32_t> nodes;    // these nodes, in this order; empty = all
  std::uint32_t gpus_per_process = 1;  // processes are made of neighbouring ranks of a node
  bool thread_per_gpu = false;         // of a process; false: one thread launches on all its GPUs
};

// Groups of `size` ranks, `stride` apart. Each run of size x stride ranks holds `stride` groups;
// the world must be a multiple of that run. stride 1: neighbours (tensor parallel).
struct SubGroupSpec {
  std::string name;
  std::uint32_t size = 0;
  std::uint32_t stride = 1;
};

// The world group, in rank order.
sim::Result<sim::Group> place_world(const sim::Topology& topology, const PlacementSpec& spec);

// All groups of a kind; they partition the world, ordered by their first rank.
sim::Result<std::vector<sim::Group>> sub_groups(const sim::Group& world, const SubGroupSpec& spec);

// The members of the given world ranks, in that order.
sim::Result<sim::Group> pick_ranks(const sim::Group& world,
                                   const std::vector<std::uint32_t>& ranks);

}  // namespace railyard::topologies

namespace railyard::sim {
template <>
struct EnumTable<topologies::PlacementOrder> {
  static constexpr std::string_view kind = "placement order";
  static constexpr std::array entries{
      EnumEntry{topologies::PlacementOrder::host_major, "host-major"},
      EnumEntry{topologies::PlacementOrder::round_robin, "round-robin"}};
};
}  // namespace railyard::sim
