#include "scenarios/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "scenarios/gpu_path.h"
#include "scenarios/host.h"
#include "scenarios/where.h"
#include "sim/random.h"
#include "topologies/link_changes.h"

namespace railyard::scenarios {
namespace {

// A link that is down: too slow to matter, fast enough to be a rate.
constexpr sim::Bandwidth kDown = sim::bytes_per_second(1);

class NetworkFaults final : public Faults, public sim::EventHandler, public sim::FlowListener {
 public:
  NetworkFaults(RunContext& context, const FaultSpec& spec) : context_(&context), spec_(&spec) {}

  Result<void> start() {
    for (std::size_t f = 0; f < spec_->links.size(); ++f) {
      RAILYARD_TRY(add_link_fault(spec_->links[f], f));
    }
    if (!spec_->neighbours.empty()) RAILYARD_TRY(add_neighbours());
    return {};
  }

  void job_ended() override { ended_ = true; }
  std::vector<std::string> given_up() const override { return given_up_; }

  void on_event(std::uint32_t code, std::uint32_t argument) override {
    if (ended_) return;  // the queue may run dry
    switch (code) {
      case kBegin: return begin(argument);
      case kRecover: return recover(argument);
      case kGiveUp: return give_up(argument);
      case kTransfer: return transfer(argument);
      default: return;
    }
  }
  void on_flow_done(std::uint32_t neighbour) override {
    if (ended_) return take_back(neighbour);
    const sim::Duration pause = spec_->neighbours[neighbour].pause;
    // Not within the instant: a neighbour without a pause would never let it end.
    schedule(std::max(pause, sim::Duration(1)), kTransfer, neighbour);
  }

 private:
  enum Code : std::uint32_t { kBegin, kRecover, kGiveUp, kTransfer };
  struct Broken {
    std::vector<sim::ResourceId> links;
    std::vector<sim::Bandwidth> healthy;
    std::uint64_t outage = 0;  // counts outages, so that an old give-up is known as such
    bool down = false;
    std::deque<std::uint64_t> pending;  // outages whose give-up is still to come
  };

  void schedule(sim::Duration after, std::uint32_t code, std::uint32_t argument) {
    context_->simulation.queue().schedule(context_->simulation.now() + after, *this, code,
                                          argument);
  }

  Result<void> add_link_fault(const LinkFault& fault, std::size_t index) {
    sim::Topology copy = context_->bound.topology;
    const auto left =
        topologies::apply_changes(copy, {{.pattern = fault.pattern, .disable = true}});
    if (!left.ok())
      return at_path(context_->scenario, fmt::format("faults.links[{}].link", index), left.error());
    Broken broken;
    for (std::size_t l = 0; l < left.value().size(); ++l) {
      if (left.value()[l]) continue;
      broken.links.emplace_back(l);
      broken.healthy.push_back(context_->simulation.network().capacity(broken.links.back()));
    }
    broken_.push_back(std::move(broken));
    schedule(fault.at, kBegin, static_cast<std::uint32_t>(broken_.size() - 1));
    return {};
  }

  void begin(std::uint32_t index) {
    const LinkFault& fault = spec_->links[index];
    Broken& broken = broken_[index];
    broken.down = fault.speed == 0;
    ++broken.outage;
    for (std::size_t l = 0; l < broken.links.size(); ++l)
      context_->simulation.network().set_capacity(
          broken.links[l],
          broken.down ? kDown : std::max(kDown, sim::scale(broken.healthy[l], fault.speed)));
    if (fault.lasts) schedule(outage(fault, spec_->retry_timeout), kRecover, index);
    if (broken.down && (!fault.lasts || *fault.lasts > spec_->give_up)) {
      broken.pending.push_back(broken.outage);
      schedule(spec_->give_up, kGiveUp, index);
    }
    if (fault.every) schedule(*fault.every, kBegin, index);
  }

  void recover(std::uint32_t index) {
    Broken& broken = broken_[index];
    broken.down = false;
    for (std::size_t l = 0; l < broken.links.size(); ++l)
      context_->simulation.network().set_capacity(broken.links[l], broken.healthy[l]);
  }

  void give_up(std::uint32_t index) {
    Broken& broken = broken_[index];
    const std::uint64_t outage = broken.pending.front();
    broken.pending.pop_front();
    if (!broken.down || broken.outage != outage) return;
    given_up_.push_back(
        fmt::format("link {} (faults.links[{}]) has been down for {}: NCCL's transport gives up "
                    "(NCCL_IB_TIMEOUT, NCCL_IB_RETRY_CNT; faults.give_up)",
                    context_->bound.topology.link_name(sim::LinkId(broken.links.front().value())),
                    index, sim::to_text(spec_->give_up)));
    context_->stop = true;
    context_->ended = context_->simulation.now();
  }

  void transfer(std::uint32_t neighbour) {
    started_[neighbour] = context_->simulation.now();
    context_->simulation.network().start(flows_[neighbour], spec_->neighbours[neighbour].size);
  }

  // What a transfer carried after the job had ended is not the run's.
  void take_back(std::uint32_t neighbour) {
    const sim::Time end = context_->simulation.now();
    const sim::Time from = std::max(started_[neighbour], context_->ended.value_or(end));
    const double share = sim::to_seconds(end - from) / sim::to_seconds(end - started_[neighbour]);
    const double size = static_cast<double>(spec_->neighbours[neighbour].size.raw()) * share;
    for (const sim::ResourceUse& use : uses_[neighbour])
      context_->simulation.network().add_carried(use.resource,
                                                 sim::bytes(-std::llround(size * use.weight)));
  }

  // The member of `group` that is the GPU; a stranger to the job becomes one.
  Result<std::uint32_t> member_of(const GpuName& name, sim::Group& group) const {
    const sim::Topology& topology = context_->bound.topology;
    if (name.device.empty()) {
      if (name.rank < context_->bound.world.size()) return name.rank;
      return sim::bad_input(fmt::format("there is no rank {}: the job has {}", name.rank,
                                        context_->bound.world.size()));
    }
    for (std::uint32_t m = 0; m < group.size(); ++m)
      if (topology.devices[group[m].gpu.index()].name == name.device) return m;
    const auto found = std::ranges::find_if(topology.devices, [&](const sim::Device& device) {
      return device.kind == sim::DeviceKind::gpu && device.name == name.device;
    });
    if (found == topology.devices.end())
      return sim::bad_input(fmt::format("no GPU is called '{}'; names look like '{}'", name.device,
                                        topology.devices[group.front().gpu.index()].name));
    group.push_back({sim::Rank(group.size()),
                     sim::DeviceId(static_cast<std::size_t>(found - topology.devices.begin())),
                     found->node, found->local_index});
    return static_cast<std::uint32_t>(group.size() - 1);
  }

  Result<void> add_neighbours() {
    sim::Group group = context_->bound.world;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
    for (const Neighbour& each : spec_->neighbours) {
      const std::string path = fmt::format("faults.neighbours[{}]", ends.size());
      const auto from = member_of(each.from, group);
      if (!from.ok()) return at_path(context_->scenario, path + ".from", from.error());
      const auto to = member_of(each.to, group);
      if (!to.ok()) return at_path(context_->scenario, path + ".to", to.error());
      if (from.value() == to.value())
        return at_path(context_->scenario, path,
                       sim::bad_input("'from' and 'to' are the same GPU"));
      ends.emplace_back(from.value(), to.value());
    }
    RAILYARD_ASSIGN(const algorithms::Places places,
                    algorithms::find_places(context_->bound.topology, group));
    for (std::uint32_t n = 0; n < ends.size(); ++n) {
      auto way = gpu_path(context_->bound, {group, places}, ends[n].first, ends[n].second);
      if (!way.ok())
        return at_path(context_->scenario, fmt::format("faults.neighbours[{}]", n), way.error());
      flows_.push_back(context_->simulation.network().add_flow(
          {.uses = way.value().uses, .listener = this, .tag = n}));
      uses_.push_back(std::move(way.value().uses));
      started_.emplace_back();
      schedule(spec_->neighbours[n].start, kTransfer, n);
    }
    return {};
  }

  RunContext* context_;
  const FaultSpec* spec_;
  std::vector<Broken> broken_;
  std::vector<sim::FlowId> flows_;  // of neighbours, with what they use and their last start
  std::vector<std::vector<sim::ResourceUse>> uses_;
  std::vector<sim::Time> started_;
  std::vector<std::string> given_up_;
  bool ended_ = false;
};

// Changes a GPU's pace over time.
class Pace final : public sim::EventHandler {
 public:
  Pace(sim::Gpu& gpu, const SlowGpu& spec) : gpu_(&gpu), spec_(&spec) {}
  void on_event(std::uint32_t, std::uint32_t step) override {
    gpu_->set_pace(spec_->steps[step].factor);
  }

 private:
  sim::Gpu* gpu_;
  const SlowGpu* spec_;
};

sim::Duration draw(const Jitter& jitter, sim::Random& random) {
  const auto scale = static_cast<double>(jitter.scale.count());
  double value = scale;
  switch (jitter.distribution) {
    case Distribution::constant: break;
    case Distribution::exponential: value = random.exponential(scale); break;
    case Distribution::normal: value = scale * (1 + jitter.sigma * random.normal()); break;
    case Distribution::lognormal: value = random.lognormal(scale, jitter.sigma); break;
  }
  constexpr double kMost = 1e18;
  return sim::Duration(static_cast<std::int64_t>(std::clamp(value, 0.0, kMost)));
}

std::string ratio_text(const SlowGpu& slow) {
  double worst = 1;
  for (const SlowGpu::Step& step : slow.steps) worst = std::max(worst, step.factor);
  return fmt::format("slow GPU (kernels take up to {:g} times as long)", worst);
}

}  // namespace

sim::Duration outage(const LinkFault& fault, sim::Duration retry_timeout) {
  const sim::Duration lasts = *fault.lasts;
  if (fault.speed > 0 || retry_timeout.count() == 0) return lasts;
  const std::int64_t rounds = (lasts.count() - 1) / retry_timeout.count() + 1;
  return retry_timeout * rounds;
}

bool RankSet::contains(std::uint32_t rank) const {
  return all || std::ranges::find(ranks, rank) != ranks.end();
}

Result<std::unique_ptr<Faults>> start_faults(RunContext& context) {
  const FaultSpec* spec = context.scenario.faults.get();
  if (spec == nullptr) return std::unique_ptr<Faults>();
  const auto check = [&](const RankSet& set, const char* key) -> Result<void> {
    for (const std::uint32_t rank : set.ranks)
      if (rank >= context.bound.world.size())
        return at_path(context.scenario, key,
                       sim::bad_input(fmt::format("there is no rank {}: the job has {}", rank,
                                                  context.bound.world.size())));
    return {};
  };
  for (const SlowGpu& slow : spec->slow_gpus) RAILYARD_TRY(check(slow.ranks, "faults.slow_gpus"));
  for (const Jitter& jitter : spec->jitter) RAILYARD_TRY(check(jitter.ranks, "faults.jitter"));
  auto faults = std::make_unique<NetworkFaults>(context, *spec);
  RAILYARD_TRY(faults->start());
  return std::unique_ptr<Faults>(std::move(faults));
}

void apply_faults(RunContext& context, std::uint32_t rank, sim::Gpu& gpu, sim::HostThread& host) {
  std::vector<Jitter> jitter;
  if (const FaultSpec* spec = context.scenario.faults.get()) {
    for (const SlowGpu& slow : spec->slow_gpus) {
      if (!slow.ranks.contains(rank)) continue;
      auto pace = std::make_shared<Pace>(gpu, slow);
      for (std::uint32_t step = 0; step < slow.steps.size(); ++step)
        context.simulation.queue().schedule(sim::Time(slow.steps[step].at), *pace, 0, step);
      context.handlers.push_back(std::move(pace));
    }
    for (const Jitter& each : spec->jitter)
      if (each.ranks.contains(rank)) jitter.push_back(each);
  }
  std::function<sim::Duration()> lost;
  if (!jitter.empty()) {
    const std::uint64_t seed = context.scenario.faults->seed.value_or(context.scenario.seed);
    lost = [jitter, random = sim::Random(sim::mix_hash(seed ^ sim::mix_hash(rank + 1)))]() mutable {
      sim::Duration sum{};
      for (const Jitter& each : jitter) sum += draw(each, random);
      return sum;
    };
  }
  sim::HostHabits out = context.host->habits(rank, std::move(lost));
  if (context.faults != nullptr) {
    if (!context.hosts_left) context.hosts_left = std::make_shared<std::size_t>(0);
    ++*context.hosts_left;
    out.finished = [&context] {
      if (--*context.hosts_left == 0) end_faults(context);
    };
  }
  host.set_habits(std::move(out));
}

void end_faults(RunContext& context) {
  if (context.faults == nullptr) return;
  context.faults->job_ended();
  context.ended = context.simulation.now();
}

std::string fault_of_rank(const Scenario& scenario, std::uint32_t rank) {
  std::string text;
  if (!scenario.faults) return text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  for (const SlowGpu& slow : scenario.faults->slow_gpus)
    if (slow.ranks.contains(rank)) add(ratio_text(slow));
  for (const Jitter& jitter : scenario.faults->jitter)
    if (jitter.ranks.contains(rank))
      add(fmt::format("host jitter ({}, {})", sim::to_text(jitter.distribution),
                      sim::to_text(jitter.scale)));
  return text;
}

std::vector<LateRank> late_ranks(const RunContext& context,
                                 const std::vector<const sim::CollectiveRunner*>& runners) {
  std::map<std::uint32_t, std::vector<sim::Duration>> lateness;  // where it was the last
  std::int64_t calls = 0;
  for (const sim::CollectiveRunner* runner : runners)
    for (const sim::CallRecord& record : runner->records()) {
      if (record.enter.size() < 2) continue;
      if (std::ranges::find(record.enter, sim::Time::max()) != record.enter.end())
        continue;  // hung
      std::vector<sim::Time> sorted = record.enter;
      const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
      std::ranges::nth_element(sorted, middle);
      const auto last = std::ranges::max_element(record.enter);
      ++calls;
      const auto index = static_cast<std::size_t>(last - record.enter.begin());
      lateness[runner->group()[index].rank.value()].push_back(*last - *middle);
    }
  const sim::Duration run = run_time(context);
  std::vector<LateRank> rows;
  for (auto& [rank, times] : lateness) {
    std::ranges::sort(times);
    LateRank row;
    row.rank = rank;
    row.last_in = static_cast<std::int64_t>(times.size());
    row.calls = calls;
    row.median = times[(times.size() - 1) / 2];
    row.worst = times.back();
    for (const sim::Duration time : times) row.total += time;
    row.cause = fault_of_rank(context.scenario, rank);
    if (const std::string host = context.host->cause(rank); !host.empty())
      row.cause += (row.cause.empty() ? "" : ", ") + host;
    if (row.total * 50 >= run && row.last_in * 10 >= calls) rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, std::greater<>{}, &LateRank::total);
  return rows;
}

}  // namespace railyard::scenarios
