#include "models/compute/kernels.h"

#include <algorithm>

namespace railyard::models {

double KernelModel::peak() const {
  switch (compute_) {
    case Dtype::fp16:
    case Dtype::bf16: return gpu_.peak_fp16.per_second;
    case Dtype::tf32:
      return gpu_.peak_tf32.per_second > 0 ? gpu_.peak_tf32.per_second : gpu_.peak_fp32.per_second;
    default: return gpu_.peak_fp32.per_second;
  }
}

// Without work there is no kernel.
KernelTime KernelModel::at_least_minimum(KernelTime time) const {
  if (time.time.count() > 0) time.time = std::max(time.time, gpu_.min_kernel_time);
  return time;
}

KernelTime KernelModel::move(Bytes traffic) const { return roofline({}, traffic, {}); }

KernelTime KernelModel::roofline(Flops work, Bytes traffic, LayerKind kind) const {
  const sim::Bandwidth rate = sim::scale(gpu_.hbm_bandwidth, gpu_.memory_efficiency);
  const sim::Duration memory = sim::transfer_time(traffic, rate);
  if (work.raw() == 0) return at_least_minimum({memory, sim::KernelBound::memory});
  const double efficiency = kind == LayerKind::conv ? gpu_.conv_efficiency : gpu_.gemm_efficiency;
  const sim::Duration arithmetic = sim::compute_time(work, peak() * efficiency);
  if (arithmetic < memory) return at_least_minimum({memory, sim::KernelBound::memory});
  return at_least_minimum({arithmetic, sim::KernelBound::compute});
}

KernelTime KernelModel::measured(const Layer& layer, sim::Duration time, std::int64_t samples) {
  const bool products = layer.kind == LayerKind::gemm || layer.kind == LayerKind::conv ||
                        layer.kind == LayerKind::attention;
  return {time * samples, products ? sim::KernelBound::compute : sim::KernelBound::memory};
}

KernelTime KernelModel::forward(const Layer& layer, std::int64_t samples) const {
  if (layer.measured) return measured(layer, layer.measured->forward.time, samples);
  return roofline(layer.work.forward_flops * samples, forward_traffic(layer, samples, compute_),
                  layer.kind);
}

KernelTime KernelModel::dgrad(const Layer& layer, std::int64_t samples) const {
  if (layer.measured) return {};
  return roofline(layer.work.dgrad_flops * samples, dgrad_traffic(layer, samples, compute_),
                  layer.kind);
}

KernelTime KernelModel::wgrad(const Layer& layer, std::int64_t samples) const {
  if (layer.measured) return measured(layer, layer.measured->backward.time, samples);
  return roofline(layer.work.wgrad_flops * samples, wgrad_traffic(layer, samples, compute_),
                  layer.kind);
}

}  // namespace railyard::models
