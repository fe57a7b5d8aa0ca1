#include "algorithms/communicator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "algorithms/availability.h"
#include "algorithms/channels.h"
#include "algorithms/collnet.h"
#include "algorithms/hierarchical.h"
#include "algorithms/local_copy.h"
#include "algorithms/nvls.h"
#include "algorithms/pat.h"
#include "algorithms/places.h"
#include "algorithms/ring.h"
#include "algorithms/tree.h"

namespace railyard::algorithms {
namespace {

using sim::Algorithm;
using sim::bad_input;
using sim::Collective;
using sim::CollectiveCall;
using sim::Protocol;
using sim::Result;
using sim::Schedule;

std::string name(const CollectiveCall& call) { return std::string(to_text(call.collective)); }

Result<void> check_size(const CollectiveCall& call, std::uint32_t ranks) {
  const std::int64_t element = call.element_size;
  if (element != 1 && element != 2 && element != 4 && element != 8)
    return bad_input(name(call) + ": an element of " + std::to_string(element) +
                     " bytes; expected 1, 2, 4 or 8");
  const std::int64_t size = call.size.raw();
  if (size < 0) return bad_input(name(call) + ": a negative size of " + std::to_string(size));
  if (size % element != 0)
    return bad_input(name(call) + ": " + std::to_string(size) +
                     " bytes are no whole number of elements of " + std::to_string(element) +
                     " bytes");
  if (call.collective == Collective::all_to_all && size % (element * ranks) != 0)
    return bad_input("AllToAll: " + std::to_string(size) +
                     " bytes do not divide into elements of " + std::to_string(element) +
                     " bytes for each of " + std::to_string(ranks) + " ranks");
  return {};
}

}  // namespace

Communicator::Communicator(CommShape shape, sim::Channels channels, LaunchLimits limits,
                           P2pLayout p2p)
    : shape_(shape), channels_(std::move(channels)), limits_(limits), p2p_(std::move(p2p)) {}

Result<std::unique_ptr<Communicator>> Communicator::create(const sim::Topology& topology,
                                                           const sim::Group& group,
                                                           sim::Channels channels,
                                                           const CommunicatorOptions& options) {
  RAILYARD_ASSIGN(Places places, find_places(topology, group));
  RAILYARD_TRY(check_channels(topology, group.size(), channels));
  CommShape shape = shape_of(places);
  shape.nvls_chunks = options.nvls_chunks;
  shape.fifos = options.fifos;
  if (const auto& nodes = channels.front().heads.nodes; !nodes.empty())
    shape.heads = static_cast<std::uint32_t>(nodes.front().heads.size());
  P2pLayout p2p = p2p_layout(std::move(places), group, static_cast<std::uint32_t>(channels.size()),
                             options.p2p);
  p2p.shape.fifos = shape.fifos;
  return std::unique_ptr<Communicator>(
      new Communicator(shape, std::move(channels), options.limits, std::move(p2p)));
}

Result<void> Communicator::check(const CollectiveCall& call) const {
  RAILYARD_TRY(check_size(call, shape_.ranks));
  if (sim::is_rooted(call.collective) && call.root >= shape_.ranks)
    return bad_input(name(call) + ": root " + std::to_string(call.root) + " of a group of " +
                     std::to_string(shape_.ranks) + " ranks; expected 0 to " +
                     std::to_string(shape_.ranks - 1));
  RAILYARD_TRY(check_algorithm(call, shape_, channels_));
  const bool needs_other =
      call.collective == Collective::all_to_all || call.collective == Collective::send_recv;
  if (needs_other && call.in_place)
    return bad_input(name(call) + " in place is not available: its output must be another buffer");
  if (sim::is_point_to_point(call.collective) && call.protocol == Protocol::ll128)
    return bad_input(name(call) +
                         " is made of sends and receives, which have no LL128; expected LL, Simple "
                         "or plain",
                     "protocol");
  return {};
}

Result<Schedule> Communicator::build(const CollectiveCall& call) const {
  if (shape_.ranks == 1) return local_copy_schedule(call);
  if (sim::is_point_to_point(call.collective)) return point_to_point_schedule(call, p2p_);
  auto channels = static_cast<std::uint32_t>(channels_.size());
  if (call.algorithm == Algorithm::nvls || call.algorithm == Algorithm::nvls_tree)
    channels = std::min(channels, limits_.nvls_channels);
  const BuildInput input{.call = call,
                         .channels = channels_,
                         .shape = shape_,
                         .parts = split_call(call, shape_, channels, limits_)};
  switch (call.algorithm) {
    case Algorithm::tree: return tree_schedule(input);
    case Algorithm::pat: return pat_schedule(input, p2p_);
    case Algorithm::nvls: return nvls_schedule(input);
    case Algorithm::nvls_tree: return nvls_tree_schedule(input, p2p_);
    case Algorithm::collnet_direct: return collnet_direct_schedule(input, p2p_);
    case Algorithm::collnet_chain: return collnet_chain_schedule(input, p2p_);
    case Algorithm::hierarchical: return hierarchical_schedule(input, p2p_);
    default: return ring_schedule(input);
  }
}

Protocol Communicator::point_to_point_protocol(const CollectiveCall& call) const {
  const std::int64_t peers = call.collective == Collective::all_to_all ? shape_.ranks : 1;
  return p2p_protocol(p2p_, sim::bytes(call.size.raw() / peers));
}

Result<std::shared_ptr<const Schedule>> Communicator::schedule(const CollectiveCall& asked) {
  RAILYARD_TRY(check(asked));
  CollectiveCall call = asked;
  if (!sim::is_rooted(call.collective)) call.root = 0;  // ignored, so equal calls are equal
  const Key key{call.collective, call.size,     call.element_size, call.root,
                call.algorithm,  call.protocol, call.max_channels, call.in_place};
  if (const auto found = cache_.find(key); found != cache_.end()) return found->second;
  RAILYARD_ASSIGN(Schedule built, build(call));
  auto shared = std::make_shared<const Schedule>(std::move(built));
  cache_.emplace(key, shared);
  return shared;
}

std::uint32_t Communicator::sm_count(const Schedule& schedule) const {
  return schedule.ranks == 1 ? 0 : schedule.channels;
}

}  // namespace railyard::algorithms
