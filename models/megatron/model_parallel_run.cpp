#include <array>
#include <deque>
#include <utility>

#include "models/megatron/model_parallel.h"

namespace railyard::models {
namespace {

using sim::GpuEventId;
using sim::Task;

class Runner {
 public:
  Runner(const ModelParallelProgram& program, WorkloadRank& rank)
      : program_(program),
        stage_(program.stages[static_cast<std::size_t>(stage_of(program.sizes, rank.index))]),
        rank_(rank),
        gathered_(stage_.buckets.size()) {}

  Task step(bool first) {
    co_await rank_.host->begin_iteration();
    WorkloadRank::Marks& marks = rank_.begin_iteration();
    // The first iteration finds its parameters in place.
    gathering_ = program_.overlap_param_gather && !first;
    std::int64_t forwards = program_.micro_batches * program_.sizes.virtual_pipeline;
    for (const PipelineStep& step : stage_.schedule) {
      co_await take(step);
      if (step.action == PipelineAction::forward && --forwards == 0)
        marks.forward_end = rank_.record(rank_.compute);
    }
    marks.backward_end = rank_.record(rank_.compute);
    co_await finish();
    marks.end = rank_.record(rank_.compute);
    co_await rank_.host->end_iteration(rank_.compute);
  }

 private:
  Task take(const PipelineStep& step) {
    const auto chunk = static_cast<std::size_t>(step.chunk);
    switch (step.action) {
      case PipelineAction::forward:
        co_await run(stage_.chunks[chunk].forward, step.micro_batch == 0);
        break;
      case PipelineAction::backward:
        co_await run(stage_.chunks[chunk].backward, step.micro_batch + 1 == program_.micro_batches);
        break;
      case PipelineAction::communicate: co_await communicate(step); break;
      case PipelineAction::wait: wait_all(handles_[step.of_backward ? 1 : 0]); break;
    }
  }

  // `edge`: the first micro-batch forward, the last one backward.
  Task run(const std::vector<StageOp>& ops, bool edge) {
    std::array<GpuEventId, 2> done;
    for (const StageOp& op : ops) switch (op.kind) {
        case StageOp::Kind::kernel: co_await rank_.host->launch(rank_.compute, op.kernel); break;
        case StageOp::Kind::issue:
          co_await rank_.issue(op.call, rank_.record(rank_.compute), done[op.slot]);
          break;
        case StageOp::Kind::wait: rank_.wait(rank_.compute, done[op.slot]); break;
        case StageOp::Kind::gather:
          if (edge && gathering_) co_await need(op.slot);
          break;
        case StageOp::Kind::reduce:
          if (edge && program_.overlap_grad_reduce) co_await reduce(op.slot);
          break;
      }
  }

  // A bucket's parameters are read now; those of the next one set out.
  Task need(std::uint32_t bucket) {
    if (!gathered_[bucket].valid()) co_await gather(bucket);
    const bool more = bucket > 0 && !gathered_[bucket - 1].valid() &&
                      stage_.buckets[bucket - 1].expert == stage_.buckets[bucket].expert;
    if (more) co_await gather(bucket - 1);
    rank_.wait(rank_.compute, gathered_[bucket]);
  }

  Task gather(std::uint32_t bucket) {
    const GradientBucket& what = stage_.buckets[bucket];
    if (what.ranks == 1) co_return;
    co_await rank_.issue(what.gather, rank_.record(rank_.compute), gathered_[bucket]);
  }

  Task reduce(std::uint32_t bucket) {
    const GradientBucket& what = stage_.buckets[bucket];
    co_await rank_.host->launch(rank_.compute, what.scale);
    if (what.ranks > 1)
      co_await rank_.issue(what.reduce, rank_.record(rank_.compute), reduced_.emplace_back());
  }

  Task finish() {
    if (!program_.overlap_grad_reduce)
      for (std::uint32_t b = 0; b < stage_.buckets.size(); ++b) co_await reduce(b);
    for (const GpuEventId event : reduced_) rank_.wait(rank_.compute, event);
    reduced_.clear();
    for (const NamedCall& call : stage_.finish) co_await rank_.call_on(rank_.compute, call);
    co_await rank_.launch_all(rank_.compute, stage_.optimizer);
    gathered_.assign(stage_.buckets.size(), GpuEventId());
    if (program_.overlap_param_gather || !program_.distributed_optimizer) co_return;
    for (std::uint32_t b = 0; b < stage_.buckets.size(); ++b) co_await gather(b);
    for (const GpuEventId event : gathered_) rank_.wait(rank_.compute, event);
  }

  struct Message {
    const NamedCall* call;
    std::size_t neighbour;  // 0 the stage before, 1 the next
  };

  // In the order of batch_isend_irecv's list (_batched_p2p_ops), or as stages take turns
  // (_p2p_ops).
  [[nodiscard]] std::vector<Message> messages(const PipelineStep& step) const {
    struct Candidate {
      bool asked;
      Message message;
    };
    const Candidate send_before{step.send_backward, {&stage_.send_backward, 0}};
    const Candidate recv_before{step.recv_forward, {&stage_.recv_forward, 0}};
    const Candidate send_next{step.send_forward, {&stage_.send_forward, 1}};
    const Candidate recv_next{step.recv_backward, {&stage_.recv_backward, 1}};
    std::array<Candidate, 4> order{send_before, recv_before, send_next, recv_next};
    if (program_.overlap_p2p)
      order = stage_.odd ? std::array{recv_before, send_next, recv_next, send_before}
                         : std::array{send_next, recv_before, send_before, recv_next};
    std::vector<Message> out;
    for (const Candidate& candidate : order)
      if (candidate.asked) out.push_back(candidate.message);
    return out;
  }

  Task communicate(const PipelineStep& step) {
    const GpuEventId after = rank_.record(rank_.compute);
    std::deque<GpuEventId>& handles = handles_[step.of_backward ? 1 : 0];
    std::vector<GpuEventId> batch;
    for (const Message& message : messages(step)) {
      if (batch.empty() || program_.overlap_p2p)
        co_await rank_.host->busy(rank_.host->costs().collective_launch);
      // One stream for all of the group, or one per pair of ranks; two stages use two groups.
      const sim::StreamId stream = rank_.member(message.call->call).stream;
      if (!program_.overlap_p2p)
        for (const GpuEventId event : last_batch_) rank_.wait(stream, event);
      else if (program_.sizes.pipeline > 2)
        rank_.wait(stream, last_with_[message.neighbour]);
      batch.push_back(rank_.enqueue(*message.call, after));
      last_with_[message.neighbour] = batch.back();
    }
    handles.insert(handles.end(), batch.begin(), batch.end());
    last_batch_ = std::move(batch);
    if (step.overlapped) co_return;
    wait_all(handles);
    if (program_.batch_p2p_sync && !program_.overlap_p2p)
      co_await rank_.host->synchronize(rank_.compute);
  }

  void wait_all(std::deque<GpuEventId>& handles) const {
    for (const GpuEventId event : handles) rank_.wait(rank_.compute, event);
    handles.clear();
  }

  const ModelParallelProgram& program_;
  const StageProgram& stage_;
  WorkloadRank& rank_;
  std::vector<GpuEventId> gathered_;               // by bucket, in this iteration
  std::deque<GpuEventId> reduced_;                 // stable addresses: filled in by coroutines
  std::array<std::deque<GpuEventId>, 2> handles_;  // of forward, of backward messages
  std::vector<GpuEventId> last_batch_;
  std::array<GpuEventId, 2> last_with_;  // by neighbour
  bool gathering_ = false;
};

}  // namespace

Task run_model_parallel(const ModelParallelProgram& program, WorkloadRank& rank) {
  Runner state(program, rank);
  for (std::int64_t i = 0; i < program.iteration_count; ++i) co_await state.step(i == 0);
  co_await rank.host->synchronize(rank.compute);
}

}  // namespace railyard::models
