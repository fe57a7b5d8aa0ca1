#include "tests/models/ddp/toy_job.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace railyard::test {
namespace {

using models::DdpCall;
using sim::Bytes;
using sim::Duration;
using sim::Time;

// Every rank runs one local operation, which takes what ToyCosts says: no network at all.
class ToyCollectives final : public sim::CollectiveSource {
 public:
  explicit ToyCollectives(std::uint32_t ranks) : ranks_(ranks) {}

  sim::Result<std::shared_ptr<const sim::Schedule>> schedule(
      const sim::CollectiveCall& call) override {
    auto& known = schedules_[{static_cast<int>(call.collective), call.size.raw()}];
    if (known) return known;
    auto schedule = std::make_shared<sim::Schedule>();
    schedule->call = call;
    schedule->ranks = ranks_;
    schedule->channels = 1;
    schedule->programs.push_back({sim::Op{.primitive = sim::Primitive::copy}});
    sim::Work work;
    work.size = call.size;
    work.chunk = call.size;
    schedule->works.push_back(work);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      sim::Lane lane;
      lane.rank = rank;
      lane.program = sim::ProgramId(0);
      schedule->lanes.push_back(lane);
    }
    known = schedule;
    return known;
  }
  std::uint32_t sm_count(const sim::Schedule&) const override { return 1; }

 private:
  std::uint32_t ranks_;
  std::map<std::pair<int, std::int64_t>, std::shared_ptr<const sim::Schedule>> schedules_;
};

class ToyCosts final : public sim::CostModel {
 public:
  explicit ToyCosts(Duration fixed) : fixed_(fixed) {}
  sim::Bandwidth link_capacity(const sim::Link& link) const override { return link.capacity; }
  sim::Result<sim::ConnectionCost> connection(const sim::Schedule&, const sim::Group&,
                                              sim::ConnectionId) const override {
    return sim::ConnectionCost{};
  }
  sim::LaneCost lane(const sim::Schedule& schedule, const sim::Lane&) const override {
    sim::LaneCost cost;
    cost.op_overhead = fixed_.count() > 0 ? fixed_ : toy_collective(schedule.call.size.raw());
    return cost;
  }
  sim::Slowdown slowdown(const sim::Schedule&, const sim::Group&) const override { return {}; }

 private:
  Duration fixed_;
};

sim::Group group_of(std::size_t ranks) {
  sim::Group group;
  for (std::size_t r = 0; r < ranks; ++r)
    group.push_back({sim::Rank(r), sim::DeviceId(r), 0, static_cast<std::uint32_t>(r)});
  return group;
}

// 1 byte of HBM traffic = 1 ps.
sim::GpuParameters toy_gpu() {
  sim::GpuParameters gpu;
  gpu.peak_fp32 = {1e12};
  gpu.hbm_bandwidth = sim::bytes_per_second(1'000'000'000'000);
  gpu.memory_efficiency = 1;
  gpu.min_kernel_time = {};
  return gpu;
}

std::int64_t elements_for(int us) { return std::int64_t{us} * 1'000'000 / 4; }

}  // namespace

namespace {

// Exact microseconds: "289.0002".
std::string us(Duration time) {
  std::string text = fmt::format("{}.{:06}", time.count() / 1'000'000, time.count() % 1'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::string to_string(const ToySpan& span) {
  return fmt::format("{} {} {}-{}", span.stream, span.name, us(span.start), us(span.end));
}

ToyOptions toy_options() {
  ToyOptions options;
  sim::HostParameters host;
  host.op_launch = sim::microseconds(1);
  host.collective_launch = sim::microseconds(3);
  host.launch_latency = sim::microseconds(2);
  host.collective_start = sim::microseconds(1);
  host.grad_hook = sim::microseconds(1);
  options.hosts = {host, host};
  options.ddp.iterations = 4;
  // PyTorch 2.3: a given cap leaves the first limit alone. 1 MB, then 1.5 MiB: with gradients of
  // 1 MB that is one, then two, then what is left.
  options.ddp.buckets.version = {2, 3};
  options.ddp.buckets.first_bucket_bytes = sim::bytes(1'000'000);
  options.ddp.buckets.bucket_cap_mb = 1.5;
  return options;
}

models::NeuralNetwork toy_network(const std::vector<ToyLayer>& layers,
                                  std::vector<std::size_t> run_order, models::Buffers buffers) {
  models::NetworkSpec spec;
  spec.name = "toy";
  spec.buffers = buffers;
  for (const ToyLayer& layer : layers)
    spec.parameters.push_back({.name = layer.name + ".weight", .elements = layer.elements});
  if (run_order.empty()) {
    run_order.resize(layers.size());
    std::iota(run_order.begin(), run_order.end(), std::size_t{0});
  }
  for (const std::size_t index : run_order) {
    const ToyLayer& layer = layers[index];
    models::LayerSpec out;
    out.name = layer.name;
    out.kind = models::LayerKind::conv;
    out.has_dgrad = layer.dgrad > 0;
    out.parameters = {layer.name + ".weight"};
    out.work.forward_elements = elements_for(layer.forward);
    out.work.dgrad_elements = elements_for(layer.dgrad);
    out.work.wgrad_elements = elements_for(layer.wgrad);
    spec.layers.push_back(out);
  }
  auto network = models::validate(std::move(spec));
  REQUIRE_MESSAGE(network.ok(), (network.ok() ? "" : network.error().text()));
  return std::move(network).value();
}

struct ToyJob::State {
  explicit State(const ToyOptions& options)
      : costs(options.collective_time),
        simulation(topology, costs),
        trace(static_cast<std::uint32_t>(options.hosts.size())),
        source(static_cast<std::uint32_t>(options.hosts.size())),
        runner(simulation, {&topology, group_of(options.hosts.size()), &source, &costs},
               sim::CollectiveRunner::Options{}) {}

  std::vector<sim::PlanId> plans(const std::vector<DdpCall>& calls) {
    std::vector<sim::PlanId> ids;
    for (const DdpCall& call : calls) {
      sim::CollectiveCall wanted;
      wanted.collective = call.collective;
      wanted.size = call.size;
      const auto plan = runner.plan(wanted);
      REQUIRE(plan.ok());
      ids.push_back(plan.value());
    }
    return ids;
  }

  sim::Topology topology;
  ToyCosts costs;
  sim::Simulation simulation;
  sim::Trace trace;
  ToyCollectives source;
  sim::CollectiveRunner runner;
  models::DdpProgram program;
  std::vector<std::unique_ptr<sim::Gpu>> gpus;
  std::vector<std::unique_ptr<models::DdpRank>> ranks;
  std::vector<std::unique_ptr<sim::HostThread>> hosts;  // destroyed first: they hold the coroutines
};

ToyJob::ToyJob(const models::NeuralNetwork& network, const ToyOptions& options)
    : state_(std::make_unique<State>(options)) {
  State& s = *state_;
  auto program = models::build_ddp_program(
      network, options.ddp, models::KernelModel(toy_gpu(), options.ddp.compute), s.trace);
  REQUIRE_MESSAGE(program.ok(), (program.ok() ? "" : program.error().text()));
  s.program = std::move(program).value();
  for (const std::int64_t i : s.program.distinct) {
    const models::DdpCalls calls = models::ddp_calls(network, s.program.plan, options.ddp, i);
    models::DdpCollectives& plans = s.program.iterations.emplace_back();
    plans.rebuild = s.plans(calls.rebuild);
    plans.buffers = s.plans(calls.buffers);
    for (const auto& bucket : calls.buckets) plans.buckets.push_back(s.plans(bucket));
    plans.unused = s.plans(calls.unused);
    plans.norm_forward = s.plans(calls.norm_forward);
    plans.norm_backward = s.plans(calls.norm_backward);
    plans.join = s.plans(calls.join);
    plans.final_model = s.plans(calls.final_model);
  }
  for (std::size_t r = 0; r < options.hosts.size(); ++r) {
    const sim::HostParameters& host = options.hosts[r];
    const Duration gap = options.gaps.empty() ? sim::microseconds(1) : options.gaps[r];
    s.gpus.push_back(std::make_unique<sim::Gpu>(
        s.simulation.queue(), s.trace, static_cast<std::uint32_t>(r),
        sim::GpuTiming{host.launch_latency, gap, host.collective_start}));
    s.hosts.push_back(
        std::make_unique<sim::HostThread>(s.simulation.queue(), *s.gpus.back(), host));
    auto rank = std::make_unique<models::DdpRank>();
    rank->host = s.hosts.back().get();
    rank->compute = s.gpus.back()->add_stream();
    rank->communication = s.gpus.back()->add_stream();
    if (s.program.callback_stream) rank->callback = s.gpus.back()->add_stream();
    rank->runner = &s.runner;
    rank->group_rank = static_cast<std::uint32_t>(r);
    s.hosts.back()->start(models::run_ddp(s.program, *rank));
    s.ranks.push_back(std::move(rank));
  }
  s.simulation.queue().run();
}

ToyJob::~ToyJob() = default;

bool ToyJob::finished() const {
  return std::ranges::all_of(state_->hosts, [](const auto& host) { return host->finished(); });
}
const models::DdpProgram& ToyJob::program() const { return state_->program; }
const sim::CollectiveRunner& ToyJob::runner() const { return state_->runner; }
const models::DdpRank& ToyJob::rank(std::uint32_t rank) const { return *state_->ranks[rank]; }

Time ToyJob::end_of(std::int64_t iteration, std::uint32_t rank) const {
  if (iteration == 0) return {};
  const auto& marks = state_->ranks[rank]->marks[static_cast<std::size_t>(iteration - 1)];
  return state_->gpus[rank]->fire_time(marks.end);
}

std::int64_t ToyJob::step(std::int64_t iteration, std::uint32_t rank) const {
  return (end_of(iteration, rank) - end_of(iteration - 1, rank)).count();
}

std::vector<ToySpan> ToyJob::iteration(std::int64_t iteration, std::uint32_t rank) const {
  const Time from = end_of(iteration - 1, rank);
  const Time to = end_of(iteration, rank);
  std::vector<sim::Span> spans;
  for (const sim::Span& span : state_->trace.spans())
    if (span.rank == rank && span.start >= from && span.start < to) spans.push_back(span);
  std::ranges::sort(spans, {}, [](const sim::Span& s) { return std::pair{s.start, s.stream}; });
  std::vector<ToySpan> out;
  for (const sim::Span& span : spans)
    out.push_back(
        {span.stream, state_->trace.names()[span.name], span.start - from, span.end - from});
  return out;
}

std::string ToyJob::text(std::int64_t iteration, std::uint32_t rank) const {
  std::string text;
  for (const ToySpan& span : this->iteration(iteration, rank)) text += to_string(span) + "\n";
  return text;
}

}  // namespace railyard::test
