// A DistributedDataParallel job: builds the program, a GPU and a host thread per rank, runs them,
// and reads step time, overlap and buckets off the events and spans of the run.
#include <fmt/format.h>

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
    if (call.size.raw() == 0) {  // NCCL launches nothing
      plans.emplace_back();
      continue;
    }
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

// The collectives of the iterations that differ.
Result<void> plan_iterations(RunContext& context, const models::NeuralNetwork& network,
                             const models::DdpOptions& options, sim::CollectiveRunner& runner,
                             models::DdpProgram& program) {
  for (const std::int64_t iteration : program.distinct) {
    const models::DdpCalls calls = models::ddp_calls(network, program.plan, options, iteration);
    models::DdpCollectives plans;
    RAILYARD_TRY(make_plans(context, runner, calls.rebuild, plans.rebuild));
    RAILYARD_TRY(make_plans(context, runner, calls.buffers, plans.buffers));
    for (const std::vector<models::DdpCall>& bucket : calls.buckets)
      RAILYARD_TRY(make_plans(context, runner, bucket, plans.buckets.emplace_back()));
    RAILYARD_TRY(make_plans(context, runner, calls.unused, plans.unused));
    RAILYARD_TRY(make_plans(context, runner, calls.norm_forward, plans.norm_forward));
    RAILYARD_TRY(make_plans(context, runner, calls.norm_backward, plans.norm_backward));
    RAILYARD_TRY(make_plans(context, runner, calls.join, plans.join));
    RAILYARD_TRY(make_plans(context, runner, calls.final_model, plans.final_model));
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
    if (program.callback_stream) rank->callback = job.gpus[r]->add_stream();
    rank->runner = &runner;
    rank->group_rank = r;
    job.hosts[r]->start(models::run_ddp(program, *rank));
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

// What the steady iteration is not.
void add_notes(const models::DdpOptions& options, RunResult& result) {
  const bool power_sgd = options.hook.kind == models::CommHook::power_sgd ||
                         options.hook.kind == models::CommHook::batched_power_sgd;
  const std::int64_t start = options.hook.power_sgd.start_iter;
  if (power_sgd && options.iterations <= start)
    result.notes.push_back(
        fmt::format("PowerSGD compresses from iteration {} on (start_powerSGD_iter), and {} were "
                    "run: every bucket was reduced whole",
                    start + 1, options.iterations));
  if (!options.join.empty() && options.join.front() < options.iterations)
    result.notes.push_back(
        fmt::format("rank 0, whose step is shown, has joined after iteration {}: it only shadows "
                    "the others",
                    options.join.front()));
}

}  // namespace

Result<void> run_ddp_job(RunContext& context) {
  const DdpSpec& spec = *context.scenario.ddp;
  RAILYARD_ASSIGN(const models::NeuralNetwork network, network_of(spec));
  const auto asked = ddp_options(spec, context.bound.world.size());
  if (!asked.ok()) return at_path(context.scenario, "ddp.join", asked.error());
  const models::DdpOptions& options = asked.value();
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
  if (program.callback_stream)
    context.result.stream_names.emplace_back(
        options.hook.optimizer_in_backward ? "optimizer in backward" : "hook callback");
  if (!job.finished()) return {};

  if (std::string warning =
          memory_warning(network, options, context.bound.parameters.gpu.hbm_capacity);
      !warning.empty())
    context.result.notes.push_back(std::move(warning));
  add_notes(options, context.result);
  DdpResult result = report_steps({program, ranks, *runner, context.trace});
  result.model = network.name();
  result.model_parameters = models::parameter_count(network);
  const double seconds = sim::to_seconds(result.step_time);
  const auto active = options.join.empty() ? std::ptrdiff_t(runner->group().size())
                                           : std::ranges::count(options.join, options.iterations);
  const auto samples = static_cast<double>(spec.batch_per_gpu * spec.gradient_accumulation) *
                       static_cast<double>(active);
  result.samples_per_second = seconds > 0 ? samples / seconds : 0;
  context.result.ddp = std::move(result);
  return {};
}

}  // namespace railyard::scenarios
