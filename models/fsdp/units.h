// The units that a sharded network is made of, as both FullyShardedDataParallel and fully_shard
// wrap them: one per block (`layers.7`, `h.3`, `encoder.layer.11`: the modules a transformer wrap
// policy names), and the root with all that is left.
//
//   segment   kernels that run one after the other under one unit; a unit that is entered once has
//             one segment, the root has one before, and one behind the blocks
//
// Units are numbered in the order in which the forward pass enters them; the root is 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/nn/network.h"
#include "models/workload/layers.h"

namespace railyard::models {

// Groups of both programs, as GroupCall::group counts them.
inline constexpr std::uint32_t kShardGroup = 0;    // over which a unit is sharded
inline constexpr std::uint32_t kReplicaGroup = 1;  // of ranks that hold the same shard

struct ShardUnit {
  std::string name;                       // "root", "layers.7"
  std::vector<std::uint32_t> parameters;  // indices, registration order
};

struct Segment {
  std::uint32_t unit = 0;
  std::vector<sim::Kernel> kernels;
  bool enters = false;  // the first of its unit in this direction
  bool leaves = false;  // the last
};

struct ShardedLayers {
  std::vector<ShardUnit> units;
  std::vector<Segment> forward;
  std::vector<Segment> backward;
};

// A parameter that two units use, or none, is the root's. Error: a batch too large to count.
Result<ShardedLayers> shard_layers(const NeuralNetwork& network, const LayerOptions& options,
                                   const KernelModel& kernels, sim::Trace& trace);

// The units alone.
std::vector<ShardUnit> shard_units(const NeuralNetwork& network);

// The block a name belongs to: everything up to its first whole-number component; "" = none.
std::string block_of(const std::string& name);

}  // namespace railyard::models
