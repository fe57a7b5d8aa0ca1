#include "models/ddp/step.h"

#include <algorithm>

#include "models/ddp/reducer.h"
#include "models/ddp/step_parts.h"

namespace railyard::models {
namespace {

using sim::GpuEventId;
using sim::Kernel;
using sim::Task;

// How many broadcasts c10d's coalesced broadcast starts before it waits for the first.
constexpr std::size_t kBroadcastsInFlight = 2;

Task unflatten_buffers(const DdpProgram& program, DdpRank& rank, std::size_t piece,
                       GpuEventId broadcast_over) {
  rank.host->gpu().wait(rank.compute, broadcast_over);
  if (!program.flatten_buffers.empty())
    co_await rank.host->launch(rank.compute, program.flatten_buffers[piece]);
}

Task launch_complete_buckets(const DdpProgram& program, DdpRank& rank, std::int64_t iteration,
                             Reducer& reducer, Reductions& done) {
  while (reducer.next_is_complete())
    co_await launch_bucket(program, rank, {iteration, reducer.take_next()}, done);
}

// The compute stream waits for the statistics of the other ranks, at times the host as well.
Task exchange_statistics(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls,
                         const NormSync& sync) {
  const auto& plans = sync.forward ? calls.norm_forward : calls.norm_backward;
  GpuEventId ready;
  co_await launch_collective(rank, {plans[sync.norm], program.norm_name, rank.compute}, ready);
  rank.host->gpu().wait(rank.compute, rank.host->gpu().record(rank.communication));
  if (sync.host_waits) co_await rank.host->synchronize(rank.compute);
}

// `calls` of the iteration under way.
Task launch_all(const DdpProgram& program, const DdpProgram::Launches& launches, DdpRank& rank,
                const DdpCollectives& calls) {
  sim::HostThread& host = *rank.host;
  co_await host.busy(launches.before);
  std::size_t launched = 0;
  auto sync = launches.syncs.begin();
  for (const Kernel& kernel : launches.kernels) {
    co_await host.launch(rank.compute, kernel);
    ++launched;
    for (; sync != launches.syncs.end() && sync->after == launched; ++sync)
      co_await exchange_statistics(program, rank, calls, *sync);
  }
  co_await host.busy(launches.after);
}

Task forward(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls) {
  for (const DdpProgram::Launches& layer : program.forward)
    co_await launch_all(program, layer, rank, calls);
}

// What join() does in a forward behind the first of its iteration, whose calls enclose the
// buffers'.
Task notify_joined(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls) {
  if (calls.join.empty()) co_return;
  co_await join_call(program, rank, calls, JoinCall::not_joined, false);
  co_await join_call(program, rank, calls, JoinCall::will_reduce, false);
}

// Forward and backward of a micro-batch inside no_sync(); the first finds no gradient to add to.
Task accumulate(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls, bool first) {
  sim::HostThread& host = *rank.host;
  if (!first) co_await notify_joined(program, rank, calls);
  co_await forward(program, rank, calls);
  for (const DdpProgram::BackwardStep& step : program.backward) {
    co_await launch_all(program, step, rank, calls);
    for (const std::uint32_t parameter : step.parameters)
      if (!first) co_await host.launch(rank.compute, program.accumulate[parameter]);
  }
}

Task backward(const DdpProgram& program, DdpRank& rank, std::int64_t iteration, Reductions& done) {
  sim::HostThread& host = *rank.host;
  const BucketList& buckets = program.plan.of_iteration(iteration);
  const DdpCollectives& calls = program.of_iteration(iteration);
  const bool at_end = iteration == 1 && program.plan.first_iteration_at_end;
  Reducer reducer(program.copy_in.size(), buckets);
  for (const std::uint32_t parameter : program.unused) reducer.mark_ready(parameter);
  for (const DdpProgram::BackwardStep& step : program.backward) {
    co_await launch_all(program, step, rank, calls);
    for (const std::uint32_t parameter : step.parameters) {
      co_await host.busy(program.hook);
      if (program.accumulation > 1)
        co_await host.launch(rank.compute, program.accumulate[parameter]);
      if (!at_end) co_await host.launch(rank.compute, program.copy_in[parameter]);
      co_await host.busy(host.costs().grad_hook);
      reducer.mark_ready(parameter);
      if (!at_end && reducer.next_is_complete())
        co_await launch_complete_buckets(program, rank, iteration, reducer, done);
    }
  }
  // A static graph's first iteration sends the bitmap before it copies anything.
  if (at_end) co_await launch_bitmap(program, rank, calls, done);
  for (std::size_t p = 0; at_end && p < program.copy_in.size(); ++p)
    co_await host.launch(rank.compute, program.copy_in[p]);
  co_await launch_complete_buckets(program, rank, iteration, reducer, done);
  if (!at_end) co_await launch_bitmap(program, rank, calls, done);
}

// The bitmap tells whether others used what this rank did not: the host needs it to go on.
Task read_bitmap(DdpRank& rank, Reductions& done) {
  for (const GpuEventId event : done.unused) rank.host->gpu().wait(rank.compute, event);
  if (!done.unused.empty()) co_await rank.host->synchronize(rank.compute);
  done.unused.clear();
}

Task finalize(const DdpProgram& program, DdpRank& rank, std::int64_t iteration, Reductions& done) {
  sim::HostThread& host = *rank.host;
  const BucketList& buckets = program.plan.of_iteration(iteration);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    host.gpu().wait(rank.compute, done.buckets[b]);
    for (const std::uint32_t parameter : buckets[b].parameters) {
      if (std::ranges::binary_search(program.unused, parameter))
        co_await read_bitmap(rank, done);  // unused by all ranks: its gradient stays as it is
      else if (!program.copy_out.empty()) {
        co_await host.busy(program.copy_back);
        co_await host.launch(rank.compute, program.copy_out[parameter]);
      }
    }
  }
  for (const GpuEventId event : done.unused) host.gpu().wait(rank.compute, event);
}

// DistributedDataParallel.forward up to the module's own.
Task before_forward(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls) {
  const bool join = !calls.join.empty();
  if (join) co_await join_call(program, rank, calls, JoinCall::not_joined, false);
  co_await rebuild_buckets(program, rank, calls);
  if (join && !calls.buffers.empty())
    co_await join_call(program, rank, calls, JoinCall::common_rank, true);
  co_await broadcast_buffers(program, rank, calls);
  if (join) co_await join_call(program, rank, calls, JoinCall::will_reduce, false);
}

Task iterate(const DdpProgram& program, DdpRank& rank, std::int64_t iteration) {
  sim::HostThread& host = *rank.host;
  const DdpCollectives& calls = program.of_iteration(iteration);
  co_await host.begin_iteration();
  rank.marks.emplace_back();
  co_await launch_all(program, program.start, rank, calls);
  co_await before_forward(program, rank, calls);
  for (std::int64_t micro = 1; micro < program.accumulation; ++micro)
    co_await accumulate(program, rank, calls, micro == 1);
  if (program.accumulation > 1) co_await notify_joined(program, rank, calls);
  co_await forward(program, rank, calls);
  rank.marks.back().forward_end = host.gpu().record(rank.compute);
  Reductions done;
  co_await backward(program, rank, iteration, done);
  rank.marks.back().backward_end = host.gpu().record(rank.compute);
  co_await finalize(program, rank, iteration, done);
  co_await launch_all(program, program.optimizer, rank, calls);
  rank.marks.back().end = host.gpu().record(rank.compute);
  co_await host.end_iteration(rank.compute);
}

}  // namespace

Task launch_collective(DdpRank& rank, Launch what, GpuEventId& ready) {
  sim::HostThread& host = *rank.host;
  co_await host.busy(host.costs().collective_launch);
  ready = host.gpu().record(what.stream);
  host.gpu().wait(rank.communication, ready);
  host.gpu().launch_collective(rank.communication, *rank.runner, rank.group_rank, what.plan,
                               what.name);
  ++rank.launched;
}

Task rebuild_buckets(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls) {
  for (const sim::PlanId plan : calls.rebuild) {
    GpuEventId ready;
    co_await launch_collective(rank, {plan, program.rebuild_name, rank.compute}, ready);
    co_await rank.host->synchronize(rank.communication);  // the sizes are copied to the host
  }
}

Task broadcast_buffers(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls) {
  sim::HostThread& host = *rank.host;
  std::vector<GpuEventId> over;
  for (std::size_t i = 0; i < calls.buffers.size(); ++i) {
    if (i >= kBroadcastsInFlight) {
      const std::size_t done = i - kBroadcastsInFlight;
      co_await unflatten_buffers(program, rank, done, over[done]);
    }
    if (!program.flatten_buffers.empty())
      co_await host.launch(rank.compute, program.flatten_buffers[i]);
    GpuEventId ready;
    co_await launch_collective(rank, {calls.buffers[i], program.buffer_name, rank.compute}, ready);
    over.push_back(host.gpu().record(rank.communication));
  }
  const std::size_t open = std::min(over.size(), kBroadcastsInFlight);
  for (std::size_t i = over.size() - open; i < over.size(); ++i)
    co_await unflatten_buffers(program, rank, i, over[i]);
}

Task launch_bucket(const DdpProgram& program, DdpRank& rank, BucketOf which, Reductions& done) {
  sim::HostThread& host = *rank.host;
  const BucketHook& hook = program.hooks[program.kind_of(which.iteration)][which.bucket];
  const std::vector<sim::PlanId>& plans =
      program.of_iteration(which.iteration).buckets[which.bucket];
  DdpRank::Marks& marks = rank.marks.back();
  marks.bucket_calls.push_back(rank.launched);
  sim::StreamId stream = rank.compute;
  // A callback's stream goes on where the collective before it has ended.
  const auto into_callback = [&] {
    stream = rank.callback;
    host.gpu().wait(stream, host.gpu().record(rank.communication));
  };
  for (std::size_t call = 0; call < plans.size(); ++call) {
    if (call > 0) into_callback();
    for (const Kernel& kernel : hook.before[call]) co_await host.launch(stream, kernel);
    GpuEventId ready = host.gpu().record(stream);
    if (call == 0) marks.bucket_ready.push_back(ready);
    if (plans[call].valid())
      co_await launch_collective(rank, {plans[call], program.bucket_name, stream}, ready);
    if (call == 0) marks.bucket_ready.back() = ready;
  }
  if (hook.after.empty() && hook.last.empty() && !hook.device_synchronize) {
    done.buckets.push_back(host.gpu().record(rank.communication));
    co_return;
  }
  into_callback();
  for (const Kernel& kernel : hook.after) co_await host.launch(stream, kernel);
  if (hook.device_synchronize) {
    co_await host.synchronize(stream);
    co_await host.synchronize(rank.compute);
  }
  for (const Kernel& kernel : hook.last) co_await host.launch(stream, kernel);
  done.buckets.push_back(host.gpu().record(stream));
}

Task launch_bitmap(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls,
                   Reductions& done) {
  for (const sim::PlanId plan : calls.unused) {
    GpuEventId ready;
    co_await launch_collective(rank, {plan, program.unused_name, rank.compute}, ready);
    done.unused.push_back(rank.host->gpu().record(rank.communication));
  }
}

Task run_ddp(const DdpProgram& program, DdpRank& rank) {
  for (std::int64_t iteration = 1; iteration <= program.iteration_count; ++iteration) {
    const bool joined = !program.join.empty() && program.join[rank.group_rank] < iteration;
    if (joined)
      co_await shadow_iteration(program, rank, iteration);
    else
      co_await iterate(program, rank, iteration);
  }
  if (!program.join.empty()) co_await leave_join(program, rank);
  co_await rank.host->synchronize(rank.compute);
}

}  // namespace railyard::models
