#include "scenarios/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "scenarios/run_parts.h"

namespace railyard::scenarios {
namespace {

// Between looks at limits. Few, since a single event may solve a very large network.
constexpr std::uint64_t kEventsPerSlice = 1'000;
constexpr std::uint64_t kSlicesPerReport = 256;  // of progress
// Times saturate at the clock's end, 106 days; what would happen there never does.
constexpr sim::Time kEndOfTime = sim::Time::max() - sim::picoseconds(1);

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
  std::map<std::string_view, int> origins;
  for (const sim::Provenance& each : scenario.parameters.provenance)
    ++origins[to_text(each.origin)];
  std::string text;
  for (const auto& [origin, count] : origins)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, origin);
  if (!text.empty())
    result.notes.push_back(fmt::format("profile {}: parameters by origin: {}; never validated here",
                                       scenario.parameters.name, text));
}

}  // namespace

Result<RunResult> run_bound(const Scenario& scenario, const RunOptions& options, Bound& bound,
                            const SharedState& shared) {
  RunResult result;
  sim::Simulation simulation(bound.topology, *bound.costs);
  sim::Trace trace(std::max(1U, options.trace_ranks));
  MessageKeeper keeper(options.message_limit, result);
  RunContext context{scenario,   options, bound,
                     simulation, trace,   options.message_limit > 0 ? &keeper : nullptr,
                     shared,     result};
  RAILYARD_ASSIGN(const std::unique_ptr<TrafficSource> traffic, start_traffic(context));
  if (scenario.ddp)
    RAILYARD_TRY(run_ddp_job(context));
  else if (!scenario.collectives.empty())
    RAILYARD_TRY(run_collectives(context));
  else
    result.outcome = run_queue(context);
  result.duration = simulation.now().time_since_epoch();
  traffic->finish();
  result.events += simulation.queue().executed();
  result.solves += simulation.network().solves();
  report_links(context);
  result.ranks = bound.world.size();
  result.nodes = bound.topology.nodes.size();
  result.machine = scenario.cluster.machine;
  result.profile = scenario.parameters.name;
  result.trace_hash = trace.hash();
  result.span_names = trace.names();
  if (options.trace_ranks > 0) result.spans = trace.spans();
  return result;
}

void MessageKeeper::on_message(const sim::Schedule& schedule, const sim::Message& message) {
  if (result_->kept_messages.size() >= limit_) return;
  const sim::Connection& connection = schedule.connections[message.connection.index()];
  const sim::Lane& from = schedule.lanes[connection.from.index()];
  const sim::Lane& to = schedule.lanes[connection.to.index()];
  result_->kept_messages.push_back({std::string(to_text(schedule.call.collective)), from.rank,
                                    to.rank, from.channel, message.payload, message.start,
                                    message.arrival});
}

bool may_replay(const RunContext& context) {
  return context.scenario.engine.replay && context.observer == nullptr &&
         context.scenario.traffic.empty() && context.bound.communications.size() == 1;
}

namespace {

// Why the run should stop now, if it should.
std::optional<sim::EventQueue::Outcome> stop_reason(const RunContext& context) {
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
  options.observer = context.observer;
  options.outcomes = context.shared.outcomes;
  options.stop = [&context] { return stop_reason(context).has_value(); };
  return std::make_unique<sim::CollectiveRunner>(
      context.simulation,
      sim::CollectiveRunner::Communicator{&context.bound.topology, communication.group,
                                          communication.communicator.get(),
                                          context.bound.costs.get()},
      options);
}

sim::EventQueue::Outcome run_queue(RunContext& context) {
  const RunLimits& limits = context.options.limits;
  sim::EventQueue& queue = context.simulation.queue();
  for (std::uint64_t slices = 1;; ++slices) {
    sim::EventQueue::Limits slice;
    slice.max_events = kEventsPerSlice;
    slice.interrupted = limits.interrupted;
    slice.until = kEndOfTime;
    const std::uint64_t before = queue.executed();
    const sim::EventQueue::Outcome outcome = queue.run(slice);
    // A collective that was given up leaves the queue empty: ask before believing it.
    if (const auto reason = stop_reason(context)) return *reason;
    if (outcome != sim::EventQueue::Outcome::limit) return outcome;
    const auto events = static_cast<double>(queue.executed());
    if (limits.progress && context.shared.events > 0 && slices % kSlicesPerReport == 0)
      limits.progress(std::min(1.0, events / context.shared.events));
    const bool at_end_of_time = queue.executed() == before;
    if (at_end_of_time || events > limits.max_events) return outcome;
  }
}

void account(const sim::CollectiveRunner& runner, RunContext& context) {
  context.result.messages += runner.messages();
  context.result.replays += runner.replays();
  context.result.events += runner.sandbox_events();
  context.result.solves += runner.sandbox_solves();
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

Result<RunResult> run(const Scenario& scenario, const RunOptions& options) {
  RAILYARD_ASSIGN(const std::unique_ptr<Bound> bound, bind(scenario));
  sim::ReplayCache outcomes;
  SharedState shared;
  shared.outcomes = &outcomes;
  if (options.limits.progress) {
    RAILYARD_ASSIGN(const Estimate expected, estimate(scenario));
    shared.events = expected.events;
  }
  if (options.limits.timeout_seconds > 0)
    shared.deadline = std::chrono::steady_clock::now() +
                      std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                          std::chrono::duration<double>(options.limits.timeout_seconds));
  RAILYARD_ASSIGN(RunResult result, run_bound(scenario, options, *bound, shared));
  add_notes(scenario, result);
  const bool complete =
      result.outcome == sim::EventQueue::Outcome::drained && result.unfinished.empty();
  if (options.sensitivity && complete)
    RAILYARD_TRY(add_sensitivity(scenario, options, {*bound, shared}, result));
  return result;
}

sim::Duration objective_time(const RunResult& result) {
  if (result.ddp) return result.ddp->step_time;
  if (result.collectives.empty()) return result.duration;
  sim::Duration sum{};
  for (const CollectiveRow& row : result.collectives) sum += row.time;
  return sum;
}

}  // namespace railyard::scenarios
