// A DistributedDataParallel job: builds the program, a GPU and a host thread per rank, runs them,
// and reads step time, overlap and buckets off the events and spans of the run.
#include <algorithm>
#include <memory>

#include "models/compute/kernels.h"
#include "models/ddp/step.h"
#include "scenarios/ddp_job.h"
#include "scenarios/run_parts.h"
#include "scenarios/step_report.h"
#include "scenarios/where.h"

namespace railyard::scenarios {
namespace {

Result<void> make_plans(RunContext& context, sim::CollectiveRunner& runner,
                        const std::vector<models::DdpCall>& calls,
                        std::vector<sim::PlanId>& plans) {
  for (const models::DdpCall& call : calls) {
    RAILYARD_ASSIGN(
        const sim::CollectiveCall chosen,
        choose_ddp(context.scenario, *communications_of(context.bound, std::string(kWorld)).front(),
                   call));
    const auto plan = runner.plan(chosen);
    if (!plan.ok()) return at_call(context.scenario, "ddp", chosen.size, plan.error());
    plans.push_back(plan.value());
  }
  return {};
}

// The collectives of the iterations that differ; all later ones are like the last of them.
Result<void> plan_iterations(RunContext& context, const models::NeuralNetwork& network,
                             const models::DdpOptions& options, sim::CollectiveRunner& runner,
                             models::DdpProgram& program) {
  const std::int64_t distinct = std::min(options.iterations, models::kDistinctIterations);
  for (std::int64_t iteration = 1; iteration <= distinct; ++iteration) {
    const models::DdpCalls calls = models::ddp_calls(network, program.plan, options, iteration);
    models::DdpCollectives plans;
    RAILYARD_TRY(make_plans(context, runner, calls.rebuild, plans.rebuild));
    RAILYARD_TRY(make_plans(context, runner, calls.buffers, plans.buffers));
    RAILYARD_TRY(make_plans(context, runner, calls.buckets, plans.buckets));
    RAILYARD_TRY(make_plans(context, runner, calls.unused, plans.unused));
    program.iterations.push_back(std::move(plans));
  }
  return {};
}

// The ranks of the job, each with its GPU and host thread.
struct Job {
  std::vector<std::unique_ptr<sim::Gpu>> gpus;
  std::vector<std::unique_ptr<models::DdpRank>> ranks;
  std::vector<std::unique_ptr<sim::HostThread>> hosts;  // destroyed first: they hold the coroutines
};

void start_job(RunContext& context, const models::DdpProgram& program,
               sim::CollectiveRunner& runner, Job& job) {
  const sim::Parameters& parameters = context.bound.parameters;
  const sim::GpuTiming timing{parameters.host.launch_latency, parameters.gpu.kernel_gap,
                              parameters.host.collective_start};
  for (std::uint32_t r = 0; r < runner.group().size(); ++r) {
    job.gpus.push_back(std::make_unique<sim::Gpu>(context.simulation.queue(), context.trace,
                                                  runner.group()[r].rank.value(), timing));
    job.hosts.push_back(std::make_unique<sim::HostThread>(context.simulation.queue(),
                                                          *job.gpus.back(), parameters.host));
    auto rank = std::make_unique<models::DdpRank>();
    rank->host = job.hosts.back().get();
    rank->compute = job.gpus.back()->add_stream();
    rank->communication = job.gpus.back()->add_stream();
    rank->runner = &runner;
    rank->group_rank = r;
    job.hosts.back()->start(models::run_ddp(program, *rank));
    job.ranks.push_back(std::move(rank));
  }
}

void report_unfinished(RunContext& context, const sim::CollectiveRunner& runner, const Job& job) {
  const bool done =
      std::ranges::all_of(job.hosts, [](const auto& host) { return host->finished(); });
  if (context.result.outcome != sim::EventQueue::Outcome::drained || done) return;
  constexpr std::size_t kLines = 32;
  context.result.unfinished = runner.waiting(kLines);
  for (const auto& gpu : job.gpus)
    for (std::string& line : gpu->waiting())
      if (context.result.unfinished.size() < kLines)
        context.result.unfinished.push_back(std::move(line));
}

}  // namespace

Result<void> run_ddp_job(RunContext& context) {
  const DdpSpec& spec = *context.scenario.ddp;
  RAILYARD_ASSIGN(const models::NeuralNetwork network, network_of(context.scenario));
  const models::DdpOptions options = ddp_options(spec);
  const models::KernelModel kernels(context.bound.parameters.gpu, options.compute);
  auto built = models::build_ddp_program(network, options, kernels, context.trace);
  if (!built.ok()) return at_path(context.scenario, "ddp", built.error());
  models::DdpProgram program = std::move(built).value();
  Communication& communication = *communications_of(context.bound, std::string(kWorld)).front();
  const std::unique_ptr<sim::CollectiveRunner> runner = make_runner(context, communication);
  RAILYARD_TRY(plan_iterations(context, network, options, *runner, program));

  Job job;
  start_job(context, program, *runner, job);
  context.result.outcome = run_queue(context);
  account(*runner, context);
  report_unfinished(context, *runner, job);
  context.result.stream_names = {"compute", "communication"};
  const bool done =
      std::ranges::all_of(job.hosts, [](const auto& host) { return host->finished(); });
  if (!done) return {};

  if (std::string warning =
          memory_warning(network, options, context.bound.parameters.gpu.hbm_capacity);
      !warning.empty())
    context.result.notes.push_back(std::move(warning));
  DdpResult result = report_steps({program, job.ranks, *runner, context.trace});
  result.model = network.name();
  result.model_parameters = models::parameter_count(network);
  const double seconds = sim::to_seconds(result.step_time);
  const auto samples =
      static_cast<double>(spec.batch_per_gpu) * static_cast<double>(runner->group().size());
  result.samples_per_second = seconds > 0 ? samples / seconds : 0;
  context.result.ddp = std::move(result);
  return {};
}

}  // namespace railyard::scenarios
