#include "scenarios/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>

#include "scenarios/error_band.h"
#include "scenarios/fallback_loss.h"
#include "scenarios/faults.h"
#include "scenarios/host.h"
#include "scenarios/kv_result.h"
#include "scenarios/run_parts.h"
#include "scenarios/training_result.h"
#include "scenarios/workload.h"

namespace railyard::scenarios {
namespace {

// Between looks at limits. Few, since a single event may solve a very large network.
constexpr std::uint64_t kEventsPerSlice = 1'000;
constexpr std::uint64_t kSlicesPerReport = 32;  // of progress
constexpr double kLongestTimeout = 1e9;         // seconds; what a clock can add

void add_notes(const Scenario& scenario, RunResult& result) {
  const bool tree = std::ranges::any_of(
      scenario.nccl, [](const NcclChoice& c) { return c.algorithm == sim::Algorithm::tree; });
  const bool others = scenario.ddp
                          ? scenario.ddp->broadcast_buffers
                          : std::ranges::any_of(scenario.collectives, [](const CollectiveRun& r) {
                              return r.collective != sim::Collective::all_reduce;
                            });
  if (tree && others)
    result.notes.emplace_back(
        "Tree exists for AllReduce only; other collectives ran as Ring, as in NCCL");
  if (scenario.nccl_setup.choose &&
      std::ranges::any_of(scenario.cluster.changes,
                          [](const topologies::LinkChange& c) { return c.pcie_rate.has_value(); }))
    result.notes.emplace_back(
        "warning: NCCL reads the speed that PCIe links have trained to; its plan here is that of a "
        "machine whose links are as built");
  std::map<std::string_view, int> origins;
  for (const sim::Provenance& each : scenario.parameters.provenance)
    ++origins[to_text(each.origin)];
  std::string text;
  for (const auto& [origin, count] : origins)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, origin);
  if (!text.empty())
    result.notes.push_back(
        fmt::format("profile {}: parameters by origin: {}", scenario.parameters.name, text));
  for (std::string& note : error_notes(scenario)) result.notes.push_back(std::move(note));
}

// What NCCL's plan of the groups loses or approximates, each line once.
void add_plan_warnings(const Bound& bound, RunResult& result) {
  std::set<std::string> seen;
  for (const Communication& communication : bound.communications) {
    if (!communication.plan) continue;
    for (const std::string& line : communication.plan->warnings)
      if (seen.insert(line).second) result.notes.push_back("warning: " + line);
  }
}

}  // namespace

Result<RunResult> run_bound(const Scenario& scenario, const RunOptions& options, Bound& bound,
                            const SharedState& shared) {
  RunResult result;
  sim::Simulation simulation(bound.topology, *bound.costs);
  const std::uint32_t wanted =
      scenario.workload
          ? scenario.workload->traced_ranks(static_cast<std::uint32_t>(bound.world.size()))
          : 1;
  sim::Trace trace(std::max(wanted, options.trace_ranks));
  RunContext context{scenario, options, bound, simulation, trace, shared, result, {}, {}};
  if (shared.facts != nullptr) shared.facts->limiting.assign(bound.topology.links.size(), false);
  RAILYARD_ASSIGN(const std::unique_ptr<TrafficSource> traffic, start_traffic(context));
  RAILYARD_ASSIGN(const std::unique_ptr<Faults> faults, start_faults(context));
  context.faults = faults.get();
  RAILYARD_TRY(start_host(context));
  if (scenario.ddp)
    RAILYARD_TRY(run_ddp_job(context));
  else if (scenario.workload)
    RAILYARD_TRY(scenario.workload->run(context));
  else if (!scenario.collectives.empty())
    RAILYARD_TRY(run_collectives(context));
  else
    result.outcome = run_queue(context);
  std::vector<std::string> reasons = context.host->failures();
  if (faults)
    for (std::string& line : faults->given_up()) reasons.push_back(std::move(line));
  result.unfinished.insert(result.unfinished.begin(), reasons.begin(), reasons.end());
  result.host_losses = context.host->losses();
  result.duration = run_time(context);
  traffic->finish();
  result.events += simulation.queue().executed();
  result.solves += simulation.network().solves();
  if (shared.facts != nullptr) {
    for (std::size_t l = 0; l < shared.facts->limiting.size(); ++l)
      if (simulation.network().limiting(sim::ResourceId(l))) shared.facts->limiting[l] = true;
    shared.facts->events = static_cast<double>(result.events);
  }
  report_links(context);
  result.ranks = bound.world.size();
  result.nodes = bound.topology.nodes.size();
  result.machine = scenario.cluster.machine;
  result.profile = scenario.parameters.name;
  result.trace_hash = trace.hash();
  result.span_names = trace.names();
  for (const sim::Span& span : trace.spans())
    if (span.rank < options.trace_ranks) result.spans.push_back(span);
  return result;
}

void MessageKeeper::on_message(const sim::Schedule& schedule, const sim::Message& message) {
  if (result_->kept_messages.size() >= limit_) return;
  const sim::Connection& connection = schedule.connections[message.connection.index()];
  const sim::Lane& from = schedule.lanes[connection.from.index()];
  const sim::Lane& to = schedule.lanes[connection.to.index()];
  const auto job_rank = [this](const sim::Lane& lane) { return (*group_)[lane.rank].rank.value(); };
  result_->kept_messages.push_back({std::string(to_text(schedule.call.collective)), job_rank(from),
                                    job_rank(to), from.channel, message.payload, message.start,
                                    message.arrival});
}

bool may_replay(const RunContext& context) {
  return context.scenario.engine.replay && context.options.message_limit == 0 &&
         context.scenario.traffic.empty() &&
         !(context.scenario.workload && context.scenario.workload->sends()) &&
         !(context.scenario.faults && context.scenario.faults->disturb_network()) &&
         context.bound.communications.size() == 1;
}

namespace {

// Why the run should stop now, if it should.
std::optional<sim::EventQueue::Outcome> stop_reason(const RunContext& context) {
  if (context.stop) return sim::EventQueue::Outcome::drained;
  const RunLimits& limits = context.options.limits;
  if (limits.interrupted != nullptr && limits.interrupted->load())
    return sim::EventQueue::Outcome::interrupted;
  if (std::chrono::steady_clock::now() > context.shared.deadline)
    return sim::EventQueue::Outcome::limit;
  return std::nullopt;
}

}  // namespace

std::unique_ptr<sim::CollectiveRunner> make_runner(RunContext& context,
                                                   Communication& communication) {
  sim::CollectiveRunner::Options options;
  options.credits = context.scenario.engine.credits;
  options.replay = may_replay(context);
  if (context.options.message_limit > 0)
    options.observer = &context.keepers.emplace_back(context.options.message_limit,
                                                     communication.group, context.result);
  options.outcomes = context.shared.outcomes;
  options.stop = [&context] { return stop_reason(context).has_value(); };
  return std::make_unique<sim::CollectiveRunner>(
      context.simulation,
      sim::CollectiveRunner::Communicator{&context.bound.topology, communication.group,
                                          communication.communicator.get(),
                                          context.bound.costs.get()},
      options);
}

sim::Duration run_time(const RunContext& context) {
  return context.ended.value_or(context.simulation.now()).time_since_epoch();
}

sim::EventQueue::Outcome run_queue(RunContext& context) {
  const RunLimits& limits = context.options.limits;
  sim::EventQueue& queue = context.simulation.queue();
  for (std::uint64_t slices = 1;; ++slices) {
    sim::EventQueue::Limits slice;
    slice.max_events = kEventsPerSlice;
    slice.interrupted = limits.interrupted;
    slice.until = sim::kEndOfTime;
    const std::uint64_t before = queue.executed();
    const sim::EventQueue::Outcome outcome = queue.run(slice);
    // A collective that was given up leaves the queue empty: ask before believing it.
    if (const auto reason = stop_reason(context)) return *reason;
    if (outcome != sim::EventQueue::Outcome::limit) return outcome;
    const auto events = static_cast<double>(queue.executed());
    if (limits.progress && context.shared.events > 0 && slices % kSlicesPerReport == 0)
      limits.progress(std::min(1.0, events / context.shared.events));
    if (queue.executed() == before && context.ended) return sim::EventQueue::Outcome::drained;
    if (queue.executed() == before) {
      context.result.notes.emplace_back(
          "something would take longer than the 53 days that can be simulated");
      return outcome;
    }
    if (events > limits.max_events) return outcome;
  }
}

namespace {

// What of the facts only the runner knows.
void add_facts(const sim::CollectiveRunner& runner, RunFacts& facts) {
  runner.mark_limiting(facts.limiting);
  const auto group = std::make_shared<const sim::Group>(runner.group());
  for (std::size_t i = 0; i < runner.plan_count(); ++i) {
    const sim::PlanId plan(i);
    facts.schedules.push_back({runner.shared_schedule(plan), group, runner.slowdown(plan)});
  }
}

}  // namespace

void account(const sim::CollectiveRunner& runner, RunContext& context) {
  if (context.scenario.backend != Backend::nccl) note_processor_time(runner, context);
  context.result.messages += runner.messages();
  context.result.replays += runner.replays();
  context.result.events += runner.sandbox_events();
  context.result.solves += runner.sandbox_solves();
  if (context.shared.facts != nullptr) add_facts(runner, *context.shared.facts);
  std::uint64_t number = 0;
  for (const sim::CallRecord& record : runner.records()) {
    std::uint64_t digest = sim::mix_hash(record.digest ^ ++number);
    for (const sim::Time end : record.end)
      digest = sim::mix_hash(digest ^ static_cast<std::uint64_t>(end.time_since_epoch().count()));
    context.trace.add_digest(digest);
  }
}

void report_links(RunContext& context) {
  const sim::Topology& topology = context.bound.topology;
  const sim::Network& network = context.simulation.network();
  const double seconds = sim::to_seconds(context.result.duration);
  std::map<sim::LinkClass, IdleLinks> idle;
  std::vector<std::pair<double, std::size_t>> busy;
  for (std::size_t l = 0; l < topology.links.size(); ++l) {
    const sim::Bytes carried = network.carried(sim::ResourceId(l));
    IdleLinks& of_class = idle[topology.links[l].link_class];
    of_class.link_class = topology.links[l].link_class;
    ++of_class.total;
    if (carried.raw() == 0) {
      if (of_class.count++ == 0) of_class.example = topology.link_name(sim::LinkId(l));
      continue;
    }
    const double possible =
        sim::to_gigabytes_per_second(network.capacity(sim::ResourceId(l))) * 1e9 * seconds;
    busy.emplace_back(possible > 0 ? static_cast<double>(carried.raw()) / possible : 0, l);
  }
  constexpr std::size_t kShown = 10;
  const std::size_t shown = std::min(kShown, busy.size());
  std::ranges::partial_sort(busy, busy.begin() + static_cast<std::ptrdiff_t>(shown),
                            [](const auto& a, const auto& b) {
                              return a.first != b.first ? a.first > b.first : a.second < b.second;
                            });
  for (std::size_t i = 0; i < shown; ++i) {
    const auto [utilization, l] = busy[i];
    context.result.busiest_links.push_back(
        {topology.link_name(sim::LinkId(l)), topology.links[l].link_class,
         network.carried(sim::ResourceId(l)), utilization, network.capacity(sim::ResourceId(l))});
  }
  for (const auto& [link_class, links] : idle)
    if (links.count > 0) context.result.idle_links.push_back(links);
}

namespace {

std::chrono::steady_clock::time_point deadline_of(const RunLimits& limits) {
  if (limits.timeout_seconds <= 0) return std::chrono::steady_clock::time_point::max();
  const std::chrono::duration<double> left(std::min(limits.timeout_seconds, kLongestTimeout));
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(left);
}

Result<void> check_memory(const Scenario& scenario, const RunLimits& limits) {
  RAILYARD_ASSIGN(const double needed, bind_memory_bytes(scenario));
  if (needed <= limits.max_memory_bytes) return {};
  return sim::bad_input(
      fmt::format("the cluster alone needs about {:.3g} GB of memory, more than "
                  "the limit of {:.3g} GB",
                  needed * 1e-9, limits.max_memory_bytes * 1e-9));
}

}  // namespace

Result<RunResult> run(const Scenario& scenario, const RunOptions& options) {
  RAILYARD_TRY(check_memory(scenario, options.limits));
  RAILYARD_ASSIGN(const std::unique_ptr<Bound> bound, bind(scenario));
  sim::ReplayCache outcomes;
  RunFacts facts;
  SharedState shared;
  shared.outcomes = &outcomes;
  shared.deadline = deadline_of(options.limits);
  shared.events = options.limits.expected_events;
  RunOptions base = options;
  if (options.sensitivity) {
    shared.facts = &facts;
    if (options.limits.progress)
      base.limits.progress = [&](double share) { options.limits.progress(share * kBaseShare); };
  }
  RAILYARD_ASSIGN(RunResult result, run_bound(scenario, base, *bound, shared));
  add_notes(scenario, result);
  add_plan_warnings(*bound, result);
  shared.facts = nullptr;
  const bool complete =
      result.outcome == sim::EventQueue::Outcome::drained && result.unfinished.empty();
  if (options.sensitivity && complete)
    if (auto loss = fallback_loss(scenario, options.limits, objective_time(result)))
      result.notes.push_back(std::move(*loss));
  if (options.sensitivity && complete)
    RAILYARD_TRY(add_sensitivity(scenario, options, {*bound, shared, facts}, result));
  return result;
}

const StepResult* step_result(const RunResult& result) {
  if (result.ddp) return &*result.ddp;
  return result.training.get();
}

sim::Duration objective_time(const RunResult& result) {
  if (const StepResult* step = step_result(result)) return step->step_time;
  if (result.kv) return result.kv->ttft.p50;
  if (result.collectives.empty()) return result.duration;
  sim::Duration sum{};
  for (const CollectiveRow& row : result.collectives) sum += row.time;
  return sum;
}

}  // namespace railyard::scenarios
