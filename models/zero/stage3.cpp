#include "models/zero/stage3.h"

#include <deque>

namespace railyard::models {
namespace {

using sim::GpuEventId;
using sim::Task;

// __max_ongoing_fetch_events and max_param_reduce_events.
constexpr std::size_t kOngoingFetches = 2;
constexpr std::size_t kOngoingReductions = 2;

class Stage3 {
 public:
  Stage3(const Stage3Program& program, WorkloadRank& rank) : program_(program), rank_(rank) {
    const sim::StreamId gather = rank.host->gpu().add_stream();
    const sim::StreamId reduce = rank.host->gpu().add_stream();
    gather_ = program.options.overlap_comm ? gather : rank.compute;
    reduce_ = program.options.overlap_comm ? reduce : rank.compute;
  }

  Task step(bool first_iteration) {
    co_await rank_.host->begin_iteration();
    WorkloadRank::Marks& marks = rank_.begin_iteration();
    for (std::int64_t micro = 0; micro < program_.options.accumulation; ++micro) {
      Pass pass = micro == 0 ? Pass::first : Pass::later;
      if (first_iteration && micro == 0) pass = Pass::recording;
      plan_ = &program_.passes[static_cast<std::size_t>(pass)];
      waited_.assign(plan_->gathers.size(), false);
      done_.assign(plan_->gathers.size(), {});
      const bool last = micro + 1 == program_.options.accumulation;
      for (std::size_t m = 0; m < program_.forward_modules; ++m) co_await run_module(m);
      if (last) marks.forward_end = rank_.record(rank_.compute);
      co_await backward(micro);
    }
    marks.backward_end = rank_.record(rank_.compute);
    co_await optimizer_step();
    marks.end = rank_.record(rank_.compute);
    co_await rank_.host->end_iteration(rank_.compute);
  }

 private:
  // The host waits for the oldest event when more than `most` have not fired.
  Task limit(std::deque<GpuEventId>& events, std::size_t most) {
    while (!events.empty() && rank_.host->gpu().fired(events.front())) events.pop_front();
    if (events.size() <= most) co_return;
    const GpuEventId oldest = events.front();
    events.pop_front();
    co_await rank_.host->until(oldest);
  }

  // all_gather_coalesced.
  Task gather(std::uint32_t index) {
    const Stage3Program::Gather& of = plan_->gathers[index];
    co_await rank_.launch_all(gather_, of.before);
    for (const NamedCall& call : of.calls)
      co_await rank_.issue(call, rank_.record(gather_), done_[index]);
  }

  // AllGatherCoalescedHandle.wait, once for all its parameters.
  Task wait_for(std::uint32_t index) {
    co_await limit(ongoing_fetches_, kOngoingFetches);
    if (!waited_[index]) {
      waited_[index] = true;
      rank_.wait(gather_, done_[index]);
      co_await rank_.launch_all(gather_, plan_->gathers[index].after);
    }
    ongoing_fetches_.push_back(rank_.record(gather_));
  }

  // fetch_sub_module, the module, release_sub_module.
  Task run_module(std::size_t index) {
    const Stage3Program::Module& module = plan_->modules[index];
    for (const std::uint32_t g : module.fetch) co_await gather(g);
    for (const std::uint32_t g : module.waits) co_await wait_for(g);
    rank_.wait_stream(rank_.compute, gather_);
    for (const std::uint32_t g : module.prefetch) co_await gather(g);
    co_await rank_.launch_all(rank_.compute, module.kernels);
    co_await rank_.launch_all(rank_.compute, module.after);
  }

  Task backward(std::int64_t micro) {
    for (std::size_t m = program_.forward_modules; m < plan_->modules.size(); ++m) {
      co_await run_module(m);
      for (const Stage3Program::Arrival& arrival :
           program_.arrivals[m - program_.forward_modules]) {
        if (arrival.reduces) co_await reduce(*arrival.reduces, micro);
        rank_.wait_stream(reduce_, rank_.compute);
        if (arrival.copy.alone.count() > 0) co_await rank_.host->launch(reduce_, arrival.copy);
      }
    }
    if (!program_.buckets.empty())
      co_await reduce(static_cast<std::uint32_t>(program_.buckets.size() - 1), micro);
    // independent_gradient_partition_epilogue.
    co_await rank_.host->synchronize(reduce_);
  }

  // __reduce_and_partition_ipg_grads.
  Task reduce(std::uint32_t index, std::int64_t micro) {
    const Stage3Program::Bucket& bucket = program_.buckets[index];
    co_await limit(ongoing_reductions_, kOngoingReductions);
    co_await rank_.launch_all(reduce_, bucket.before);
    for (const NamedCall& call : bucket.reduce) co_await rank_.call_on(reduce_, call);
    co_await rank_.launch_all(reduce_, bucket.after);
    if (micro > 0 && bucket.accumulate.alone.count() > 0)
      co_await rank_.host->launch(reduce_, bucket.accumulate);
    ongoing_reductions_.push_back(rank_.record(reduce_));
  }

  Task optimizer_step() {
    if (program_.overflow.call.valid()) {  // has_overflow().item()
      co_await rank_.call_on(rank_.compute, program_.overflow);
      co_await rank_.host->synchronize(rank_.compute);
    }
    co_await rank_.launch_all(rank_.compute, program_.before_norm);
    co_await rank_.call_on(rank_.compute, program_.norm);
    co_await rank_.launch_all(rank_.compute, program_.optimizer);
    for (const NamedCall& call : program_.persistent) co_await rank_.call_on(rank_.compute, call);
    // The next iteration gathers what this one has written.
    rank_.wait_stream(gather_, rank_.compute);
  }

  const Stage3Program& program_;
  WorkloadRank& rank_;
  sim::StreamId gather_, reduce_;
  const Stage3Program::PassPlan* plan_ = nullptr;
  std::vector<bool> waited_;      // by gather
  std::vector<GpuEventId> done_;  // by gather
  std::deque<GpuEventId> ongoing_fetches_;
  std::deque<GpuEventId> ongoing_reductions_;
};

}  // namespace

Task run_stage3(const Stage3Program& program, WorkloadRank& rank) {
  Stage3 state(program, rank);
  for (std::int64_t i = 0; i < program.options.iterations; ++i) co_await state.step(i == 0);
  co_await rank.host->synchronize(rank.compute);
}

}  // namespace railyard::models
