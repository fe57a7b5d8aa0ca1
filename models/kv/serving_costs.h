// What batches cost on a tensor-parallel group of GPUs: a roofline of the whole model, and the two
// AllReduces of every layer, whose time is asked of whoever can simulate them.
//
//   prefill  max(sum of prefill_flops / (T x E x peak), weights / (T x M)) + 2 L a(tokens) + o
//   decode   max(decode_flops / (T x E x peak), (touched weights + cached KV) / (T x M))
//              + 2 L a(sequences) + o
//
// T = ranks, E = gemm_efficiency, M = hbm_bandwidth x memory_efficiency, L = layers, a(n) =
// AllReduce of n x width elements, o = step overhead of the server (scheduler, sampling, launches).
// The cache of a rank that holds replicated heads is read as often as it is held.
#pragma once

#include <functional>
#include <vector>

#include "models/kv/serving.h"
#include "sim/parameters.h"

namespace railyard::models {

class RooflineServingCosts final : public ServingCosts {
 public:
  struct Group {
    std::int64_t ranks = 1;
    // AllReduce of so many bytes over the group; unused with one rank.
    std::function<sim::Duration(sim::Bytes)> all_reduce;
  };
  struct Options {
    double peak = 0;  // FLOP/s of one GPU in the compute precision
    sim::Duration step_overhead{};
    std::int64_t element_size = 2;
  };
  RooflineServingCosts(KvModel model, const sim::GpuParameters& gpu, Options options, Group prefill,
                       Group decode);

  [[nodiscard]] sim::Duration prefill(const std::vector<std::int64_t>& tokens) override;
  [[nodiscard]] sim::Duration decode(std::int64_t sequences, std::int64_t cached_tokens) override;

 private:
  [[nodiscard]] sim::Duration roofline(double flops, double bytes, const Group& group) const;
  [[nodiscard]] sim::Duration reductions(std::int64_t tokens, const Group& group) const;

  KvModel model_;
  sim::GpuParameters gpu_;
  Options options_;
  Group prefill_;
  Group decode_;
};

}  // namespace railyard::models
