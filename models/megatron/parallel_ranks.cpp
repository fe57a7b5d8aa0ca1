#include "models/megatron/parallel_ranks.h"

#include <fmt/format.h>

namespace railyard::models {
namespace {

sim::Error wrong(const char* key, std::string message) {
  return sim::bad_input(std::move(message), key);
}

// `count` ranks from `first` on, `stride` apart.
std::vector<std::uint32_t> strided(std::int64_t first, std::int64_t count, std::int64_t stride) {
  std::vector<std::uint32_t> ranks;
  for (std::int64_t i = 0; i < count; ++i)
    ranks.push_back(static_cast<std::uint32_t>(first + i * stride));
  return ranks;
}

// The groups of one coordinate: every run of size x stride ranks holds `stride` of them.
void add_division(const ParallelSizes& sizes, RankGroup like, std::int64_t size,
                  std::int64_t stride, std::vector<RankGroup>& out) {
  const bool by_stage = like.kind == ParallelGroup::data || like.kind == ParallelGroup::expert_data;
  if (size == 1) return;
  for (std::int64_t run = 0; run < sizes.world; run += size * stride)
    for (std::int64_t i = 0; i < stride; ++i) {
      like.number = by_stage ? run / sizes.stage_ranks() : 0;
      like.ranks = strided(run + i, size, stride);
      out.push_back(like);
    }
}

void add_pairs(const ParallelSizes& sizes, std::vector<RankGroup>& out) {
  const std::int64_t block = sizes.stage_ranks();
  const bool ring = sizes.virtual_pipeline > 1;
  const std::int64_t pairs = sizes.pipeline - (ring ? 0 : 1);
  for (std::int64_t number = 0; number < 3; ++number)
    for (std::int64_t stage = 0; stage < pairs; ++stage) {
      if (pair_number(sizes, stage) != number) continue;
      const std::int64_t next = (stage + 1) % sizes.pipeline;
      for (std::int64_t x = 0; x < block; ++x)
        out.push_back({ParallelGroup::pair,
                       number,
                       {static_cast<std::uint32_t>(stage * block + x),
                        static_cast<std::uint32_t>(next * block + x)}});
    }
}

sim::Result<void> check_divisions(const ParallelSizes& s) {
  const std::int64_t product = s.tensor * s.context * s.pipeline;
  if (s.world % product != 0)
    return wrong(s.tensor > 1     ? "tensor_model_parallel_size"
                 : s.pipeline > 1 ? "pipeline_model_parallel_size"
                                  : "context_parallel_size",
                 fmt::format("tensor {} x context {} x pipeline {} = {} ranks do not divide a "
                             "world of {}",
                             s.tensor, s.context, s.pipeline, product, s.world));
  const std::int64_t experts = s.expert * s.expert_tensor;
  if (s.stage_ranks() % experts != 0)
    return wrong("expert_model_parallel_size",
                 fmt::format("expert {} x expert tensor {} = {} ranks do not divide the {} of a "
                             "pipeline stage",
                             s.expert, s.expert_tensor, experts, s.stage_ranks()));
  return {};
}

}  // namespace

sim::Result<void> check_sizes(const ParallelSizes& s) {
  RAILYARD_TRY(check_divisions(s));
  if (s.expert_tensor != 1 && s.expert_tensor != s.tensor)
    return wrong("expert_tensor_parallel_size",
                 fmt::format("{} is neither 1 nor tensor_model_parallel_size ({})", s.expert_tensor,
                             s.tensor));
  if (s.sequence_parallel && s.tensor == 1)
    return wrong("sequence_parallel", "needs tensor_model_parallel_size above 1");
  if (s.expert > 1 && s.tensor > 1 && !s.sequence_parallel)
    return wrong("expert_model_parallel_size",
                 "beside tensor parallelism Megatron wants sequence_parallel: true");
  if (s.virtual_pipeline > 1 && s.pipeline == 1)
    return wrong("virtual_pipeline_model_parallel_size",
                 "the interleaved schedule needs pipeline_model_parallel_size above 1");
  return {};
}

std::int64_t stage_of(const ParallelSizes& sizes, std::uint32_t rank) {
  return rank / sizes.stage_ranks();
}

std::int64_t pair_number(const ParallelSizes& sizes, std::int64_t stage) {
  const bool closes_odd_ring = stage + 1 == sizes.pipeline && sizes.pipeline % 2 == 1;
  return closes_odd_ring ? 2 : stage % 2;
}

std::vector<RankGroup> parallel_groups(const ParallelSizes& s) {
  std::vector<RankGroup> out;
  add_division(s, {ParallelGroup::tensor, 0, {}}, s.tensor, 1, out);
  add_division(s, {ParallelGroup::context, 0, {}}, s.context, s.tensor, out);
  add_division(s, {ParallelGroup::expert, 0, {}}, s.expert, s.expert_tensor, out);
  add_division(s, {ParallelGroup::data, 0, {}}, s.data() * s.context, s.tensor, out);
  add_division(s, {ParallelGroup::expert_data, 0, {}}, s.expert_data(), s.expert * s.expert_tensor,
               out);
  if (s.pipeline == 1) return out;
  add_pairs(s, out);
  for (std::uint32_t x = 0; x < s.stage_ranks(); ++x)
    out.push_back({ParallelGroup::embedding,
                   0,
                   {x, static_cast<std::uint32_t>((s.pipeline - 1) * s.stage_ranks()) + x}});
  return out;
}

std::string group_name(ParallelGroup kind, std::int64_t number) {
  switch (kind) {
    case ParallelGroup::tensor: return "tp";
    case ParallelGroup::context: return "cp";
    case ParallelGroup::expert: return "ep";
    case ParallelGroup::data: return fmt::format("dp {}", number);
    case ParallelGroup::expert_data: return fmt::format("edp {}", number);
    case ParallelGroup::pair: return fmt::format("pp {}", number);
    case ParallelGroup::embedding: return "embd";
  }
  return {};
}

}  // namespace railyard::models
