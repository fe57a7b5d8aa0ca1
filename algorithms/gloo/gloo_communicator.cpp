#include "algorithms/gloo/gloo_communicator.h"

#include <string>
#include <utility>

#include "algorithms/gloo/schedules.h"
#include "algorithms/gloo/segments.h"
#include "algorithms/local_copy.h"

namespace railyard::algorithms {
namespace {

using sim::Algorithm;
using sim::bad_input;
using sim::Collective;
using sim::CollectiveCall;
using sim::Result;
using sim::Schedule;

bool offers(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::all_gather ||
         collective == Collective::broadcast || collective == Collective::reduce;
}

}  // namespace

GlooCommunicator::GlooCommunicator(std::vector<std::uint32_t> hosts,
                                   std::vector<sim::DeviceId> nics)
    : hosts_(std::move(hosts)), nics_(std::move(nics)) {}

Result<std::unique_ptr<GlooCommunicator>> GlooCommunicator::create(const sim::Topology& topology,
                                                                   const sim::Group& group) {
  if (group.empty()) return bad_input("a group without ranks");
  std::vector<std::uint32_t> hosts;
  std::vector<sim::DeviceId> nics;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    const sim::DeviceId place = group[rank].gpu;
    if (!place.valid() || place.index() >= topology.devices.size() ||
        topology.devices[place.index()].node >= topology.nodes.size())
      return bad_input("rank " + std::to_string(rank) +
                       " of the group is on no GPU of the topology");
    hosts.push_back(topology.devices[place.index()].node);
    const auto& own = topology.nodes[hosts.back()].nics;
    nics.push_back(own.empty() ? sim::DeviceId() : own.front());
  }
  return std::unique_ptr<GlooCommunicator>(new GlooCommunicator(std::move(hosts), std::move(nics)));
}

Result<void> GlooCommunicator::check(const CollectiveCall& call) const {
  const std::string name(to_text(call.collective));
  if (!offers(call.collective))
    return bad_input("Gloo's " + name +
                     " is not modelled; there are AllReduce, AllGather, Broadcast and Reduce");
  if (call.algorithm != Algorithm::gloo && call.algorithm != Algorithm::gloo_bcube)
    return bad_input(
        "Gloo has no " + std::string(to_text(call.algorithm)) + "; expected Gloo or GlooBcube",
        "algorithm");
  if (call.algorithm == Algorithm::gloo_bcube && call.collective != Collective::all_reduce)
    return bad_input("GlooBcube is for AllReduce only; " + name + " has Gloo", "algorithm");
  const std::int64_t element = call.element_size;
  if (element <= 0 || call.size.raw() < 0 || call.size.raw() % element != 0)
    return bad_input(name + ": " + std::to_string(call.size.raw()) +
                     " bytes are no whole number of elements of " + std::to_string(element) +
                     " bytes");
  if (sim::is_rooted(call.collective) && call.root >= ranks())
    return bad_input(name + ": root " + std::to_string(call.root) + " of a group of " +
                     std::to_string(ranks()) + " ranks; expected 0 to " +
                     std::to_string(ranks() - 1));
  return {};
}

// An empty call moves nothing and has no lanes.
Schedule GlooCommunicator::build(const CollectiveCall& call) const {
  if (ranks() == 1) return local_copy_schedule(call);
  if (call.size.raw() == 0) {
    Schedule nothing;
    nothing.call = call;
    nothing.ranks = ranks();
    nothing.fifo_slices = gloo::kInFlight;
    return nothing;
  }
  const gloo::GlooInput input{.call = call, .ranks = ranks(), .nics = nics_, .hosts = hosts_};
  switch (call.collective) {
    case Collective::all_gather: return gloo::ring_all_gather(input);
    case Collective::broadcast: return gloo::tree_broadcast(input);
    case Collective::reduce: return gloo::ring_reduce(input);
    default:
      return call.algorithm == Algorithm::gloo_bcube ? gloo::bcube_all_reduce(input)
                                                     : gloo::ring_all_reduce(input);
  }
}

Result<std::shared_ptr<const Schedule>> GlooCommunicator::schedule(const CollectiveCall& asked) {
  RAILYARD_TRY(check(asked));
  CollectiveCall call = asked;
  if (!sim::is_rooted(call.collective)) call.root = 0;  // ignored, so equal calls are equal
  call.protocol = sim::Protocol::simple;                // likewise
  call.max_channels = 0;
  const Key key{call.collective, call.size,      call.element_size,
                call.root,       call.algorithm, call.in_place};
  if (const auto found = cache_.find(key); found != cache_.end()) return found->second;
  auto shared = std::make_shared<const Schedule>(build(call));
  cache_.emplace(key, shared);
  return shared;
}

}  // namespace railyard::algorithms
