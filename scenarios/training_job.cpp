#include "scenarios/training_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "models/compute/kernels.h"
#include "scenarios/estimate_parts.h"
#include "scenarios/job.h"
#include "scenarios/measure_step.h"
#include "scenarios/where.h"
#include "sim/schedule.h"

namespace railyard::scenarios {
namespace {

// One communicator at work, with the plans of the program's calls on its group.
struct Running {
  std::uint32_t group = 0;  // of the program
  Communication* communication = nullptr;
  std::unique_ptr<sim::CollectiveRunner> runner;
  std::vector<sim::PlanId> plans;  // by CallId; invalid for other groups' calls
};

struct Communicators {
  std::vector<Running> all;
  std::vector<std::vector<std::size_t>> of_rank;  // by rank of the world, by group: index into all
};

constexpr std::size_t kNotMember = ~std::size_t{0};

// Plans the calls of the table that have none yet.
Result<void> plan_calls(const RunContext& context, const TrainingProgram& program,
                        Running& running) {
  for (std::size_t c = running.plans.size(); c < program.calls->calls().size(); ++c) {
    running.plans.emplace_back();
    const models::GroupCall& call = program.calls->calls()[c];
    if (call.group != running.group) continue;
    RAILYARD_ASSIGN(sim::CollectiveCall chosen,
                    choose(context.scenario, *running.communication,
                           {call.collective, call.size, call.element_size}));
    chosen.root = call.root;
    chosen.in_place = call.collective == sim::Collective::all_reduce ||
                      call.collective == sim::Collective::scatter;
    const auto plan = running.runner->plan(chosen);
    if (!plan.ok()) return at_call(context.scenario, program.key, chosen.size, plan.error());
    running.plans.back() = plan.value();
  }
  return {};
}

Result<Communicators> make_communicators(RunContext& context, const TrainingProgram& program) {
  Communicators out;
  out.of_rank.assign(context.bound.world.size(),
                     std::vector<std::size_t>(program.groups.size(), kNotMember));
  for (std::uint32_t g = 0; g < program.groups.size(); ++g)
    for (Communication* communication : communications_of(context.bound, program.groups[g])) {
      for (const sim::Member& member : communication->group)
        out.of_rank[member.rank.index()][g] = out.all.size();
      Running running{g, communication, make_runner(context, *communication), {}};
      RAILYARD_TRY(plan_calls(context, program, running));
      out.all.push_back(std::move(running));
    }
  return out;
}

std::uint32_t group_rank_of(const sim::Group& group, std::size_t rank) {
  const auto found = std::ranges::find_if(
      group, [&](const sim::Member& member) { return member.rank.index() == rank; });
  return static_cast<std::uint32_t>(found - group.begin());
}

std::vector<std::unique_ptr<models::WorkloadRank>> start_ranks(const TrainingProgram& program,
                                                               const Communicators& communicators,
                                                               Job& job) {
  std::vector<std::unique_ptr<models::WorkloadRank>> ranks;
  for (std::size_t r = 0; r < job.hosts.size(); ++r) {
    auto rank = std::make_unique<models::WorkloadRank>();
    rank->index = static_cast<std::uint32_t>(r);
    rank->host = job.hosts[r].get();
    rank->calls = program.calls;
    rank->keep_issued = r == 0 || std::ranges::find(program.stages, r) != program.stages.end();
    rank->compute = job.gpus[r]->add_stream();
    for (const std::size_t index : communicators.of_rank[r]) {
      models::Membership member;
      member.stream = job.gpus[r]->add_stream();
      if (index != kNotMember) {
        member.runner = communicators.all[index].runner.get();
        member.group_rank = group_rank_of(member.runner->group(), r);
        member.plans = &communicators.all[index].plans;
      }
      rank->groups.push_back(member);
    }
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

using Ranks = std::vector<std::unique_ptr<models::WorkloadRank>>;

sim::Time fired(const models::WorkloadRank& rank, sim::GpuEventId event) {
  return rank.host->gpu().fire_time(event);
}

// End of an iteration (0 = the start of the run) on the last rank.
sim::Time last_end(const Ranks& ranks, std::size_t iteration) {
  sim::Time last{};
  if (iteration == 0) return last;
  for (const auto& rank : ranks)
    last = std::max(last, fired(*rank, rank->marks[iteration - 1].end));
  return last;
}

const std::string& label_of(const TrainingProgram& program, std::uint32_t group) {
  return program.labels.empty() ? program.groups[group] : program.labels[group];
}

// A Scatter in place of two ranks is a send and a receive.
bool is_message(const sim::Schedule& schedule) {
  return schedule.call.collective == sim::Collective::scatter && schedule.ranks == 2 &&
         schedule.call.in_place;
}

// The mean over the group; of a message, what this rank sends of it.
sim::Bytes sent_by_rank(const sim::Schedule& schedule, std::uint32_t group_rank) {
  const sim::Bytes all = sim::totals(schedule).payload;
  if (!is_message(schedule)) return all / static_cast<std::int64_t>(schedule.ranks);
  return group_rank == schedule.call.root ? all : sim::bytes(0);
}

CallRow empty_row(const TrainingProgram& program, const models::GroupCall& call,
                  const sim::Schedule& schedule) {
  CallRow row;
  row.collective = call.collective;
  row.group = label_of(program, call.group);
  row.ranks = schedule.ranks;
  row.message = is_message(schedule);
  row.size =
      row.message ? call.size : sim::nccl_tests_size(call.collective, call.size, schedule.ranks);
  row.algorithm = schedule.call.algorithm;
  row.protocol = schedule.call.protocol;
  return row;
}

// One row per kind of call, in the order of their first issue.
void add_calls(const TrainingProgram& program, const models::WorkloadRank& rank,
               const std::vector<Interval>& kernels, const sim::Trace& trace,
               TrainingResult& result) {
  const std::size_t iteration = rank.marks.size() - 1;  // the last one
  std::map<models::CallId, std::size_t> row_of;
  std::vector<sim::Duration> on_wire;
  for (const models::IssuedCall& issued : rank.issued) {
    if (issued.iteration != iteration) continue;
    const models::Membership& member = rank.member(issued.what.call);
    const sim::PlanId plan = (*member.plans)[issued.what.call.index()];
    const sim::Schedule& schedule = member.runner->schedule(plan);
    const auto [place, added] = row_of.emplace(issued.what.call, result.calls.size());
    if (added) {
      result.calls.push_back(empty_row(program, (*program.calls)[issued.what.call], schedule));
      result.calls.back().example = trace.names()[issued.what.name];
      on_wire.emplace_back();
    }
    CallRow& row = result.calls[place->second];
    const sim::CallRecord& record = member.runner->records()[issued.number];
    const Interval call{record.enter[member.group_rank], record.end[member.group_rank]};
    const sim::Time last = *std::ranges::max_element(record.enter);
    ++row.count;
    row.sent += sent_by_rank(schedule, member.group_rank);
    row.time += call.end - call.start;
    row.waited += std::min(last, call.end) - call.start;
    row.exposed += sim::uncovered(call, kernels);
    on_wire[place->second] += record.done - std::max(record.begin, last);
    row.busbw = bus_bandwidth(schedule, on_wire[place->second] / row.count);
  }
}

// What the first rank of a stage did in the last iteration.
StageRow stage_row(const TrainingProgram& program, const models::WorkloadRank& rank,
                   const sim::Trace& trace, const Interval& step) {
  StageRow row;
  row.rank = rank.index;
  StepResult own;
  const std::vector<Interval> kernels = measure_step(trace, rank.index, step, own);
  row.compute = own.compute;
  std::vector<Interval> neighbours;
  for (const models::IssuedCall& issued : rank.issued) {
    const models::GroupCall& call = (*program.calls)[issued.what.call];
    if (issued.iteration + 1 != rank.marks.size() || call.collective != sim::Collective::scatter)
      continue;
    const models::Membership& member = rank.member(issued.what.call);
    const sim::CallRecord& record = member.runner->records()[issued.number];
    // A stage that is done early may already wait in this iteration's first message.
    neighbours.push_back({std::max(record.enter[member.group_rank], step.start),
                          std::min(record.end[member.group_rank], step.end)});
  }
  row.waited = sim::uncovered(sim::united(std::move(neighbours)), kernels);
  row.exposed = own.exposed - row.waited;
  row.idle = step.end - step.start - row.compute - own.exposed;
  return row;
}

void add_rates(const RunContext& context, const TrainingProgram& program, TrainingResult& result) {
  if (program.network == nullptr) return;
  const double seconds = sim::to_seconds(result.step_time);
  const auto ranks = static_cast<double>(context.bound.world.size());
  const double samples = program.samples_per_step * program.data_ranks;
  result.samples_per_second = seconds > 0 ? samples / seconds : 0;
  result.sequence_length =
      program.spec->sequence_length ? static_cast<double>(*program.spec->sequence_length) : 0;
  const auto flops = static_cast<double>(models::training_flops(*program.network).raw());
  result.flops_per_gpu = result.samples_per_second * flops / ranks;
  const double peak =
      models::KernelModel(context.bound.parameters.gpu, compute_dtype(program.spec->precision))
          .peak();
  result.mfu = peak > 0 ? result.flops_per_gpu / peak : 0;
}

void add_memory(RunContext& context, const TrainingProgram& program, TrainingResult& result) {
  result.memory = program.memory;
  result.memory_capacity = static_cast<double>(context.bound.parameters.gpu.hbm_capacity.raw());
  double sum = 0;
  std::string parts;
  for (const MemoryRow& row : result.memory) {
    sum += row.bytes;
    parts += fmt::format("{}{} {:.1f} GB", parts.empty() ? "" : ", ", row.what, row.bytes * 1e-9);
  }
  if (result.memory_capacity <= 0 || sum <= result.memory_capacity) return;
  context.result.notes.push_back(
      fmt::format("out of memory: {} are {:.1f} GB per GPU without any activations, and it has "
                  "{:.1f} GB (gpu.hbm_capacity)",
                  parts, sum * 1e-9, result.memory_capacity * 1e-9));
}

std::shared_ptr<TrainingResult> report(RunContext& context, const TrainingProgram& program,
                                       const Ranks& ranks) {
  auto out = std::make_shared<TrainingResult>();
  TrainingResult& result = *out;
  const models::WorkloadRank& first = *ranks.front();
  const std::size_t iterations = first.marks.size();
  result.scheme = program.scheme;
  result.model = program.network == nullptr ? program.model : program.network->name();
  if (program.network != nullptr)
    result.model_parameters = models::parameter_count(*program.network);
  for (std::size_t i = 1; i <= iterations; ++i)
    result.iterations.push_back(last_end(ranks, i) - last_end(ranks, i - 1));
  result.step_time = result.iterations.back();
  const models::WorkloadRank::Marks& marks = first.marks.back();
  const sim::Time origin =
      iterations > 1 ? fired(first, first.marks[iterations - 2].end) : sim::Time{};
  result.forward = fired(first, marks.forward_end) - origin;
  result.backward = fired(first, marks.backward_end) - fired(first, marks.forward_end);
  result.after_backward = fired(first, marks.end) - fired(first, marks.backward_end);
  result.compute_alone = program.compute_alone;
  const std::vector<Interval> kernels =
      measure_step(context.trace, context.bound.world.front().rank.value(),
                   {origin, fired(first, marks.end)}, result);
  add_calls(program, first, kernels, context.trace, result);
  for (const std::uint32_t rank : program.stages)
    result.stages.push_back(
        stage_row(program, *ranks[rank], context.trace,
                  {last_end(ranks, iterations - 1), last_end(ranks, iterations)}));
  add_rates(context, program, result);
  add_memory(context, program, result);
  return out;
}

Result<void> run_program(RunContext& context, const TrainingProgram& program) {
  RAILYARD_ASSIGN(Communicators communicators, make_communicators(context, program));
  Job job = make_job(context, program.host.value_or(context.bound.parameters.host));
  const Ranks ranks = start_ranks(program, communicators, job);
  const auto add_call = [&](const models::GroupCall& call) -> Result<models::CallId> {
    const models::CallId id = program.open_calls->add(call);
    for (Running& running : communicators.all) RAILYARD_TRY(plan_calls(context, program, running));
    return id;
  };
  for (const auto& rank : ranks)
    if (program.open_calls != nullptr) rank->add_call = add_call;
  for (std::size_t r = 0; r < ranks.size(); ++r) job.hosts[r]->start(program.start(*ranks[r]));
  std::vector<const sim::CollectiveRunner*> runners;
  for (const Running& running : communicators.all) runners.push_back(running.runner.get());
  run_job(context, runners, job);
  context.result.stream_names = {"compute"};
  const auto& group_streams = program.labels.empty() ? program.groups : program.labels;
  for (const std::vector<std::string>* names : {&group_streams, &program.streams})
    context.result.stream_names.insert(context.result.stream_names.end(), names->begin(),
                                       names->end());
  if (!job.finished()) return {};
  if (program.notes)
    for (std::string& note : program.notes()) context.result.notes.push_back(std::move(note));
  context.result.training = report(context, program, ranks);
  return {};
}

Result<void> estimate_program(const Scenario& scenario, Bound& bound,
                              const TrainingProgram& program, Estimate& estimate) {
  const auto iterations = static_cast<double>(program.spec->iterations);
  const bool once =
      scenario.engine.replay && scenario.traffic.empty() && bound.communications.size() == 1;
  for (std::size_t c = 0; c < program.calls->calls().size(); ++c) {
    const models::GroupCall& call = program.calls->calls()[c];
    const double times =
        once ? 1 : iterations * static_cast<double>(program.calls->uses(models::CallId(c)));
    for (Communication* communication : communications_of(bound, program.groups[call.group])) {
      RAILYARD_ASSIGN(
          const sim::CollectiveCall chosen,
          choose(scenario, *communication, {call.collective, call.size, call.element_size}));
      const auto added = add_call(chosen, times, *communication, estimate);
      if (!added.ok()) return at_call(scenario, program.key, chosen.size, added.error());
    }
  }
  add_launches(program.launches, static_cast<double>(bound.world.size()), iterations, estimate);
  return {};
}

}  // namespace

double bus_bandwidth(const sim::Schedule& schedule, sim::Duration time) {
  const double seconds = sim::to_seconds(time);
  if (seconds <= 0) return 0;
  const sim::Bytes size =
      sim::nccl_tests_size(schedule.call.collective, schedule.call.size, schedule.ranks);
  return static_cast<double>(size.raw()) / seconds * 1e-9 *
         sim::bus_bandwidth_factor(schedule.call.collective, schedule.ranks);
}

Result<std::size_t> group_size(Bound& bound, const std::string& group) {
  const std::vector<Communication*> found = communications_of(bound, group);
  if (found.empty()) return sim::bad_input("unknown group '" + group + "'");
  return found.front()->group.size();
}

Result<void> TrainingWorkload::add_estimate(const Scenario& scenario, Bound& bound,
                                            Estimate& estimate) const {
  sim::Trace names(0);
  return with_program(scenario, bound, names, [&](const TrainingProgram& program) {
    return estimate_program(scenario, bound, program, estimate);
  });
}

Result<void> TrainingWorkload::run(RunContext& context) const {
  return with_program(
      context.scenario, context.bound, context.trace,
      [&](const TrainingProgram& program) { return run_program(context, program); });
}

}  // namespace railyard::scenarios
