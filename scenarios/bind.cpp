#include "scenarios/bind.h"

#include <algorithm>
#include <set>

#include "algorithms/channels.h"
#include "models/nn/catalogue.h"
#include "topologies/cluster.h"
#include "topologies/placement.h"

namespace railyard::scenarios {
namespace {

std::uint32_t largest_channel_count(const Scenario& scenario) {
  std::uint32_t channels = 0;
  for (const NcclChoice& choice : scenario.nccl) channels = std::max(channels, choice.channels);
  return channels;
}

Result<void> add_communication(const Scenario& scenario, const std::string& name, sim::Group group,
                               Bound& bound) {
  algorithms::ChannelOptions options;
  options.count = largest_channel_count(scenario);
  RAILYARD_ASSIGN(sim::Channels channels,
                  algorithms::default_channels(bound.topology, group, options));
  RAILYARD_ASSIGN(auto communicator,
                  algorithms::Communicator::create(bound.topology, group, std::move(channels)));
  bound.communications.push_back({name, std::move(group), std::move(communicator)});
  return {};
}

Result<void> add_named_group(const Scenario& scenario, const NamedGroup& group, Bound& bound) {
  if (group.division) {
    RAILYARD_ASSIGN(const std::vector<sim::Group> parts,
                    topologies::sub_groups(bound.world, *group.division));
    for (const sim::Group& part : parts)
      RAILYARD_TRY(add_communication(scenario, group.name, part, bound));
    return {};
  }
  RAILYARD_ASSIGN(sim::Group ranks, topologies::pick_ranks(bound.world, group.ranks));
  return add_communication(scenario, group.name, std::move(ranks), bound);
}

}  // namespace

Result<std::unique_ptr<Bound>> bind(const Scenario& scenario) {
  auto bound = std::make_unique<Bound>();
  RAILYARD_ASSIGN(bound->topology, topologies::build(scenario.cluster));
  bound->parameters = scenario.parameters;
  RAILYARD_ASSIGN(bound->world, topologies::place_world(bound->topology, scenario.ranks));
  bound->costs = std::make_unique<models::CommCosts>(bound->topology, bound->parameters);
  std::set<std::string> wanted;
  if (scenario.ddp) wanted.emplace(kWorld);
  for (const CollectiveRun& run : scenario.collectives) wanted.insert(run.group);
  for (const std::string& name : wanted) {
    if (name == kWorld) {
      RAILYARD_TRY(add_communication(scenario, name, bound->world, *bound));
      continue;
    }
    const auto found = std::ranges::find(scenario.groups, name, &NamedGroup::name);
    if (found == scenario.groups.end()) return sim::bad_input("unknown group '" + name + "'");
    RAILYARD_TRY(add_named_group(scenario, *found, *bound));
  }
  return bound;
}

std::vector<Communication*> communications_of(Bound& bound, const std::string& group) {
  std::vector<Communication*> found;
  for (Communication& communication : bound.communications)
    if (communication.name == group) found.push_back(&communication);
  return found;
}

sim::CollectiveCall choose(const Scenario& scenario, sim::Collective collective, sim::Bytes size,
                           std::int64_t element_size) {
  RAILYARD_CHECK(!scenario.nccl.empty(), "a scenario with collectives has nccl choices");
  const auto found =
      std::ranges::find_if(scenario.nccl, [&](const NcclChoice& c) { return size <= c.up_to; });
  const NcclChoice& choice = found == scenario.nccl.end() ? scenario.nccl.back() : *found;
  sim::CollectiveCall call;
  call.collective = collective;
  call.size = size;
  call.element_size = element_size;
  call.protocol = choice.protocol;
  call.algorithm =
      collective == sim::Collective::all_reduce ? choice.algorithm : sim::Algorithm::ring;
  call.max_channels = choice.channels;
  return call;
}

Result<models::NeuralNetwork> network_of(const Scenario& scenario) {
  const DdpSpec& ddp = *scenario.ddp;
  if (ddp.network) return models::validate(*ddp.network);
  models::ModelOptions options;
  options.sequence_length = ddp.sequence_length;
  options.image_size = ddp.image_size;
  options.parameter_dtype = parameter_dtype(ddp.precision);
  return models::build_model(ddp.model, options);
}

}  // namespace railyard::scenarios
