#include "models/ddp/join.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/ddp/step_parts.h"

namespace railyard::models {
namespace {

using sim::Task;

// The highest rank that has inputs in this iteration.
std::uint32_t highest_active(const DdpOptions& options, std::int64_t iteration) {
  std::uint32_t rank = 0;
  for (std::uint32_t r = 0; r < options.join.size(); ++r)
    if (options.join[r] >= iteration) rank = r;
  return rank;
}

}  // namespace

Result<void> check_join(const DdpOptions& options) {
  if (options.join.empty()) return {};
  if (options.sync_batchnorm)
    return sim::bad_input(
        "join and convert_sync_batchnorm exclude each other: a rank that has joined cannot shadow "
        "the "
        "collectives of SyncBatchNorm's forward");
  if (static_cast<std::int64_t>(options.join.size()) != options.ranks)
    return sim::bad_input(
        fmt::format("join names {} ranks of a job of {}", options.join.size(), options.ranks));
  if (std::ranges::max(options.join) != options.iterations || std::ranges::min(options.join) < 1)
    return sim::bad_input(
        fmt::format("join: every rank has inputs for 1 to {} iterations, and at least one for all",
                    options.iterations));
  return {};
}

void add_join_calls(const NeuralNetwork& network, const DdpOptions& options, std::int64_t iteration,
                    DdpCalls& calls) {
  if (options.join.empty()) return;
  const auto all_reduce = [](std::int64_t size) {
    return DdpCall{sim::Collective::all_reduce, sim::bytes(size), size};
  };
  calls.join = {all_reduce(4), all_reduce(8), all_reduce(4)};  // by JoinCall
  const std::uint32_t authority = highest_active(options, iteration);
  for (DdpCall& piece : calls.buffers) piece.root = authority;
  if (iteration < distinct_iterations(options).back()) return;
  const std::uint32_t last = highest_active(options, options.iterations);
  for (const DtypeTotal& total : parameter_totals(network))
    add_pieces(total.elements, element_size(total.dtype), last, calls.final_model);
  add_pieces(network.buffers().fp32_elements, 4, last, calls.final_model);
  add_pieces(network.buffers().int64_elements, 8, last, calls.final_model);
}

Task join_call(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls, JoinCall call,
               bool host_waits) {
  sim::GpuEventId ready;
  co_await launch_collective(
      rank, {calls.join[static_cast<std::size_t>(call)], program.join_name, rank.compute}, ready);
  if (host_waits) co_await rank.host->synchronize(rank.communication);
}

// Join.__exit__'s loop: _get_num_nonjoined_procs, then _DDPJoinHook.main_hook.
Task shadow_iteration(const DdpProgram& program, DdpRank& rank, std::int64_t iteration) {
  sim::HostThread& host = *rank.host;
  const DdpCollectives& calls = program.of_iteration(iteration);
  DdpRank::Marks& marks = rank.marks.emplace_back();
  for (std::int64_t micro = 0; micro < program.accumulation; ++micro) {
    co_await join_call(program, rank, calls, JoinCall::not_joined, true);
    if (micro == 0) {
      co_await rebuild_buckets(program, rank, calls);
      if (!calls.buffers.empty())
        co_await join_call(program, rank, calls, JoinCall::common_rank, true);
      co_await broadcast_buffers(program, rank, calls);
    }
    co_await join_call(program, rank, calls, JoinCall::will_reduce, true);
  }
  marks.forward_end = host.gpu().record(rank.compute);
  Reductions done;
  const std::vector<sim::Kernel>& zeros = program.zeros[program.kind_of(iteration)];
  for (std::size_t b = 0; b < zeros.size(); ++b) {
    co_await host.launch(rank.compute, zeros[b]);
    co_await launch_bucket(program, rank, {iteration, b}, done);
  }
  for (const sim::GpuEventId event : done.buckets) host.gpu().wait(rank.compute, event);
  co_await launch_bitmap(program, rank, calls, done);
  marks.backward_end = host.gpu().record(rank.compute);
  marks.end = host.gpu().record(rank.compute);
}

Task leave_join(const DdpProgram& program, DdpRank& rank) {
  const DdpCollectives& calls = program.iterations.back();
  co_await join_call(program, rank, calls, JoinCall::not_joined, true);
  co_await join_call(program, rank, calls, JoinCall::common_rank, true);
  for (const sim::PlanId plan : calls.final_model) {
    sim::GpuEventId ready;
    co_await launch_collective(rank, {plan, program.final_name, rank.compute}, ready);
    rank.host->gpu().wait(rank.compute, rank.host->gpu().record(rank.communication));
  }
}

}  // namespace railyard::models
