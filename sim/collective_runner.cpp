#include "sim/collective_runner.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard::sim {
namespace {

// Event codes of the runner; the argument is a group rank.
constexpr std::uint32_t kRankLeaves = 0;
constexpr std::uint64_t kEventsBetweenStops = 100'000;
constexpr std::size_t kStuckLines = 32;

// Rooted calls and SendRecv let some ranks leave before others have entered; so does an empty
// message.
bool all_wait_for_all(const CollectiveCall& call) {
  return call.size.raw() > 0 && !is_rooted(call.collective) &&
         call.collective != Collective::send_recv;
}

}  // namespace

// A simulation of this communicator alone, kept between calls: times only ever grow, and nothing in
// it depends on when it runs.
struct CollectiveRunner::Sandbox : RunListener {
  Sandbox(const Topology& topology, const CostModel& costs) : simulation(topology, costs) {}
  void on_rank_done(std::uint32_t rank) override { end[rank] = simulation.now(); }

  Simulation simulation;
  std::vector<Time> end;
};

CollectiveRunner::CollectiveRunner(Simulation& simulation, Communicator communicator,
                                   const Options& options)
    : simulation_(&simulation),
      topology_(communicator.topology),
      group_(std::move(communicator.group)),
      source_(communicator.source),
      costs_(communicator.costs),
      options_(options),
      next_call_(group_.size(), 0),
      outcomes_(options.outcomes == nullptr ? &own_outcomes_ : options.outcomes) {}

CollectiveRunner::~CollectiveRunner() = default;

Result<PlanId> CollectiveRunner::plan(const CollectiveCall& call) {
  RAILYARD_ASSIGN(const std::shared_ptr<const Schedule> schedule, source_->schedule(call));
  for (std::size_t i = 0; i < plans_.size(); ++i)
    if (plans_[i].schedule == schedule) return PlanId(i);
  RAILYARD_ASSIGN(ScheduleCosts costs, bind_costs(*schedule, group_, *costs_));
  Plan plan;
  plan.call = call;
  plan.schedule = schedule;
  plan.costs = std::make_shared<const ScheduleCosts>(std::move(costs));
  plan.slowdown = costs_->slowdown(*schedule, group_);
  plan.together = all_wait_for_all(call);
  plans_.push_back(std::move(plan));
  return PlanId(plans_.size() - 1);
}

void CollectiveRunner::open_call(PlanId plan) {
  OpenCall call;
  call.plan = plan;
  call.listeners.assign(group_.size(), nullptr);
  call.left = static_cast<std::uint32_t>(group_.size());
  open_.push_back(std::move(call));
  CallRecord record;
  record.plan = plan;
  record.enter.assign(group_.size(), Time::max());
  record.end.assign(group_.size(), Time::max());
  record.begin = Time::max();
  records_.push_back(std::move(record));
}

std::uint32_t CollectiveRunner::enter(std::uint32_t rank, PlanId plan,
                                      CollectiveListener& listener) {
  const std::uint32_t index = next_call_[rank]++;
  if (index == records_.size()) open_call(plan);
  OpenCall& call = open_[index - current_];
  RAILYARD_CHECK(call.plan == plan, "the ranks of a group make different calls");
  call.order.push_back(rank);
  call.listeners[rank] = &listener;
  records_[index].enter[rank] = simulation_->now();
  if (index != current_) return index;
  if (!plans_[plan.index()].together)
    start_in_place(rank);
  else if (call.order.size() == group_.size())
    start_all();
  return index;
}

// The rank's part of the current call begins on the network of the run.
void CollectiveRunner::start_in_place(std::uint32_t rank) {
  Plan& plan = plans_[open_.front().plan.index()];
  if (!plan.in_place) {
    plan.in_place = std::make_unique<Executor>(
        plan.schedule, plan.costs, simulation_->queue(), simulation_->network(),
        Executor::Options{options_.credits, options_.observer});
    plan.in_place->set_listener(this);
  } else if (plan.in_place->finished()) {
    plan.in_place->reset();
  }
  CallRecord& record = records_[current_];
  record.begin = std::min(record.begin, simulation_->now());
  plan.in_place->start_rank(rank);
}

void CollectiveRunner::start_all() {
  Plan& plan = plans_[open_.front().plan.index()];
  records_[current_].begin = simulation_->now();
  if (options_.replay) return replay(plan);
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) start_in_place(rank);
}

void CollectiveRunner::replay(const Plan& plan) {
  CallRecord& record = records_[current_];
  auto found = outcomes_->find(plan.schedule.get());
  record.replayed = found != outcomes_->end();
  replays_ += record.replayed ? 1 : 0;
  if (!record.replayed) {
    std::optional<ReplayOutcome> apart = simulate_apart(record.plan);
    if (!apart) return;
    found = outcomes_->emplace(plan.schedule.get(), *std::move(apart)).first;
  }
  const ReplayOutcome& outcome = found->second;
  record.digest = outcome.digest;
  record.messages = outcome.messages;
  for (const auto& [resource, size] : outcome.carried)
    simulation_->network().add_carried(resource, size);
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank)
    simulation_->queue().schedule(record.begin + outcome.end[rank], *this, kRankLeaves, rank);
}

std::optional<ReplayOutcome> CollectiveRunner::simulate_apart(PlanId id) {
  const Plan& plan = plans_[id.index()];
  if (!sandbox_) sandbox_ = std::make_unique<Sandbox>(*topology_, *costs_);
  Simulation& simulation = sandbox_->simulation;
  Network& network = simulation.network();
  std::vector<Bytes> before;
  for (std::size_t r = 0; r < network.resource_count(); ++r)
    before.push_back(network.carried(ResourceId(r)));
  const Time origin = simulation.now();
  const FlowId first(network.flow_count());
  Executor executor(plan.schedule, plan.costs, simulation.queue(), network,
                    Executor::Options{options_.credits, nullptr});
  network.only_flows_from(first);
  executor.set_listener(sandbox_.get());
  sandbox_->end.assign(group_.size(), Time{});
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) executor.start_rank(rank);
  if (!run_apart(executor)) return std::nullopt;
  ReplayOutcome outcome;
  for (const Time end : sandbox_->end) outcome.end.push_back(end - origin);
  outcome.digest = executor.digest();
  outcome.messages = executor.messages();
  for (std::size_t r = 0; r < before.size(); ++r)
    if (const Bytes more = network.carried(ResourceId(r)) - before[r]; more.raw() != 0)
      outcome.carried.emplace_back(ResourceId(r), more);
  return outcome;
}

// False when the call does not end: given up, stuck for good, or longer than the clock runs.
bool CollectiveRunner::run_apart(const Executor& executor) {
  EventQueue& queue = sandbox_->simulation.queue();
  EventQueue::Limits piece;
  piece.max_events = kEventsBetweenStops;
  piece.until = kEndOfTime;
  for (std::uint64_t before = queue.executed(); queue.run(piece) == EventQueue::Outcome::limit;
       before = queue.executed()) {
    if (options_.stop && options_.stop()) return false;
    if (queue.executed() != before) continue;
    // The run ends where the call does: something is left for the end of its clock.
    simulation_->queue().schedule(Time::max(), *this, kRankLeaves, 0);
    return false;
  }
  if (!executor.finished()) stuck_ = executor.waiting_lanes(kStuckLines, group_);
  return executor.finished();
}

void CollectiveRunner::on_event(std::uint32_t, std::uint32_t rank) {
  leave(rank, simulation_->now());
}

void CollectiveRunner::on_rank_done(std::uint32_t rank) { leave(rank, simulation_->now()); }

void CollectiveRunner::leave(std::uint32_t rank, Time end) {
  OpenCall& call = open_.front();
  CallRecord& record = records_[current_];
  record.end[rank] = end;
  CollectiveListener& listener = *call.listeners[rank];
  const std::uint32_t index = current_;
  if (--call.left == 0) {
    record.done = end;
    const Plan& plan = plans_[call.plan.index()];
    if (!(options_.replay && plan.together)) {
      record.digest = plan.in_place->digest();
      record.messages = plan.in_place->messages();
    }
    messages_ += record.messages;
    close_current();
  }
  listener.on_collective_done(*this, rank, index);
}

// The next call goes on the wire, for the ranks that wait in it.
void CollectiveRunner::close_current() {
  open_.erase(open_.begin());
  ++current_;
  if (!open_.empty()) begin_current();
}

void CollectiveRunner::begin_current() {
  if (plans_[open_.front().plan.index()].together) {
    if (open_.front().order.size() == group_.size()) start_all();
    return;
  }
  const std::vector<std::uint32_t> waiting = open_.front().order;
  for (const std::uint32_t rank : waiting) start_in_place(rank);
}

// The links that give a cut-through connection its rate when nothing is shared.
static void mark_narrowest(const ConnectionCost& cost, const Network& network,
                           std::vector<bool>& links) {
  if (cost.grain.raw() == 0 || cost.staged) return;
  const auto capacity = [&](LinkId link) { return network.capacity(ResourceId(link.value())); };
  Bandwidth solo = cost.cap.raw() == 0 ? Bandwidth::from_raw(INT64_MAX) : cost.cap;
  for (const LinkId link : cost.route) solo = std::min(solo, capacity(link));
  for (const LinkId link : cost.route)
    if (capacity(link) == solo && solo != cost.cap) links[link.index()] = true;
}

void CollectiveRunner::mark_limiting(std::vector<bool>& links) const {
  for (std::size_t l = 0; sandbox_ && l < links.size(); ++l)
    links[l] = links[l] || sandbox_->simulation.network().limiting(ResourceId(l));
  for (const Plan& plan : plans_)
    for (const ConnectionCost& cost : plan.costs->connections)
      mark_narrowest(cost, simulation_->network(), links);
}

std::uint64_t CollectiveRunner::sandbox_events() const {
  return sandbox_ ? sandbox_->simulation.queue().executed() : 0;
}

std::uint64_t CollectiveRunner::sandbox_solves() const {
  return sandbox_ ? sandbox_->simulation.network().solves() : 0;
}

std::vector<std::string> CollectiveRunner::waiting(std::size_t limit) const {
  std::vector<std::string> lines;
  if (open_.empty()) return lines;
  const OpenCall& call = open_.front();
  const Plan& plan = plans_[call.plan.index()];
  for (std::uint32_t rank = 0; rank < group_.size() && lines.size() < limit; ++rank)
    if (records_[current_].enter[rank] == Time::max())
      lines.push_back(fmt::format("call {} ({}): rank {} never entered", current_,
                                  to_text(plan.call.collective), group_[rank].rank.value()));
  if (plan.in_place && lines.size() < limit)
    for (std::string& line : plan.in_place->waiting_lanes(limit - lines.size(), group_))
      lines.push_back(std::move(line));
  for (const std::string& line : stuck_)
    if (lines.size() < limit) lines.push_back(line);
  return lines;
}

}  // namespace railyard::sim
