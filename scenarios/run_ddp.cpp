// A DistributedDataParallel job: builds the program, a GPU and a host thread per rank, runs them,
// and reads step time, overlap and buckets off the events and spans of the run.
#include <algorithm>
#include <memory>
#include <vector>

#include "models/compute/kernels.h"
#include "models/ddp/step.h"
#include "scenarios/ddp_job.h"
#include "scenarios/job.h"
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

std::vector<std::unique_ptr<models::DdpRank>> start_ranks(const models::DdpProgram& program,
                                                          sim::CollectiveRunner& runner, Job& job) {
  std::vector<std::unique_ptr<models::DdpRank>> ranks;
  for (std::uint32_t r = 0; r < runner.group().size(); ++r) {
    auto rank = std::make_unique<models::DdpRank>();
    rank->host = job.hosts[r].get();
    rank->compute = job.gpus[r]->add_stream();
    rank->communication = job.gpus[r]->add_stream();
    if (!program.compress.empty()) rank->callback = job.gpus[r]->add_stream();
    rank->runner = &runner;
    rank->group_rank = r;
    job.hosts[r]->start(models::run_ddp(program, *rank));
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

}  // namespace

Result<void> run_ddp_job(RunContext& context) {
  const DdpSpec& spec = *context.scenario.ddp;
  RAILYARD_ASSIGN(const models::NeuralNetwork network, network_of(spec));
  const models::DdpOptions options = ddp_options(spec);
  const models::KernelModel kernels(context.bound.parameters.gpu, options.compute);
  auto built = models::build_ddp_program(network, options, kernels, context.trace);
  if (!built.ok()) return at_path(context.scenario, "ddp", built.error());
  models::DdpProgram program = std::move(built).value();
  Communication& communication = *communications_of(context.bound, std::string(kWorld)).front();
  const std::unique_ptr<sim::CollectiveRunner> runner = make_runner(context, communication);
  RAILYARD_TRY(plan_iterations(context, network, options, *runner, program));

  Job job = make_job(context, models::ddp_host(context.bound.parameters.host, options));
  const auto ranks = start_ranks(program, *runner, job);
  run_job(context, {runner.get()}, job);
  context.result.stream_names = {"compute", "communication"};
  if (!program.compress.empty()) context.result.stream_names.emplace_back("hook callback");
  if (!job.finished()) return {};

  if (std::string warning =
          memory_warning(network, options, context.bound.parameters.gpu.hbm_capacity);
      !warning.empty())
    context.result.notes.push_back(std::move(warning));
  DdpResult result = report_steps({program, ranks, *runner, context.trace});
  result.model = network.name();
  result.model_parameters = models::parameter_count(network);
  const double seconds = sim::to_seconds(result.step_time);
  const auto samples = static_cast<double>(spec.batch_per_gpu * spec.gradient_accumulation) *
                       static_cast<double>(runner->group().size());
  result.samples_per_second = seconds > 0 ? samples / seconds : 0;
  context.result.ddp = std::move(result);
  return {};
}

}  // namespace railyard::scenarios
