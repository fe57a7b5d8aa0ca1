#include "models/replay/replay.h"

namespace railyard::models {
namespace {

using sim::GpuEventId;
using sim::Task;

// What an iteration has under way.
struct UnderWay {
  std::vector<sim::StreamId> streams;  // of the program's own
  std::vector<GpuEventId> calls;       // ends, by number; invalid where this rank takes no part
};

Task issue(const ReplayStep& step, WorkloadRank& rank, UnderWay& state) {
  co_await rank.host->busy(step.before);
  const Membership& member = rank.groups[step.group];
  GpuEventId done;
  if (!step.collective.call.valid()) {
    rank.wait(member.stream, rank.record(rank.compute));
    co_await rank.host->launch(member.stream, step.kernel);
    done = rank.record(member.stream);
  } else if (member.runner != nullptr) {
    co_await rank.issue(step.collective, rank.record(rank.compute), done);
  }
  state.calls.push_back(done);
}

Task run_steps(const std::vector<ReplayStep>& steps, WorkloadRank& rank, UnderWay& state) {
  sim::HostThread& host = *rank.host;
  for (const ReplayStep& step : steps) {
    switch (step.action) {
      case ReplayAction::kernels:
        co_await host.busy(step.before);
        if (step.launches)
          co_await host.launch(step.stream == 0 ? rank.compute : state.streams[step.stream - 1],
                               step.kernel);
        co_await host.busy(step.after);
        break;
      case ReplayAction::call: co_await issue(step, rank, state); break;
      case ReplayAction::wait: rank.wait(rank.compute, state.calls[step.call - 1]); break;
      case ReplayAction::synchronize: co_await host.synchronize(rank.compute); break;
    }
  }
}

}  // namespace

sim::Duration compute_time(const ReplayProgram& program) {
  sim::Duration sum{};
  for (const auto* steps : {&program.forward, &program.backward, &program.after_backward})
    for (const ReplayStep& step : *steps)
      if (step.action == ReplayAction::kernels && step.launches && step.stream == 0)
        sum += step.kernel.alone;
  return sum;
}

sim::HostParameters replay_host(const sim::HostParameters& of_profile) {
  sim::HostParameters host = of_profile;
  host.op_launch = {};
  host.collective_launch = {};
  return host;
}

Task run_replay(const ReplayProgram& program, WorkloadRank& rank) {
  UnderWay state;
  for (std::uint32_t i = 0; i < program.streams; ++i)
    state.streams.push_back(rank.host->gpu().add_stream());
  for (std::int64_t iteration = 0; iteration < program.iterations; ++iteration) {
    co_await rank.host->begin_iteration();
    rank.begin_iteration();
    state.calls.clear();
    co_await run_steps(program.forward, rank, state);
    rank.marks.back().forward_end = rank.record(rank.compute);
    co_await run_steps(program.backward, rank, state);
    rank.marks.back().backward_end = rank.record(rank.compute);
    co_await run_steps(program.after_backward, rank, state);
    rank.marks.back().end = rank.record(rank.compute);
  }
}

}  // namespace railyard::models
