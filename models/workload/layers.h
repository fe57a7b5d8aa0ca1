// The kernels of a network's layers, as every training scheme launches them.
#pragma once

#include <vector>

#include "models/compute/kernels.h"
#include "models/nn/network.h"
#include "sim/gpu.h"
#include "sim/trace.h"

namespace railyard::models {

struct LayerOptions {
  std::int64_t samples = 1;  // per GPU and pass
  bool autocast = false;     // casts of fp32 weights before each layer
  bool recompute = false;    // activation checkpointing: each layer's forward runs again
  Dtype compute = Dtype::fp32;
};

sim::Kernel named(const KernelTime& time, std::uint32_t name);

// Appends the kernels of one layer: its cast and forward; recomputed forward, dgrad, wgrad.
void add_forward(const Layer& layer, const LayerOptions& options, const KernelModel& kernels,
                 sim::Trace& trace, std::vector<sim::Kernel>& out);
void add_backward(const Layer& layer, const LayerOptions& options, const KernelModel& kernels,
                  sim::Trace& trace, std::vector<sim::Kernel>& out);

// What kernels take together when nothing slows them down.
sim::Duration alone(const std::vector<sim::Kernel>& kernels);

// A fused optimizer's launches over `tensors` parameters that move `traffic` bytes in all.
std::vector<sim::Kernel> optimizer_kernels(std::size_t tensors, Bytes traffic,
                                           const KernelModel& kernels, sim::Trace& trace);

// The work of a whole batch must fit the 63 bits of Flops and Bytes.
Result<void> check_batch(const NeuralNetwork& network, std::int64_t samples);

}  // namespace railyard::models
