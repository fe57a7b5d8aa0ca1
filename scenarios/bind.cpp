#include "scenarios/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "algorithms/availability.h"
#include "algorithms/channels.h"
#include "algorithms/gloo/gloo_communicator.h"
#include "models/comm/comm_costs.h"
#include "models/comm/gloo_costs.h"
#include "scenarios/where.h"
#include "scenarios/workload.h"
#include "topologies/cluster.h"
#include "topologies/placement.h"

namespace railyard::scenarios {
namespace {

// Measured on clusters of a thousand to a hundred thousand GPUs.
constexpr double kBytesPerDevice = 64;
constexpr double kBytesPerLink = 32;
constexpr double kBytesPerRank = 300;
constexpr double kBytesPerRankAndChannel = 30;

std::uint32_t largest_channel_count(const Scenario& scenario) {
  std::uint32_t channels = 0;
  for (const NcclChoice& choice : scenario.nccl) channels = std::max(channels, choice.channels);
  return channels;
}

// Channels by the default rule, for choices that are named.
Result<Communication> communicate_by_rule(const Scenario& scenario, Bound& bound,
                                          const sim::Group& group) {
  algorithms::ChannelOptions options;
  options.count = largest_channel_count(scenario);
  auto channels = algorithms::default_channels(bound.topology, group, options);
  if (!channels.ok()) return at_path(scenario, "cluster", channels.error());
  Communication out;
  RAILYARD_ASSIGN(auto communicator, algorithms::Communicator::create(bound.topology, group,
                                                                      std::move(channels).value()));
  out.nccl = communicator.get();
  out.communicator = std::move(communicator);
  return out;
}

// Channels and choices as NCCL would have them.
Result<Communication> communicate_as_nccl(const Scenario& scenario, Bound& bound,
                                          const sim::Group& group) {
  Communication out;
  auto plan = plan_group(scenario, bound.topology, group);
  if (!plan.ok()) return at_path(scenario, "nccl", plan.error());
  out.plan = std::move(plan).value();
  PlannedCommunicator planned = planned_communicator(out.plan, bound.topology, group);
  auto communicator = algorithms::Communicator::create(
      bound.topology, group, std::move(planned.channels), planned.options);
  if (!communicator.ok()) return at_path(scenario, "nccl", communicator.error());
  out.nccl = communicator.value().get();
  out.communicator = std::move(communicator).value();
  return out;
}

Result<Communication> communicate_as_gloo(const Scenario& scenario, Bound& bound,
                                          const sim::Group& group) {
  auto communicator = algorithms::GlooCommunicator::create(bound.topology, group);
  if (!communicator.ok()) return at_path(scenario, "backend", communicator.error());
  Communication out;
  out.communicator = std::move(communicator).value();
  return out;
}

Result<Communication> communicate(const Scenario& scenario, Bound& bound, const sim::Group& group) {
  if (scenario.backend != Backend::nccl) return communicate_as_gloo(scenario, bound, group);
  return scenario.nccl_setup.choose ? communicate_as_nccl(scenario, bound, group)
                                    : communicate_by_rule(scenario, bound, group);
}

Result<void> add_communication(const Scenario& scenario, const std::string& name, sim::Group group,
                               Bound& bound) {
  RAILYARD_ASSIGN(Communication made, communicate(scenario, bound, group));
  made.name = name;
  made.group = std::move(group);
  bound.communications.push_back(std::move(made));
  return {};
}

Result<void> add_named_group(const Scenario& scenario, const NamedGroup& group, Bound& bound) {
  const std::string path = "ranks.groups." + group.name;
  if (group.division) {
    const auto parts = topologies::sub_groups(bound.world, *group.division);
    if (!parts.ok()) return at_path(scenario, path, parts.error());
    for (const sim::Group& part : parts.value())
      RAILYARD_TRY(add_communication(scenario, group.name, part, bound));
    return {};
  }
  const auto outside =
      std::ranges::find_if(group.ranks, [&](std::uint32_t r) { return r >= bound.world.size(); });
  const auto index = outside - group.ranks.begin();
  auto ranks = topologies::pick_ranks(bound.world, group.ranks);
  if (!ranks.ok()) return at_path(scenario, fmt::format("{}[{}]", path, index), ranks.error());
  return add_communication(scenario, group.name, std::move(ranks).value(), bound);
}

// The word after `prefix` in a message that names a key in full ("fabric.rails is 3, but ...").
std::string named_key(const std::string& message, std::string_view prefix) {
  const std::size_t start = message.find(prefix);
  if (start == std::string::npos) return {};
  const std::size_t word = start + prefix.size();
  const std::size_t end = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", word);
  return message.substr(word, end - word);
}

// Errors of building a cluster, at the key that they are about.
Error at_cluster(const Scenario& scenario, const Error& error) {
  for (std::size_t i = 0, disabled = 0; i < scenario.cluster.changes.size(); ++i) {
    const topologies::LinkChange& change = scenario.cluster.changes[i];
    disabled += change.disable ? 1 : 0;
    if (!error.message.starts_with("link change '" + change.pattern + "'")) continue;
    return at_path(scenario,
                   change.disable ? fmt::format("cluster.disable[{}]", disabled - 1)
                                  : fmt::format("cluster.slow[{}].link", i - disabled),
                   error);
  }
  return at_path(scenario, "cluster.fabric." + named_key(error.message, "fabric."), error);
}

Error at_ranks(const Scenario& scenario, const Error& error) {
  const std::string key = named_key(error.message, "placement.");
  return at_path(scenario, "ranks." + (key.empty() ? "count" : key), error);
}

Result<void> check_roots(const Scenario& scenario, Bound& bound) {
  for (std::size_t i = 0; i < scenario.collectives.size(); ++i) {
    const CollectiveRun& run = scenario.collectives[i];
    const std::size_t ranks = communications_of(bound, run.group).front()->group.size();
    if (run.root < ranks) continue;
    return where(scenario, fmt::format("collectives[{}].root", i))
        .error(fmt::format("root {} of a group of {} ranks; expected 0 to {}", run.root, ranks,
                           ranks - 1));
  }
  return {};
}

// The groups whose communicators the scenario's workload needs.
std::set<std::string> groups_of(const Scenario& scenario) {
  std::set<std::string> groups;
  if (scenario.ddp) groups.emplace(kWorld);
  for (const CollectiveRun& run : scenario.collectives) groups.insert(run.group);
  if (scenario.workload)
    for (std::string& name : scenario.workload->groups()) groups.insert(std::move(name));
  return groups;
}

}  // namespace

Result<std::unique_ptr<Bound>> bind(const Scenario& scenario) {
  auto bound = std::make_unique<Bound>();
  auto topology = topologies::build(scenario.cluster);
  if (!topology.ok()) return at_cluster(scenario, topology.error());
  bound->topology = std::move(topology).value();
  bound->parameters = scenario.parameters;
  auto world = topologies::place_world(bound->topology, scenario.ranks);
  if (!world.ok()) return at_ranks(scenario, world.error());
  bound->world = std::move(world).value();
  if (scenario.backend == Backend::nccl)
    bound->costs = std::make_unique<models::CommCosts>(bound->topology, bound->parameters);
  else
    bound->costs = std::make_unique<models::GlooCosts>(bound->topology, bound->parameters);
  const std::set<std::string> wanted = groups_of(scenario);
  for (const std::string& name : wanted) {
    if (name == kWorld) {
      RAILYARD_TRY(add_communication(scenario, name, bound->world, *bound));
      continue;
    }
    const auto found = std::ranges::find(scenario.groups, name, &NamedGroup::name);
    if (found == scenario.groups.end()) return sim::bad_input("unknown group '" + name + "'");
    RAILYARD_TRY(add_named_group(scenario, *found, *bound));
  }
  if (scenario.workload) {
    const auto own = scenario.workload->own_groups(static_cast<std::uint32_t>(bound->world.size()));
    if (!own.ok()) return at_path(scenario, scenario.workload->key(), own.error());
    for (const NamedGroup& group : own.value())
      RAILYARD_TRY(add_named_group(scenario, group, *bound));
  }
  RAILYARD_TRY(check_roots(scenario, *bound));
  return bound;
}

Result<double> bind_memory_bytes(const Scenario& scenario) {
  const auto size = topologies::cluster_size(scenario.cluster);
  if (!size.ok()) return at_cluster(scenario, size.error());
  const std::set<std::string> groups = groups_of(scenario);
  const auto gpus = static_cast<double>(size.value().gpus);
  const double ranks =
      scenario.ranks.ranks == 0 ? gpus : std::min(gpus, static_cast<double>(scenario.ranks.ranks));
  const double channels = std::max(1U, largest_channel_count(scenario));
  const double per_group = kBytesPerRank + channels * kBytesPerRankAndChannel;
  return static_cast<double>(size.value().devices) * kBytesPerDevice +
         static_cast<double>(size.value().links) * kBytesPerLink +
         ranks * static_cast<double>(groups.size()) * per_group;
}

std::vector<Communication*> communications_of(Bound& bound, const std::string& group) {
  std::vector<Communication*> found;
  for (Communication& communication : bound.communications)
    if (communication.name == group) found.push_back(&communication);
  return found;
}

std::size_t choice_index(const Scenario& scenario, sim::Bytes size) {
  RAILYARD_CHECK(!scenario.nccl.empty(), "a scenario with collectives has nccl choices");
  const auto found =
      std::ranges::find_if(scenario.nccl, [&](const NcclChoice& c) { return size <= c.up_to; });
  const auto index = static_cast<std::size_t>(found - scenario.nccl.begin());
  return std::min(index, scenario.nccl.size() - 1);
}

Result<sim::CollectiveCall> choose(const Scenario& scenario, const Communication& communication,
                                   const AskedCall& asked) {
  sim::CollectiveCall call;
  call.collective = asked.collective;
  call.size = asked.size;
  call.element_size = asked.element_size;
  if (communication.nccl == nullptr) {
    const bool bcube =
        scenario.backend == Backend::gloo_bcube && call.collective == sim::Collective::all_reduce;
    call.algorithm = bcube ? sim::Algorithm::gloo_bcube : sim::Algorithm::gloo;
    return call;
  }
  if (communication.plan) {
    auto chosen = choose_call(*communication.plan, call);
    if (!chosen.ok()) return at_path(scenario, "env", chosen.error());
    if (!algorithms::nccl::function_of(call.collective).ok())
      chosen.value().protocol = communication.nccl->point_to_point_protocol(call);
    return chosen;
  }
  const NcclChoice& choice = scenario.nccl[choice_index(scenario, asked.size)];
  call.protocol = choice.protocol;
  const bool no_ll128 = sim::is_point_to_point(call.collective) && scenario.nccl.size() > 1;
  if (no_ll128 && call.protocol == sim::Protocol::ll128) call.protocol = sim::Protocol::simple;
  call.algorithm = algorithms::has_algorithm(call.collective, choice.algorithm)
                       ? choice.algorithm
                       : sim::Algorithm::ring;
  call.max_channels = choice.channels;
  return call;
}

}  // namespace railyard::scenarios
