// torch.nn.SyncBatchNorm: batch statistics over all ranks, with DDP's own process group.
//
//   forward   local mean and inverse deviation (x read once); AllGather of them and the count,
//             (2C + 1) fp32 values of C channels; the counts of empty inputs are masked out, for
//             which the HOST waits (since 1.12); statistics merged, x normalised (read, written)
//   backward  sums over dy and x, which are the gradients of weight and bias too (both read);
//             AllReduce of 2C fp32 values; dx (dy and x read, dx written)
//
// All on the critical path, none in a bucket, one after the other: the compute stream waits for
// every one. They share the communicator of the buckets, so one in backward also waits for whatever
// bucket was launched before it.
// Source: torch/nn/modules/_functions.py of 1.13 and 2.x. A network's norm layers are batch norms
// if its fp32 buffers are their running means and variances, 2C for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/compute/kernels.h"
#include "models/ddp/buckets.h"
#include "models/ddp/calls.h"
#include "models/nn/network.h"
#include "models/workload/layers.h"
#include "sim/gpu.h"
#include "sim/trace.h"

namespace railyard::models {

// A collective in the midst of a layer's kernels.
struct NormSync {
  std::size_t after = 0;   // so many kernels of the layer
  std::uint32_t norm = 0;  // of DdpCollectives::norm_forward or norm_backward
  bool forward = true;
  bool host_waits = false;
};

struct SyncedNorm {
  std::size_t layer = 0;  // of the network
  std::int64_t channels = 0;
};

// Batch norms in execution order. Error: there are none, or they were measured as a whole.
Result<std::vector<SyncedNorm>> synced_norms(const NeuralNetwork& network);

DdpCall norm_forward_call(const SyncedNorm& norm);
DdpCall norm_backward_call(const SyncedNorm& norm);

// Writes the kernels of such layers and the collectives between them.
struct NormWriter {
  LayerOptions layers{};
  const KernelModel* kernels = nullptr;
  sim::Trace* trace = nullptr;
  std::int64_t ranks = 1;
  TorchVersion version{};

  // A pass of one layer, appended to.
  struct Pass {
    std::vector<sim::Kernel>& kernels;
    std::vector<NormSync>& syncs;
  };
  // `number` of the norm in execution order.
  void forward(const Layer& layer, std::int64_t channels, std::uint32_t number, Pass out) const;
  void backward(const Layer& layer, std::int64_t channels, std::uint32_t number, Pass out) const;
};

}  // namespace railyard::models
