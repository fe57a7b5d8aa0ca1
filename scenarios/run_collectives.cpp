// Collectives one after the other, as nccl-tests runs them: all ranks call at once, the next call
// begins when the last rank has left. Per call:
//   time = max(host.collective_launch x GPUs per process, host.collective_start + schedule)
// since launches of consecutive iterations overlap with the kernels before them, a short collective
// is bound by how fast the host can launch: one thread launches for all GPUs of its process, unless
// each has a thread. `plain`
// has neither cost.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "scenarios/faults.h"
#include "scenarios/host.h"
#include "scenarios/planned_call.h"
#include "scenarios/run_parts.h"

namespace railyard::scenarios {
namespace {

const char* nccl_tests_dtype(models::Dtype dtype) {
  switch (dtype) {
    case models::Dtype::fp64: return "double";
    case models::Dtype::fp32:
    case models::Dtype::tf32: return "float";
    case models::Dtype::bf16: return "bfloat16";
    case models::Dtype::fp16: return "half";
    case models::Dtype::fp8: return "f8e4m3";
    case models::Dtype::int64: return "int64";
    case models::Dtype::int32: return "int32";
    case models::Dtype::int8: return "int8";
    case models::Dtype::bool8: return "uint8";
  }
  return "?";
}

// One row of the table: the same call on all communicators of a group at once.
struct Step {
  PlannedCall planned;
  std::string label;
  std::uint32_t name = 0;  // the label in the trace
  std::vector<std::pair<sim::CollectiveRunner*, sim::PlanId>> plans;
};

class Sweep final : public sim::EventHandler, public sim::CollectiveListener {
 public:
  Sweep(RunContext& context, std::vector<Step> steps)
      : context_(&context), steps_(std::move(steps)) {}

  void start() { context_->simulation.queue().schedule(context_->simulation.now(), *this, 0, 0); }
  [[nodiscard]] bool finished() const { return next_ == steps_.size() && left_ == 0; }

  // All ranks of all communicators enter the next call.
  void on_event(std::uint32_t, std::uint32_t) override {
    if (next_ == steps_.size()) return end_faults(*context_);
    const Step& step = steps_[next_++];
    begin_ = context_->simulation.now();
    for (const auto& [runner, plan] : step.plans)
      left_ += static_cast<std::uint32_t>(runner->group().size());
    for (const auto& [runner, plan] : step.plans)
      for (std::uint32_t rank = 0; rank < runner->group().size(); ++rank)
        runner->enter(rank, plan, *this);
  }

  void on_collective_done(const sim::CollectiveRunner& runner, std::uint32_t rank,
                          std::uint32_t) override {
    context_->trace.add({runner.group()[rank].rank.value(), steps_[next_ - 1].name, 0,
                         sim::SpanKind::collective, begin_, context_->simulation.now()});
    if (--left_ > 0) return;
    finish_step(steps_[next_ - 1]);
    start();
  }

 private:
  void finish_step(const Step& step) {
    const sim::CollectiveRunner& runner = *step.plans.front().first;
    const sim::Schedule& schedule = runner.schedule(step.plans.front().second);
    const sim::HostParameters& host = context_->bound.parameters.host;
    const CollectiveRun& run = context_->scenario.collectives[step.planned.run];
    const sim::CollectiveCall& call = step.planned.call;
    CollectiveRow row;
    row.collective = run.collective;
    row.size = step.planned.size;
    row.dtype = nccl_tests_dtype(run.dtype);
    row.count = call.size.raw() / call.element_size;
    row.root = sim::is_rooted(row.collective) ? std::int64_t{run.root} : -1;
    row.group = run.group;
    row.label = step.label;
    row.ranks = runner.group().size();
    row.algorithm = call.algorithm;
    row.protocol = call.protocol;
    row.channels = schedule.channels;
    row.time = context_->simulation.now() - begin_;
    if (row.protocol != sim::Protocol::plain)
      row.time = std::max(launch_floor(), host.collective_start + row.time);
    const double seconds = sim::to_seconds(row.time);
    row.algbw = seconds > 0 ? static_cast<double>(row.size.raw()) / seconds * 1e-9 : 0;
    row.busbw = row.algbw * sim::bus_bandwidth_factor(row.collective, row.ranks);
    for (const auto& [each, plan] : step.plans) row.messages += each->records().back().messages;
    context_->result.collectives.push_back(row);
  }

  // What one iteration takes of the thread that launches it.
  [[nodiscard]] sim::Duration launch_floor() const {
    const topologies::PlacementSpec& ranks = context_->scenario.ranks;
    const auto most = static_cast<std::uint32_t>(context_->bound.world.size());
    return context_->bound.parameters.host.collective_launch *
           (ranks.thread_per_gpu ? 1U : std::min(ranks.gpus_per_process, most));
  }

  RunContext* context_;
  std::vector<Step> steps_;
  std::size_t next_ = 0;
  std::uint32_t left_ = 0;
  sim::Time begin_{};
};

Result<Step> make_step(RunContext& context, const PlannedCall& planned,
                       const std::vector<sim::CollectiveRunner*>& runners) {
  Step step;
  for (sim::CollectiveRunner* runner : runners) {
    const auto plan = runner->plan(planned.call);
    if (!plan.ok()) return at_planned(context.scenario, planned, plan.error());
    step.plans.emplace_back(runner, plan.value());
  }
  const CollectiveRun& run = context.scenario.collectives[planned.run];
  step.label = fmt::format("{} {}{}", sim::to_text(run.collective), sim::to_text(planned.size),
                           run.group == kWorld ? "" : " " + run.group);
  step.name = context.trace.name(step.label);
  step.planned = planned;
  return step;
}

// All calls of the scenario, and a note where one could not have the protocol that was chosen.
Result<std::vector<Step>> make_steps(
    RunContext& context,
    const std::map<std::string, std::vector<sim::CollectiveRunner*>>& runners) {
  std::vector<Step> steps;
  bool replaced = false;
  for (std::size_t r = 0; r < context.scenario.collectives.size(); ++r) {
    const CollectiveRun& run = context.scenario.collectives[r];
    const std::vector<sim::CollectiveRunner*>& group = runners.at(run.group);
    for (const sim::Bytes size : run.sizes) {
      RAILYARD_ASSIGN(const PlannedCall planned,
                      planned_call(context.scenario, r, size,
                                   *communications_of(context.bound, run.group).front()));
      replaced = replaced || planned.other_protocol;
      RAILYARD_ASSIGN(Step step, make_step(context, planned, group));
      steps.push_back(std::move(step));
    }
  }
  if (replaced)
    context.result.notes.emplace_back(
        "warning: AllToAll, Gather, Scatter and SendRecv are sends and receives, which have no "
        "LL128; where it is chosen by size they ran with Simple");
  return steps;
}

}  // namespace

Result<void> run_collectives(RunContext& context) {
  std::map<std::string, std::vector<sim::CollectiveRunner*>> runners;  // by group
  std::vector<std::unique_ptr<sim::CollectiveRunner>> owned;
  std::vector<const sim::CollectiveRunner*> all;
  for (Communication& communication : context.bound.communications) {
    owned.push_back(make_runner(context, communication));
    runners[communication.name].push_back(owned.back().get());
    all.push_back(owned.back().get());
  }
  context.result.stream_names = {"collectives"};
  RAILYARD_ASSIGN(std::vector<Step> steps, make_steps(context, runners));
  if (!context.host->open(all)) return {};
  Sweep sweep(context, std::move(steps));
  sweep.start();
  context.result.outcome = run_queue(context);
  for (const auto& runner : owned) {
    account(*runner, context);
    if (context.result.outcome != sim::EventQueue::Outcome::drained || sweep.finished()) continue;
    for (std::string& line : runner->waiting(16))
      context.result.unfinished.push_back(std::move(line));
  }
  return {};
}

}  // namespace railyard::scenarios
