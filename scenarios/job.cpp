#include "scenarios/job.h"

#include <algorithm>

#include "scenarios/faults.h"
#include "scenarios/host.h"
#include "scenarios/wait_cycle.h"

namespace railyard::scenarios {

bool Job::finished() const {
  return std::ranges::all_of(hosts, [](const auto& host) { return host->finished(); });
}

Job make_job(RunContext& context) { return make_job(context, context.bound.parameters.host); }

Job make_job(RunContext& context, const sim::HostParameters& host) {
  Job job;
  const sim::Parameters& parameters = context.bound.parameters;
  const sim::GpuTiming timing{parameters.host.launch_latency, parameters.gpu.kernel_gap,
                              parameters.host.collective_start};
  for (const sim::Member& member : context.bound.world) {
    job.gpus.push_back(std::make_unique<sim::Gpu>(context.simulation.queue(), context.trace,
                                                  member.rank.value(), timing));
    job.hosts.push_back(
        std::make_unique<sim::HostThread>(context.simulation.queue(), *job.gpus.back(), host));
    apply_faults(context, member.rank.value(), *job.gpus.back(), *job.hosts.back());
  }
  return job;
}

void run_job(RunContext& context, const std::vector<const sim::CollectiveRunner*>& runners,
             const Job& job) {
  if (!context.host->open(runners)) return;
  context.result.outcome = run_queue(context);
  for (const sim::CollectiveRunner* runner : runners) account(*runner, context);
  context.result.late_ranks = late_ranks(context, runners);
  if (context.result.outcome != sim::EventQueue::Outcome::drained || job.finished()) return;
  constexpr std::size_t kLines = 32;
  std::vector<std::string>& lines = context.result.unfinished;
  if (std::string cycle = wait_cycle(runners); !cycle.empty()) lines.push_back(std::move(cycle));
  for (const sim::CollectiveRunner* runner : runners)
    for (std::string& line : runner->waiting(kLines))
      if (lines.size() < kLines) lines.push_back(std::move(line));
  for (const auto& gpu : job.gpus)
    for (std::string& line : gpu->waiting())
      if (lines.size() < kLines) lines.push_back(std::move(line));
}

}  // namespace railyard::scenarios
