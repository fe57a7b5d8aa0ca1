#include "algorithms/nccl/chunks.h"

#include <algorithm>

#include "algorithms/chunking.h"
#include "algorithms/shape.h"

namespace railyard::algorithms::nccl {
namespace {

constexpr std::int64_t kKi = 1024;
constexpr float kSlowNvls = 150;  // GB/s: NVLS between nodes keeps to small chunks below

std::int64_t start_chunk(const CommPlan& plan, const ChunkQuestion& question) {
  const std::int64_t step = step_payload(question.protocol, fifo_bytes(plan.info)).raw();
  const bool rotates =
      question.algorithm == Algorithm::ring && question.protocol == Protocol::simple &&
      question.function != Function::broadcast && question.function != Function::reduce;
  return rotates ? 4 * step : step;
}

CommShape shape_of(const CommPlan& plan, std::int32_t heads) {
  return {.ranks = static_cast<std::uint32_t>(plan.info.ranks),
          .nodes = static_cast<std::uint32_t>(plan.info.nodes),
          .heads = static_cast<std::uint32_t>(heads),
          .nvls_chunks = nvls_chunks(plan)};
}

}  // namespace

NvlsChunks nvls_chunks(const CommPlan& plan) {
  const CommInfo& info = plan.info;
  const float bandwidth =
      plan.tuning.bandwidth[index_of(Function::all_reduce)][index_of(Algorithm::nvls)]
                           [index_of(Protocol::simple)];
  const bool slow = info.nodes > 1 && bandwidth < kSlowNvls;
  return {.nvls = slow ? 32 * kKi : info.nvls_chunk,
          .tree = std::min(info.nvls_chunk, info.nvls_tree_max_chunk)};
}

FifoBytes fifo_bytes(const CommInfo& info) {
  return {.ll = info.buffers[index_of(Protocol::ll)],
          .ll128 = info.buffers[index_of(Protocol::ll128)],
          .simple = info.buffers[index_of(Protocol::simple)]};
}

std::int64_t chunk_bytes(const CommPlan& plan, const ChunkQuestion& question) {
  const CommInfo& info = plan.info;
  const ChunkLoad load{.bytes = question.bytes, .channels = question.channels};
  const std::int64_t most = start_chunk(plan, question);
  std::int64_t chunk = most;
  switch (question.algorithm) {
    case Algorithm::collnet_direct:
      chunk = collnet_direct_chunk(chunk, info.direct_heads, info.direct_is_alone ? 1 : 2, load);
      break;
    case Algorithm::collnet_chain:
      chunk = collnet_chain_chunk(chunk, info.ranks / info.nodes, load);
      break;
    case Algorithm::nvls: chunk = nvls_chunk(chunk, shape_of(plan, info.nvls_heads), load); break;
    case Algorithm::nvls_tree:
      chunk = nvls_tree_chunk(shape_of(plan, info.nvls_heads), load);
      break;
    case Algorithm::pat:
      chunk = pat_chunk(chunk, question.function == Function::all_gather, load);
      break;
    case Algorithm::tree:
      if (question.protocol == Protocol::ll128)
        chunk = tree_ll128_chunk(chunk, question.bytes / question.channels, shape_of(plan, 1));
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
