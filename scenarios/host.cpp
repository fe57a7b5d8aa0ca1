#include "scenarios/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "algorithms/nccl/names.h"
#include "models/host/communicator_setup.h"
#include "scenarios/gpu_path.h"
#include "scenarios/where.h"

namespace railyard::scenarios {
namespace {

using sim::Duration;

models::SetupCosts costs_of(const Scenario& scenario, const CommunicatorSpec& spec) {
  algorithms::nccl::Version version = algorithms::nccl::kNewestVersion;
  if (!scenario.nccl_setup.version.empty()) {
    const auto parsed = algorithms::nccl::parse_version(scenario.nccl_setup.version);
    if (parsed.ok()) version = parsed.value();
  }
  models::SetupCosts costs = models::setup_costs(version.major, version.minor);
  if (spec.fixed) costs.fixed = *spec.fixed;
  if (spec.per_rank) costs.per_rank = *spec.per_rank;
  return costs;
}

// The connections to other nodes that a communicator's calls open, by node of their sender. All
// ranks that send through one relay to a rank share its connection.
using NetConnection = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t>;  // from, to, channel

void add_connections(const sim::CollectiveRunner& runner, const sim::Topology& topology,
                     std::map<std::uint32_t, models::HostShare>& shares) {
  std::map<std::uint32_t, std::set<NetConnection>> found;
  for (std::size_t p = 0; p < runner.plan_count(); ++p) {
    const sim::Schedule& schedule = runner.schedule(sim::PlanId(p));
    for (const sim::Connection& connection : schedule.connections) {
      if (!connection.nic_out.valid() || connection.signal) continue;
      const sim::Lane& from = schedule.lanes[connection.from.index()];
      const sim::Lane& to = schedule.lanes[connection.to.index()];
      const sim::DeviceId sender =
          connection.relay.valid() ? connection.relay : runner.group()[from.rank].gpu;
      found[topology.devices[sender.index()].node].emplace(sender.value(), to.rank, from.channel);
    }
  }
  for (const auto& [node, connections] : found)
    shares[node].connections += static_cast<std::int64_t>(connections.size());
}

// Who lost what to which cause.
class Losses {
 public:
  void add(const char* what, std::uint32_t rank, Duration time) {
    if (time.count() > 0) by_cause_[what][rank] += time;
  }
  [[nodiscard]] std::vector<HostLoss> rows() const {
    std::vector<HostLoss> rows;
    for (const auto& [what, by_rank] : by_cause_) {
      const auto most =
          std::ranges::max_element(by_rank, {}, [](const auto& each) { return each.second; });
      rows.push_back({what, most->first, most->second});
    }
    std::ranges::stable_sort(rows, std::greater<>{}, &HostLoss::total);
    return rows;
  }

 private:
  std::map<std::string, std::map<std::uint32_t, Duration>> by_cause_;
};

class Hosts final : public HostState {
 public:
  Hosts(RunContext& context, HostSpec spec)
      : context_(&context), spec_(std::move(spec)), nodes_(context.bound.topology.nodes.size()) {
    for (const sim::Member& member : context.bound.world) node_of_.push_back(member.node);
    if (!spec_.communicators) return;
    const models::SetupCosts costs = costs_of(context.scenario, *spec_.communicators);
    setup_.resize(context.bound.world.size());
    for (const Communication& communication : context.bound.communications)
      for (const sim::Member& member : communication.group)
        setup_[member.rank.index()] += models::setup_time(costs, communication.group.size());
  }

  Result<void> check() {
    const Scenario& scenario = context_->scenario;
    if (!trains(scenario) && !only_ports())
      return where(scenario, "host")
          .error("these are habits of training jobs; other runs know communicators, made once");
    if (spec_.cuda_graphs && scenario.ddp && scenario.ddp->buckets.find_unused_parameters)
      return where(scenario, "host.cuda_graphs")
          .error("a step with find_unused_parameters waits on the host, so no graph can hold it");
    if (spec_.numa) return find_numa();
    return {};
  }

  bool open(const std::vector<const sim::CollectiveRunner*>& runners) override {
    if (!spec_.communicators) return true;
    std::map<std::uint32_t, models::HostShare> shares;
    for (const sim::CollectiveRunner* runner : runners) {
      for (const sim::Member& member : runner->group()) ++shares[member.node].memberships;
      add_connections(*runner, context_->bound.topology, shares);
    }
    for (const auto& [node, share] : shares) nodes_[node].share = share;
    communicators_ = runners.size();
    if (spec_.communicators->create == Creation::every_step) return true;
    for (const auto& [node, share] : shares)
      if (!make(node, sim::Time{})) return false;
    return true;
  }

  sim::HostHabits habits(std::uint32_t rank, std::function<Duration()> jitter) override {
    sim::HostHabits out;
    if (is_remote(rank)) out.pace = spec_.numa->factor;
    for (const std::int64_t every : {spec_.synchronize_every, spec_.print_every})
      if (every > 0) out.read_every.push_back(every);
    if (spec_.cuda_graphs) {
      out.eager_iterations = spec_.cuda_graphs->after;
      out.graph_launch = spec_.cuda_graphs->launch;
    }
    if (jitter || stalls())
      out.stall = [this, rank, jitter = std::move(jitter), step = std::int64_t{0},
                   loader = models::DataLoader(spec_.data_loader)](sim::Time now) mutable {
        Duration lost = fixed_stall(rank, step, now);
        if (jitter) lost += noted("jitter", rank, jitter());
        lost += noted("data loader", rank, loader.wait(now + lost));
        ++step;
        return lost;
      };
    return out;
  }

  std::string cause(std::uint32_t rank) const override {
    if (!is_remote(rank)) return "";
    return fmt::format("host thread far from its GPU (launches take {:g} times as long)",
                       spec_.numa->factor);
  }
  std::vector<HostLoss> losses() const override { return losses_.rows(); }
  const std::vector<std::string>& failures() const override { return failures_; }

 private:
  struct OfNode {
    models::HostShare share;
    models::PortLedger ports;
    std::int64_t made = 0;  // times that the communicators were made
  };

  // What means something to collectives outside a training job.
  [[nodiscard]] bool only_ports() const {
    return spec_.synchronize_every == 0 && spec_.step_overhead.count() == 0 &&
           spec_.print_every == 0 && spec_.data_loader.batch_time.count() == 0 &&
           !spec_.cuda_graphs && !spec_.memory_growth && !spec_.numa && spec_.communicators &&
           spec_.communicators->create == Creation::once && !context_->scenario.collectives.empty();
  }

  [[nodiscard]] bool stalls() const {
    return spec_.data_loader.batch_time.count() > 0 || spec_.step_overhead.count() > 0 ||
           spec_.print_every > 0 || spec_.memory_growth || spec_.communicators;
  }

  Duration noted(const char* what, std::uint32_t rank, Duration time) {
    losses_.add(what, rank, time);
    return time;
  }

  // What does not depend on when the step begins.
  Duration fixed_stall(std::uint32_t rank, std::int64_t step, sim::Time now) {
    Duration lost = noted("script", rank, spec_.step_overhead);
    if (spec_.print_every > 0 && step > 0 && step % spec_.print_every == 0)
      lost += noted("print", rank, spec_.print_time);
    if (spec_.memory_growth)
      lost += noted("memory growth", rank, growth_time(*spec_.memory_growth, step));
    if (!spec_.communicators) return lost;
    const bool every_step = spec_.communicators->create == Creation::every_step;
    if (step > 0 && !every_step) return lost;
    if (every_step) remake(node_of_[rank], step, now);
    return lost + noted("communicators", rank, setup_[rank]);
  }

  // The first rank of a node that gets there speaks for all.
  void remake(std::uint32_t node, std::int64_t step, sim::Time now) {
    OfNode& of = nodes_[node];
    if (of.made > step) return;
    if (of.made > 0) of.ports.destroy(now, of.share);
    if (!make(node, now)) context_->stop = true;
  }

  bool make(std::uint32_t node, sim::Time now) {
    const CommunicatorSpec& spec = *spec_.communicators;
    OfNode& of = nodes_[node];
    ++of.made;
    const std::int64_t needed = of.ports.make(now, of.share);
    const std::int64_t there = spec.last_port - spec.first_port + 1;
    if (needed <= there) return true;
    const std::string again =
        of.made > 1 ? fmt::format(
                          ", made for the {}th time while closed connections keep theirs "
                          "for a minute",
                          of.made)
                    : "";
    failures_.push_back(fmt::format(
        "{} needs {} TCP ports for {} communicator{} ({} memberships of ranks, {} connections to "
        "other nodes{}), but ports {} to {} are {}: NCCL fails with \"Address already in use\" "
        "(host.communicators.ports, net.ipv4.ip_local_port_range)",
        context_->bound.topology.nodes[node].name, needed, communicators_,
        communicators_ == 1 ? "" : "s", of.share.memberships, of.share.connections, again,
        spec.first_port, spec.last_port, there));
    return false;
  }

  [[nodiscard]] bool is_remote(std::uint32_t rank) const {
    if (!spec_.numa) return false;
    return numa_of_gpu_[context_->bound.world[rank].local_index] != spec_.numa->bound_to;
  }

  // All nodes are alike: one GPU of each place is asked.
  Result<void> find_numa() {
    const sim::Topology& topology = context_->bound.topology;
    std::int64_t cpus = 0;
    for (const sim::Device& device : topology.devices)
      if (device.kind == sim::DeviceKind::cpu && device.node == 0) ++cpus;
    if (spec_.numa->bound_to >= cpus)
      return where(context_->scenario, "host.numa.bound_to")
          .error(fmt::format("there is no NUMA node {}: a node of this machine has {}",
                             spec_.numa->bound_to, cpus));
    for (const sim::DeviceId gpu : topology.nodes.front().gpus) {
      const sim::DeviceId cpu = nearest_cpu(topology, gpu);
      numa_of_gpu_.push_back(cpu.valid() ? topology.devices[cpu.index()].local_index : 0);
    }
    return {};
  }

  RunContext* context_;
  HostSpec spec_;
  std::vector<OfNode> nodes_;
  std::vector<std::uint32_t> node_of_;     // by rank
  std::vector<Duration> setup_;            // by rank: of all its communicators
  std::vector<std::int64_t> numa_of_gpu_;  // by place in a node
  std::size_t communicators_ = 0;
  Losses losses_;
  std::vector<std::string> failures_;
};

}  // namespace

Duration growth_time(const MemoryGrowthSpec& spec, std::int64_t step) {
  if (step >= spec.steps) return {};
  // The first step takes what does not divide.
  const std::int64_t size =
      spec.size.raw() / spec.steps + (step == 0 ? spec.size.raw() % spec.steps : 0);
  const std::int64_t segments = (size + spec.segment.raw() - 1) / spec.segment.raw();
  Duration time = spec.allocation * segments;
  if (spec.registration.raw() > 0) time += sim::transfer_time(sim::bytes(size), spec.registration);
  return time;
}

Result<void> start_host(RunContext& context) {
  const auto& spec = context.scenario.host;
  auto hosts = std::make_shared<Hosts>(context, spec ? *spec : HostSpec{});
  if (spec) RAILYARD_TRY(hosts->check());
  context.host = std::move(hosts);
  return {};
}

}  // namespace railyard::scenarios
