#include "models/megatron/stage_ops.h"

#include <fmt/format.h>

#include <cmath>

namespace railyard::models {
namespace {

using sim::Collective;

constexpr std::int64_t kFloat = 4;  // bytes of the loss' partial sums

KernelTime part_of(KernelTime time, std::int64_t parts) {
  time.time = sim::Duration((time.time.count() + parts - 1) / parts);
  return time;
}

}  // namespace

std::int64_t StageOps::tokens() const {
  return options_.layers.samples * model_.tokens / options_.sizes.context;
}

std::int64_t StageOps::activation() const { return tokens() * model_.hidden * element(); }

sim::Bytes StageOps::boundary() const {
  return sim::bytes(activation() / (sequence() ? options_.sizes.tensor : 1));
}

sim::Bytes StageOps::key_block() const {
  return sim::bytes(2 * tokens() * model_.key_width / options_.sizes.tensor * element());
}

std::int64_t StageOps::routed() const {
  const std::int64_t own = tokens() / options_.sizes.tensor;
  std::int64_t sent = model_.top_k * own;
  if (options_.capacity_factor > 0) {
    const double each = static_cast<double>(sent) / static_cast<double>(model_.experts);
    sent = static_cast<std::int64_t>(std::ceil(each * options_.capacity_factor)) * model_.experts;
  }
  // As many to every rank.
  const std::int64_t ranks = options_.sizes.expert;
  return (sent + ranks - 1) / ranks * ranks * model_.hidden * element();
}

void StageOps::kernel(const KernelTime& time, const std::string& name, Ops& out) {
  if (time.time.count() > 0) out.push_back({.kernel = named(time, trace_.name(name))});
}

void StageOps::dgrad(const LayerShard& unit, Ops& out) {
  if (unit.layer.has_dgrad)
    kernel(kernels_.dgrad(unit.layer, options_.layers.samples), "dgrad " + unit.layer.name, out);
}

void StageOps::wgrad(const LayerShard& unit, Ops& out) {
  const std::string what = unit.layer.measured ? "backward " : "wgrad ";
  kernel(kernels_.wgrad(unit.layer, options_.layers.samples), what + unit.layer.name, out);
}

void StageOps::issue(const GroupCall& call, const std::string& what, std::uint32_t slot, Ops& out) {
  const std::string name = fmt::format("{} {}", sim::to_text(call.collective), what);
  out.push_back({.kind = StageOp::Kind::issue,
                 .call = {calls_.add(call, options_.uses), trace_.name(name)},
                 .slot = slot});
}

void StageOps::wait(std::uint32_t slot, Ops& out) {
  out.push_back({.kind = StageOp::Kind::wait, .slot = slot});
}

void StageOps::block(const GroupCall& call, const std::string& what, Ops& out) {
  issue(call, what, 0, out);
  wait(0, out);
}

GroupCall StageOps::whole(Collective collective) const {
  const std::int64_t parts = collective == Collective::all_reduce ? 1 : options_.sizes.tensor;
  return {options_.groups.tensor, collective, sim::bytes(activation() / parts), element()};
}

void StageOps::forward(const LayerShard& unit, bool again, Ops& out) {
  const std::string name = (again ? "recompute " : "") + unit.layer.name;
  const bool column = unit.role == ShardRole::column || unit.role == ShardRole::output;
  if (unit.role == ShardRole::core_attention) return attention(unit, name, out);
  if (unit.role == ShardRole::loss) return loss(unit, name, out);
  if (column && sequence()) block(whole(Collective::all_gather), name, out);
  if (unit.role == ShardRole::expert_column) dispatch(name, out);
  kernel(kernels_.forward(unit.layer, options_.layers.samples), name, out);
  if (unit.role == ShardRole::row && tensor())
    block(whole(sequence() ? Collective::reduce_scatter : Collective::all_reduce), name, out);
  if (unit.role == ShardRole::expert_row) combine(name, out);
  if (unit.role == ShardRole::embedding && tensor()) embedded(unit, out);
}

// VocabParallelEmbedding; with learned positions its output is split, not scattered.
void StageOps::embedded(const LayerShard& unit, Ops& out) {
  const bool scatters = sequence() && !model_.learned_positions;
  block(whole(scatters ? Collective::reduce_scatter : Collective::all_reduce), unit.layer.name,
        out);
}

void StageOps::loss(const LayerShard& unit, const std::string& name, Ops& out) {
  kernel(kernels_.forward(unit.layer, options_.layers.samples), name, out);
  if (!tensor()) return;
  for (const char* what : {"maximum", "logit", "sum of exponentials"})
    block({options_.groups.tensor, Collective::all_reduce, sim::bytes(tokens() * kFloat), kFloat},
          what, out);
}

void StageOps::backward(const LayerShard& unit, Ops& out) {
  const std::string& name = unit.layer.name;
  switch (unit.role) {
    case ShardRole::core_attention: return attention_backward(unit, out);
    case ShardRole::column:
    case ShardRole::output: return column_backward(unit, out);
    case ShardRole::expert_row: dispatch("gradients of " + name, out); break;
    case ShardRole::row:
    case ShardRole::embedding:
      if (sequence()) block(whole(Collective::all_gather), "gradient of " + name, out);
      break;
    default: break;
  }
  dgrad(unit, out);
  wgrad(unit, out);
  if (unit.role == ShardRole::expert_column) combine("gradients of " + name, out);
}

// LinearWithGradAccumulationAndAsyncCommunication.backward.
void StageOps::column_backward(const LayerShard& unit, Ops& out) {
  constexpr std::uint32_t kInput = 0, kGradient = 1;
  const std::string& name = unit.layer.name;
  if (sequence()) issue(whole(Collective::all_gather), "input of " + name, kInput, out);
  dgrad(unit, out);
  if (sequence()) wait(kInput, out);
  if (tensor())
    issue(whole(sequence() ? Collective::reduce_scatter : Collective::all_reduce),
          "gradient of " + name, kGradient, out);
  wgrad(unit, out);
  if (tensor()) wait(kGradient, out);
}

void StageOps::dispatch(const std::string& what, Ops& out) {
  const std::int64_t size = routed();
  if (options_.sizes.expert > 1)
    block({options_.groups.expert, Collective::all_to_all, sim::bytes(size), element()},
          "dispatch " + what, out);
  if (options_.sizes.expert_tensor > 1)
    block({options_.groups.tensor, Collective::all_gather, sim::bytes(size), element()},
          "dispatch " + what, out);
}

void StageOps::combine(const std::string& what, Ops& out) {
  const std::int64_t size = routed();
  if (options_.sizes.expert_tensor > 1)
    block({options_.groups.tensor, Collective::reduce_scatter, sim::bytes(size), element()},
          "combine " + what, out);
  if (options_.sizes.expert > 1)
    block({options_.groups.expert, Collective::all_to_all, sim::bytes(size), element()},
          "combine " + what, out);
}

void StageOps::attention(const LayerShard& unit, const std::string& name, Ops& out) {
  const KernelTime time = kernels_.forward(unit.layer, options_.layers.samples);
  if (options_.sizes.context == 1) return kernel(time, name, out);
  if (options_.context_comm == ContextComm::p2p) return ring_forward(time, name, out);
  if (options_.context_comm == ContextComm::a2a) heads_to_tokens(name, true, out);
  if (options_.context_comm == ContextComm::all_gather)
    block({options_.groups.context, Collective::all_gather, key_block(), element()}, "KV " + name,
          out);
  kernel(time, name, out);
  if (options_.context_comm == ContextComm::a2a) heads_to_tokens(name, false, out);
}

// Q, K and V on the way in, the output on the way out.
void StageOps::heads_to_tokens(const std::string& name, bool inputs, Ops& out) {
  const std::int64_t width =
      (model_.hidden + (inputs ? 2 * model_.key_width : 0)) / options_.sizes.tensor;
  const std::int64_t c = options_.sizes.context;
  const std::int64_t size = (tokens() * width + c - 1) / c * c * element();
  block({options_.groups.context, Collective::all_to_all, sim::bytes(size), element()},
        (inputs ? "QKV " : "output ") + name, out);
}

// While one block of K and V is worked on, the next one arrives.
void StageOps::ring_forward(const KernelTime& time, const std::string& name, Ops& out) {
  const std::int64_t c = options_.sizes.context;
  const GroupCall hop{options_.groups.context, Collective::send_recv, key_block(), element()};
  for (std::int64_t step = 0; step < c; ++step) {
    const bool sends = step + 1 < c;
    if (sends) issue(hop, "KV " + name, 0, out);
    kernel(part_of(time, c), fmt::format("{} {}/{}", name, step + 1, c), out);
    if (sends) wait(0, out);
  }
}

// AttnFuncWithCPAndKVP2P.backward: K, V travel in all steps but the last, their gradients in all
// but the first.
void StageOps::ring_backward(const KernelTime& time, const std::string& name, Ops& out) {
  const std::int64_t c = options_.sizes.context;
  for (std::int64_t step = 0; step < c; ++step) {
    const bool inner = step > 0 && step + 1 < c;
    GroupCall hop{options_.groups.context, Collective::send_recv, key_block(), element()};
    if (inner) hop.size = hop.size * 2;
    issue(hop, (inner ? "KV, dKV " : step == 0 ? "KV " : "dKV ") + name, 0, out);
    kernel(part_of(time, c), fmt::format("dgrad {} {}/{}", name, step + 1, c), out);
    wait(0, out);
  }
}

void StageOps::attention_backward(const LayerShard& unit, Ops& out) {
  const std::string& name = unit.layer.name;
  const KernelTime time = kernels_.dgrad(unit.layer, options_.layers.samples);
  if (options_.sizes.context == 1) {
    dgrad(unit, out);
    return wgrad(unit, out);
  }
  const GroupCall gather{options_.groups.context, Collective::all_gather, key_block(), element()};
  switch (options_.context_comm) {
    case ContextComm::p2p: return ring_backward(time, name, out);
    case ContextComm::all_gather: {
      block(gather, "KV of " + name, out);
      kernel(time, "dgrad " + name, out);
      GroupCall scatter = gather;
      scatter.collective = Collective::reduce_scatter;
      return block(scatter, "dKV " + name, out);
    }
    case ContextComm::a2a:
      heads_to_tokens("gradient of " + name, false, out);
      kernel(time, "dgrad " + name, out);
      return heads_to_tokens("gradients of " + name, true, out);
  }
}

}  // namespace railyard::models
