#include "models/kv/serving_costs.h"

#include <algorithm>
#include <cmath>

namespace railyard::models {

RooflineServingCosts::RooflineServingCosts(KvModel model, const sim::GpuParameters& gpu,
                                           Options options, Group prefill, Group decode)
    : model_(std::move(model)),
      gpu_(gpu),
      options_(options),
      prefill_(std::move(prefill)),
      decode_(std::move(decode)) {}

sim::Duration RooflineServingCosts::roofline(double flops, double bytes, const Group& group) const {
  const auto ranks = static_cast<double>(group.ranks);
  const double memory = static_cast<double>(gpu_.hbm_bandwidth.raw()) / 65'536;
  const double seconds = std::max(flops / (ranks * gpu_.gemm_efficiency * options_.peak),
                                  bytes / (ranks * gpu_.memory_efficiency * memory));
  return sim::Duration(std::llround(seconds * 1e12));
}

sim::Duration RooflineServingCosts::reductions(std::int64_t tokens, const Group& group) const {
  if (group.ranks <= 1) return {};
  return group.all_reduce(sim::bytes(tokens * model_.width * options_.element_size)) * 2 *
         model_.layers;
}

sim::Duration RooflineServingCosts::prefill(const std::vector<std::int64_t>& tokens) {
  double flops = 0;
  std::int64_t sum = 0;
  for (const std::int64_t each : tokens) {
    flops += prefill_flops(model_, each);
    sum += each;
  }
  const double weights =
      touched_parameters(model_, sum) * static_cast<double>(options_.element_size);
  return roofline(flops, weights, prefill_) + reductions(sum, prefill_) + options_.step_overhead;
}

sim::Duration RooflineServingCosts::decode(std::int64_t sequences, std::int64_t cached_tokens) {
  const auto per_token =
      static_cast<double>(kv_bytes_per_token(model_, decode_.ranks, options_.element_size).raw());
  const double bytes =
      touched_parameters(model_, sequences) * static_cast<double>(options_.element_size) +
      per_token * static_cast<double>(decode_.ranks) * static_cast<double>(cached_tokens);
  return roofline(decode_flops(model_, sequences, cached_tokens), bytes, decode_) +
         reductions(sequences, decode_) + options_.step_overhead;
}

}  // namespace railyard::models
