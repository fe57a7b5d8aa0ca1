// Collectives one after the other, as nccl-tests runs them: all ranks call at once, the next call
// begins when the last rank has left. Per call:
//   time = max(host.collective_launch, host.collective_start + schedule)
// since launches of consecutive iterations overlap with the kernels before them, a short collective
// is bound by how fast the host can launch. `plain` has neither cost.
#include <algorithm>
#include <map>

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
  const CollectiveRun* run = nullptr;
  sim::Bytes size{};  // nccl-tests' size column
  sim::CollectiveCall call;
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
    if (next_ == steps_.size()) return;
    const Step& step = steps_[next_++];
    begin_ = context_->simulation.now();
    for (const auto& [runner, plan] : step.plans)
      left_ += static_cast<std::uint32_t>(runner->group().size());
    for (const auto& [runner, plan] : step.plans)
      for (std::uint32_t rank = 0; rank < runner->group().size(); ++rank)
        runner->enter(rank, plan, *this);
  }

  void on_collective_done(const sim::CollectiveRunner&, std::uint32_t, std::uint32_t) override {
    if (--left_ > 0) return;
    finish_step(steps_[next_ - 1]);
    start();
  }

 private:
  void finish_step(const Step& step) {
    const sim::CollectiveRunner& runner = *step.plans.front().first;
    const sim::Schedule& schedule = runner.schedule(step.plans.front().second);
    const sim::HostParameters& host = context_->bound.parameters.host;
    CollectiveRow row;
    row.collective = step.run->collective;
    row.size = step.size;
    row.dtype = nccl_tests_dtype(step.run->dtype);
    row.count = step.call.size.raw() / step.call.element_size;
    row.root = sim::is_rooted(row.collective) ? std::int64_t{step.run->root} : -1;
    row.group = step.run->group;
    row.ranks = runner.group().size();
    row.algorithm = step.call.algorithm;
    row.protocol = step.call.protocol;
    row.channels = schedule.channels;
    row.time = context_->simulation.now() - begin_;
    if (row.protocol != sim::Protocol::plain)
      row.time = std::max(host.collective_launch, host.collective_start + row.time);
    const double seconds = sim::to_seconds(row.time);
    row.algbw = seconds > 0 ? static_cast<double>(step.size.raw()) / seconds * 1e-9 : 0;
    row.busbw = row.algbw * sim::bus_bandwidth_factor(row.collective, row.ranks);
    for (const auto& [each, plan] : step.plans) row.messages += each->records().back().messages;
    context_->result.collectives.push_back(row);
  }

  RunContext* context_;
  std::vector<Step> steps_;
  std::size_t next_ = 0;
  std::uint32_t left_ = 0;
  sim::Time begin_{};
};

// nccl-tests' size column to NCCL's count: AllGather, ReduceScatter, Gather and Scatter count one
// rank's part, and nccl-tests rounds down to whole elements for every rank.
sim::Bytes call_size(sim::Collective collective, sim::Bytes size, std::size_t ranks,
                     std::int64_t element) {
  const auto n = static_cast<std::int64_t>(ranks);
  if (sim::nccl_tests_size(collective, sim::bytes(1), 2).raw() == 2)
    return sim::bytes(size.raw() / n / element * element);
  if (collective == sim::Collective::all_to_all)
    return sim::bytes(size.raw() / n / element * element * n);
  return sim::bytes(size.raw() / element * element);
}

Result<Step> make_step(RunContext& context, const CollectiveRun& run, sim::Bytes size,
                       const std::vector<sim::CollectiveRunner*>& runners) {
  Step step;
  step.run = &run;
  const std::size_t ranks = runners.front()->group().size();
  const std::int64_t element = models::element_size(run.dtype);
  const sim::Bytes per_call = call_size(run.collective, size, ranks, element);
  step.call = choose(context.scenario, run.collective, per_call, element);
  step.call.root = run.root;
  step.size = sim::nccl_tests_size(run.collective, per_call, ranks);
  for (sim::CollectiveRunner* runner : runners) {
    RAILYARD_ASSIGN(const sim::PlanId plan, runner->plan(step.call));
    step.plans.emplace_back(runner, plan);
  }
  return step;
}

}  // namespace

Result<void> run_collectives(RunContext& context) {
  std::map<std::string, std::vector<sim::CollectiveRunner*>> runners;  // by group
  std::vector<std::unique_ptr<sim::CollectiveRunner>> owned;
  for (Communication& communication : context.bound.communications) {
    owned.push_back(make_runner(context, communication));
    runners[communication.name].push_back(owned.back().get());
  }
  std::vector<Step> steps;
  for (const CollectiveRun& run : context.scenario.collectives)
    for (const sim::Bytes size : run.sizes) {
      RAILYARD_ASSIGN(Step step, make_step(context, run, size, runners.at(run.group)));
      steps.push_back(std::move(step));
    }
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
