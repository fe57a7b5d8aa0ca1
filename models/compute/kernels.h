// GPU kernels from work: a roofline with stated efficiencies.
//
//   time = max( FLOPs / (efficiency x peak), bytes / (memory_efficiency x hbm_bandwidth),
//               min_kernel_time )
//
// The peak is that of the compute precision (TF32 falls back to FP32, FP16 and BF16 use the tensor
// peak); the efficiency is gemm_efficiency or conv_efficiency by the layer's kind. A kernel is
// bound by compute or by memory, whichever term is larger, and slows down accordingly beside a
// collective.
//
// Backward of a layer: dgrad then wgrad, one kernel each; autocast adds one cast kernel per layer
// and forward (reads FP32 weights, writes half). Optimizers are fused: bytes per fp32 parameter 12
// (SGD: read gradient and weight, write weight), 20 (momentum), 28 (Adam), in multi-tensor
// launches.
//
// A layer with measured times takes those, times the samples: forward, and backward in one kernel.
//
// Source: facts of public models and traces (kernel counts per layer, bytes per parameter). Stops
// being valid for kernels too small to fill the GPU (no wave quantisation), unfused attention, and
// framework-specific fusions.
#pragma once

#include <cstdint>

#include "models/nn/network.h"
#include "sim/gpu.h"
#include "sim/parameters.h"

namespace railyard::models {

struct KernelTime {
  sim::Duration time{};
  sim::KernelBound bound = sim::KernelBound::memory;
};

class KernelModel {
 public:
  KernelModel(const sim::GpuParameters& gpu, Dtype compute) : gpu_(gpu), compute_(compute) {}

  [[nodiscard]] KernelTime forward(const Layer& layer, std::int64_t samples) const;
  [[nodiscard]] KernelTime dgrad(const Layer& layer, std::int64_t samples) const;
  [[nodiscard]] KernelTime wgrad(const Layer& layer, std::int64_t samples) const;
  [[nodiscard]] double peak() const;  // FLOP/s in the compute precision
  // A kernel that only moves memory: copies, casts, optimizer steps. Bytes read plus written.
  [[nodiscard]] KernelTime move(Bytes traffic) const;

 private:
  [[nodiscard]] static KernelTime measured(const Layer& layer, sim::Duration time,
                                           std::int64_t samples);
  [[nodiscard]] KernelTime at_least_minimum(KernelTime time) const;
  [[nodiscard]] KernelTime roofline(Flops work, Bytes traffic, LayerKind kind) const;

  sim::GpuParameters gpu_;
  Dtype compute_;
};

}  // namespace railyard::models
