// replay: a recorded step, run on the scenario's cluster.
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/replay_spec.h"
#include "scenarios/training_job.h"
#include "scenarios/where.h"
#include "scenarios/workloads.h"

namespace railyard::scenarios {
namespace {

using models::ReplayAction;
using models::ReplayStep;

// Of the collectives whose size a rank states for itself: nccl-tests' size is that of all.
bool per_rank(sim::Collective collective) {
  return collective == sim::Collective::all_gather ||
         collective == sim::Collective::reduce_scatter || collective == sim::Collective::gather ||
         collective == sim::Collective::scatter;
}

std::size_t index_in(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return names.push_back(name), names.size() - 1;
  return static_cast<std::size_t>(found - names.begin());
}

class Builder {
 public:
  Builder(Bound& bound, sim::Trace& trace, std::vector<std::string> groups)
      : bound_(bound), trace_(trace), groups_(std::move(groups)) {}

  Result<void> add(const std::vector<ReplayItemSpec>& items, std::vector<ReplayStep>& out) {
    for (const ReplayItemSpec& item : items) {
      ReplayStep step;
      step.action = item.action;
      step.before = item.before;
      step.after = item.after;
      step.call = item.waits_for;
      if (item.kernel) {
        step.launches = true;
        step.kernel = {*item.kernel, item.bound, trace_.name(item.name)};
      }
      if (!item.stream.empty())
        step.stream = static_cast<std::uint32_t>(index_in(streams, item.stream)) + 1;
      if (item.action == ReplayAction::call) RAILYARD_TRY(add_call(item, step));
      out.push_back(step);
    }
    return {};
  }

  models::ReplayProgram program;
  std::vector<std::string> streams;

 private:
  Result<void> add_call(const ReplayItemSpec& item, ReplayStep& step) {
    step.group = static_cast<std::uint32_t>(index_in(groups_, item.group));
    if (!item.collective) return {};
    RAILYARD_ASSIGN(const std::size_t ranks, group_size(bound_, item.group));
    models::GroupCall call;
    call.group = step.group;
    call.collective = *item.collective;
    call.element_size = models::element_size(item.dtype);
    const auto parts = per_rank(call.collective) ? static_cast<std::int64_t>(ranks) : 1;
    call.size = sim::bytes(item.size.raw() / parts / call.element_size * call.element_size);
    call.root = item.root;
    if (call.size.raw() == 0)
      return sim::bad_input(
          fmt::format("{} of {} bytes is less than an element for each of {} "
                      "ranks",
                      item.name, item.size.raw(), ranks));
    if (call.root >= ranks)
      return sim::bad_input(
          fmt::format("{} has root {}, but its group {} ranks", item.name, call.root, ranks));
    const std::string label = fmt::format("{} {}", sim::to_text(call.collective), item.group);
    step.collective = {program.calls.add(call), trace_.name(label)};
    return {};
  }

  Bound& bound_;
  sim::Trace& trace_;
  std::vector<std::string> groups_;
};

class Replay final : public TrainingWorkload {
 public:
  explicit Replay(ReplaySpec spec) : spec_(std::move(spec)) {
    for (const auto* list : {&spec_.forward, &spec_.backward, &spec_.after_backward})
      for (const ReplayItemSpec& item : *list)
        if (item.action == ReplayAction::call) index_in(groups_, item.group);
  }

  std::string_view key() const override { return "replay"; }
  std::vector<std::string> groups() const override { return groups_; }

 private:
  Result<void> with_program(const Scenario& scenario, Bound& bound, sim::Trace& trace,
                            const Use& use) const override {
    Builder builder(bound, trace, groups_);
    models::ReplayProgram& program = builder.program;
    program.iterations = spec_.training.iterations;
    for (const auto& [from, to] : {std::pair(&spec_.forward, &program.forward),
                                   std::pair(&spec_.backward, &program.backward),
                                   std::pair(&spec_.after_backward, &program.after_backward)})
      if (const auto added = builder.add(*from, *to); !added.ok())
        return at_path(scenario, "replay", added.error());
    program.streams = static_cast<std::uint32_t>(builder.streams.size());
    TrainingProgram training;
    training.scheme = "Replay";
    training.key = "replay";
    training.spec = &spec_.training;
    training.model = spec_.name;
    training.calls = &program.calls;
    training.groups = groups_;
    training.streams = builder.streams;
    training.start = [&](models::WorkloadRank& rank) { return models::run_replay(program, rank); };
    training.compute_alone = models::compute_time(program);
    training.host = models::replay_host(bound.parameters.host);
    training.launches = static_cast<double>(program.forward.size() + program.backward.size() +
                                            program.after_backward.size());
    return use(training);
  }

  ReplaySpec spec_;
  std::vector<std::string> groups_;
};

}  // namespace

Result<std::shared_ptr<const Workload>> decode_replay(const Place& place) {
  ReplaySpec spec;
  RAILYARD_TRY(decode(place, spec));
  return std::shared_ptr<const Workload>(std::make_shared<Replay>(std::move(spec)));
}

}  // namespace railyard::scenarios
