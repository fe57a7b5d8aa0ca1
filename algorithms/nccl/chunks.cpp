#include "algorithms/nccl/chunks.h"

#include <algorithm>

#include "algorithms/chunking.h"
#include "algorithms/shape.h"

namespace railyard::algorithms::nccl {
namespace {

constexpr std::int64_t kKi = 1024;
constexpr float kSlowNvls = 150;  // GB/s: NVLS between nodes keeps to small chunks below

std::int64_t start_chunk(const CommPlan& plan, const ChunkQuestion& question) {
  const std::int64_t step = plan.info.buffers[index_of(question.protocol)] / kSteps;
  switch (question.protocol) {
    case Protocol::ll: return step / 2;
    case Protocol::ll128: return step / 16 * 15;
    case Protocol::simple:
    case Protocol::plain: break;
  }
  const bool rotates = question.algorithm == Algorithm::ring &&
                       question.function != Function::broadcast &&
                       question.function != Function::reduce;
  return rotates ? 4 * step : step;
}

// Halves while there are fewer than `rounds` chunks for each of `takers` and it is above `floor`.
void halve(std::int64_t bytes, std::int64_t takers, std::int64_t rounds, std::int64_t floor,
           std::int64_t& chunk) {
  while (chunk > floor && bytes / (takers * chunk) < rounds) chunk /= 2;
}

std::int64_t direct_chunk(const CommInfo& info, const ChunkQuestion& question, std::int64_t chunk) {
  const std::int64_t depth = info.direct_is_alone ? 1 : 2;
  const std::int64_t takers = question.channels * info.direct_heads;
  halve(question.bytes, takers, depth * 64, 128 * kKi, chunk);
  halve(question.bytes, takers, depth * 8, 64 * kKi, chunk);
  halve(question.bytes, takers, depth * 8, 32 * kKi, chunk);
  return chunk;
}

std::int64_t chain_chunk(const CommInfo& info, const ChunkQuestion& question) {
  const std::int64_t step = info.buffers[index_of(Protocol::simple)] / kSteps;
  const std::int64_t depth = info.ranks / info.nodes;
  std::int64_t chunk = std::min(256 * kKi, step);
  halve(question.bytes, question.channels, depth * 64, 128 * kKi, chunk);
  halve(question.bytes, question.channels, depth * 8, 64 * kKi, chunk);
  halve(question.bytes, question.channels, depth, 32 * kKi, chunk);
  return chunk;
}

struct Stage {
  std::int64_t rounds;
  std::int64_t chunk;
};

// Falls to a stage's chunk when there are fewer than its rounds of the present chunk.
std::int64_t staged(std::int64_t bytes, std::int64_t takers, std::span<const Stage> stages,
                    std::int64_t chunk) {
  for (const Stage& stage : stages)
    if (chunk > stage.chunk && bytes < stage.rounds * takers * chunk) chunk = stage.chunk;
  return chunk;
}

std::int64_t nvls_chunk(const CommPlan& plan, const ChunkQuestion& question, std::int64_t chunk) {
  constexpr Stage kStages[] = {{64, 64 * kKi}, {8, 32 * kKi}, {2, 16 * kKi}};
  const float bandwidth =
      plan.tuning.bandwidth[index_of(Function::all_reduce)][index_of(Algorithm::nvls)]
                           [index_of(Protocol::simple)];
  std::int64_t most = plan.info.nvls_chunk;
  if (plan.info.nodes > 1 && bandwidth < kSlowNvls) most = 32 * kKi;
  return staged(question.bytes, question.channels * plan.info.nvls_heads, kStages,
                std::min(chunk, most));
}

std::int64_t nvls_tree_chunk(const CommInfo& info, const ChunkQuestion& question) {
  constexpr Stage kStages[] = {{32, 256 * kKi}, {16, 128 * kKi}, {4, 64 * kKi}, {1, 32 * kKi}};
  return staged(question.bytes, question.channels * info.nvls_heads, kStages,
                std::min(info.nvls_chunk, info.nvls_tree_max_chunk));
}

std::int64_t pat_chunk(const ChunkQuestion& question, std::int64_t chunk) {
  const std::int64_t rounds = question.function == Function::all_gather ? 32 : 16;
  while (chunk > 64 * kKi && chunk * question.channels * rounds > question.bytes) chunk /= 2;
  return chunk;
}

}  // namespace

std::int64_t chunk_bytes(const CommPlan& plan, const ChunkQuestion& question) {
  const std::int64_t most = start_chunk(plan, question);
  std::int64_t chunk = most;
  switch (question.algorithm) {
    case Algorithm::collnet_direct: chunk = direct_chunk(plan.info, question, chunk); break;
    case Algorithm::collnet_chain: chunk = chain_chunk(plan.info, question); break;
    case Algorithm::nvls: chunk = nvls_chunk(plan, question, chunk); break;
    case Algorithm::nvls_tree: chunk = nvls_tree_chunk(plan.info, question); break;
    case Algorithm::pat: chunk = pat_chunk(question, chunk); break;
    case Algorithm::tree:
      if (question.protocol == Protocol::ll128)
        chunk = tree_ll128_chunk(chunk, question.bytes / question.channels,
                                 {.ranks = static_cast<std::uint32_t>(plan.info.ranks),
                                  .nodes = static_cast<std::uint32_t>(plan.info.nodes)});
      break;
    case Algorithm::ring: break;
  }
  const auto& tuner = plan.inputs.tuner;
  if (tuner && tuner->reading == ChannelReading::as_shipped) {
    if (question.algorithm == Algorithm::nvls_tree) chunk = std::max(chunk, 32 * kKi);
    chunk = std::min(chunk, most);
  }
  const std::int64_t grain = chunk_grain(question.protocol);
  return chunk / grain * grain;
}

}  // namespace railyard::algorithms::nccl
