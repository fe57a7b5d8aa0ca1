#include "scenarios/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "scenarios/run_parts.h"

namespace railyard::scenarios {
namespace {

constexpr std::uint64_t kEventsPerSlice = 1'000'000;  // between looks at limits and progress

Result<RunResult> run_bound(const Scenario& scenario, const RunOptions& options, Bound& bound,
                            double events) {
  RunResult result;
  sim::Simulation simulation(bound.topology, *bound.costs);
  sim::Trace trace(std::max(1U, options.trace_ranks));
  MessageKeeper keeper(options.message_limit, result);
  RunContext context{scenario,   options, bound,
                     simulation, trace,   options.message_limit > 0 ? &keeper : nullptr,
                     events,     result};
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

struct Variation {
  std::string what;
  std::function<void(sim::Parameters&)> apply;
};

std::vector<Variation> variations(const Bound& bound) {
  std::vector<Variation> list;
  for (const auto& entry : sim::EnumTable<sim::LinkClass>::entries) {
    const sim::LinkClass link_class = entry.value;
    if (std::ranges::none_of(bound.topology.links,
                             [&](const sim::Link& l) { return l.link_class == link_class; }))
      continue;
    list.push_back({fmt::format("{} bandwidth", entry.name), [link_class](sim::Parameters& p) {
                      p.links[static_cast<std::size_t>(link_class)].efficiency *= 1.1;
                    }});
  }
  list.push_back({"latencies", [](sim::Parameters& p) {
                    for (sim::LinkParameters& link : p.links)
                      link.latency = sim::scale(link.latency, 1.1);
                    for (sim::ProtocolParameters& protocol : p.protocols) {
                      protocol.hop_latency = sim::scale(protocol.hop_latency, 1.1);
                      protocol.net_hop_latency = sim::scale(protocol.net_hop_latency, 1.1);
                    }
                  }});
  list.push_back({"launch cost", [](sim::Parameters& p) {
                    for (sim::Duration* cost :
                         {&p.host.op_launch, &p.host.collective_launch, &p.host.launch_latency,
                          &p.host.collective_start, &p.host.grad_hook})
                      *cost = sim::scale(*cost, 1.1);
                  }});
  list.push_back(
      {"compute speed", [](sim::Parameters& p) {
         for (sim::FlopsRate* peak : {&p.gpu.peak_fp32, &p.gpu.peak_tf32, &p.gpu.peak_fp16})
           peak->per_second *= 1.1;
         p.gpu.hbm_bandwidth = sim::scale(p.gpu.hbm_bandwidth, 1.1);
       }});
  return list;
}

// One at a time, everything else as it is. Interrupted runs keep what they have.
Result<void> add_sensitivity(const Scenario& scenario, const RunOptions& options, Bound& bound,
                             RunResult& result) {
  RunOptions quiet;
  quiet.limits = options.limits;
  quiet.limits.progress = nullptr;
  const sim::Parameters base = bound.parameters;
  for (const Variation& variation : variations(bound)) {
    if (!scenario.ddp && variation.what == "compute speed") continue;
    bound.parameters = base;
    variation.apply(bound.parameters);
    RAILYARD_ASSIGN(const RunResult varied, run_bound(scenario, quiet, bound, 0));
    if (varied.outcome != sim::EventQueue::Outcome::drained) break;
    result.sensitivity.push_back(
        {variation.what, 0.1, objective_time(result), objective_time(varied)});
  }
  bound.parameters = base;
  return {};
}

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

std::unique_ptr<sim::CollectiveRunner> make_runner(RunContext& context,
                                                   Communication& communication) {
  sim::CollectiveRunner::Options options;
  options.credits = context.scenario.engine.credits;
  options.replay = may_replay(context);
  options.observer = context.observer;
  return std::make_unique<sim::CollectiveRunner>(context.simulation, context.bound.topology,
                                                 communication.group, *communication.communicator,
                                                 *context.bound.costs, options);
}

sim::EventQueue::Outcome run_queue(RunContext& context) {
  const RunLimits& limits = context.options.limits;
  const auto began = std::chrono::steady_clock::now();
  double events = 0;
  for (;;) {
    sim::EventQueue::Limits slice;
    slice.max_events = kEventsPerSlice;
    slice.interrupted = limits.interrupted;
    const sim::EventQueue::Outcome outcome = context.simulation.queue().run(slice);
    if (outcome != sim::EventQueue::Outcome::limit) return outcome;
    events += static_cast<double>(kEventsPerSlice);
    if (limits.progress && context.estimated_events > 0)
      limits.progress(std::min(1.0, events / context.estimated_events));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began;
    if (events > limits.max_events ||
        (limits.timeout_seconds > 0 && spent.count() > limits.timeout_seconds))
      return outcome;
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
  double events = 0;
  if (options.limits.progress) {
    RAILYARD_ASSIGN(const Estimate expected, estimate(scenario));
    events = expected.events;
  }
  RAILYARD_ASSIGN(RunResult result, run_bound(scenario, options, *bound, events));
  add_notes(scenario, result);
  const bool complete =
      result.outcome == sim::EventQueue::Outcome::drained && result.unfinished.empty();
  if (options.sensitivity && complete)
    RAILYARD_TRY(add_sensitivity(scenario, options, *bound, result));
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
