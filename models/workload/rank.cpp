#include "models/workload/rank.h"

namespace railyard::models {

CallId CallTable::add(const GroupCall& call, std::int64_t times) {
  const Key key(call.group, call.collective, call.size, call.element_size, call.root);
  const auto found = known_.find(key);
  if (found != known_.end()) {
    uses_[found->second.index()] += times;
    return found->second;
  }
  const CallId id(calls_.size());
  uses_.push_back(times);
  calls_.push_back(call);
  known_.emplace(key, id);
  return id;
}

sim::Task WorkloadRank::issue(NamedCall what, sim::GpuEventId after, sim::GpuEventId& done) {
  co_await host->busy(host->costs().collective_launch);
  done = enqueue(what, after);
}

sim::Task WorkloadRank::launch_all(sim::StreamId stream, const std::vector<sim::Kernel>& kernels) {
  for (const sim::Kernel& kernel : kernels) co_await host->launch(stream, kernel);
}

sim::Task WorkloadRank::call_on(sim::StreamId stream, NamedCall what) {
  sim::GpuEventId done;
  co_await issue(what, record(stream), done);
  wait(stream, done);
}

sim::GpuEventId WorkloadRank::enqueue(NamedCall what, sim::GpuEventId after) {
  Membership& member = groups[(*calls)[what.call].group];
  wait(member.stream, after);
  host->gpu().launch_collective(member.stream, *member.runner, member.group_rank,
                                (*member.plans)[what.call.index()], what.name);
  if (keep_issued)
    issued.push_back({what, member.launched, static_cast<std::uint32_t>(marks.size()) - 1});
  ++member.launched;
  return host->gpu().record(member.stream);
}

}  // namespace railyard::models
