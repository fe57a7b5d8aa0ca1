#include "algorithms/channels.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/double_tree.h"
#include "algorithms/heads.h"
#include "algorithms/places.h"

namespace railyard::algorithms {
namespace {

using sim::bad_input;
using sim::Channel;
using sim::Channels;
using sim::Result;
using sim::TreeEdges;

constexpr std::uint32_t kNoRail = 0xffffffff;

// How one channel runs through one node.
struct Segment {
  std::vector<std::uint32_t> ranks;  // first = nearest the channel's NIC
  std::uint32_t rail = kNoRail;      // of the first rank
  std::uint32_t last_rail = kNoRail;
};

// Local order starting at the rank nearest `rail`; if several are, at one whose predecessor, which
// comes last, is nearest too.
std::vector<std::uint32_t> local_order(const Places& places, const Place& place,
                                       std::uint32_t rail) {
  const std::size_t count = place.ranks.size();
  const auto near = [&](std::size_t i) { return is_gateway(places, place.ranks[i % count], rail); };
  std::size_t start = count;
  for (std::size_t i = 0; i < count; ++i) {
    if (!near(i)) continue;
    if (start == count) start = i;
    if (count > 1 && near(i + count - 1)) {
      start = i;
      break;
    }
  }
  std::vector<std::uint32_t> order = place.ranks;
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(start % count),
              order.end());
  return order;
}

Segment segment(const Places& places, const Place& place, std::uint32_t channel,
                std::uint32_t rails) {
  Segment result;
  if (rails == 0 || place.rails.empty()) {
    const std::size_t turn = channel % place.ranks.size();
    result.ranks = place.ranks;
    std::rotate(result.ranks.begin(), result.ranks.begin() + static_cast<std::ptrdiff_t>(turn),
                result.ranks.end());
    return result;
  }
  const std::size_t used = std::min<std::size_t>(rails, place.rails.size());
  result.rail = place.rails[channel % used];
  result.ranks = local_order(places, place, result.rail);
  const auto& last = places.gateway_rails[result.ranks.back()];
  if (is_gateway(places, result.ranks.back(), result.rail) || last.empty()) {
    result.last_rail = result.rail;  // if no gateway itself, through one (add_relays)
    return result;
  }
  // Where GPUs have several NICs: the k-th of the first GPU with the k-th of the last.
  const auto& first = places.gateway_rails[result.ranks.front()];
  const auto k = std::find(first.begin(), first.end(), result.rail) - first.begin();
  result.last_rail = last[static_cast<std::size_t>(k) % last.size()];
  return result;
}

bool has_rail(const Place& place, std::uint32_t rail) { return rail < place.nics.size(); }

// The edge between two nodes: on the receiver's rail on both sides where the sender has it.
void add_net_edge(const Places& places, std::pair<std::uint32_t, std::uint32_t> from_to,
                  std::uint32_t out_rail, std::uint32_t in_rail, Channel& channel) {
  if (out_rail == kNoRail || in_rail == kNoRail) return;
  const Place& from = places.places[places.place_of[from_to.first]];
  const Place& to = places.places[places.place_of[from_to.second]];
  if (has_rail(from, in_rail)) out_rail = in_rail;
  channel.net_edges.push_back(
      {from_to.first, from_to.second, from.nics[out_rail], to.nics[in_rail]});
}

void add_ring(const Places& places, std::vector<Segment> segments, Channel& channel) {
  const bool same_rail = std::all_of(segments.begin(), segments.end(),
                                     [](const Segment& one) { return one.rail == one.last_rail; });
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (!same_rail && i % 2 == 1) {
      std::reverse(segments[i].ranks.begin(), segments[i].ranks.end());
      std::swap(segments[i].rail, segments[i].last_rail);
    }
    channel.ring.insert(channel.ring.end(), segments[i].ranks.begin(), segments[i].ranks.end());
  }
  if (segments.size() < 2) return;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& from = segments[i];
    const Segment& to = segments[(i + 1) % segments.size()];
    add_net_edge(places, {from.ranks.back(), to.ranks.front()}, from.last_rail, to.rail, channel);
  }
}

void add_child(TreeEdges& edges, std::uint32_t child) {
  for (std::int32_t& slot : edges.down) {
    if (slot >= 0) continue;
    slot = static_cast<std::int32_t>(child);
    return;
  }
  RAILYARD_CHECK(false, "a tree node has at most three children");
}

void add_tree(const Places& places, const std::vector<Segment>& segments, std::uint32_t which,
              Channel& channel) {
  channel.tree.resize(places.place_of.size());
  for (const Segment& one : segments) {
    for (std::size_t i = 1; i < one.ranks.size(); ++i) {
      channel.tree[one.ranks[i]].up = static_cast<std::int32_t>(one.ranks[i - 1]);
      add_child(channel.tree[one.ranks[i - 1]], one.ranks[i]);
    }
  }
  const auto nodes = static_cast<std::uint32_t>(segments.size());
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Segment& here = segments[node];
    for (const std::int32_t child : double_tree(which, node, nodes).children) {
      if (child == kNoNeighbour) continue;
      const Segment& below = segments[static_cast<std::size_t>(child)];
      const std::uint32_t head = here.ranks.front();
      const std::uint32_t child_head = below.ranks.front();
      channel.tree[child_head].up = static_cast<std::int32_t>(head);
      add_child(channel.tree[head], child_head);
      add_net_edge(places, {head, child_head}, here.rail, below.rail, channel);
      add_net_edge(places, {child_head, head}, below.rail, here.rail, channel);
    }
  }
}

// Edges that ring and tree share are listed once.
void drop_repeated_edges(Channel& channel) {
  const auto key = [](const sim::NetEdge& edge) { return std::make_pair(edge.from, edge.to); };
  auto& edges = channel.net_edges;
  std::stable_sort(edges.begin(), edges.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  edges.erase(std::unique(edges.begin(), edges.end(),
                          [&](const auto& a, const auto& b) { return key(a) == key(b); }),
              edges.end());
}

// PXN: a sender that is not next to the NIC hands its data over NVLink to a GPU that is (NCCL does
// this for sends only; data lands directly).
void add_relays(const Places& places, const sim::Group& group, Channel& channel) {
  if (!places.nvlink) return;
  for (sim::NetEdge& edge : channel.net_edges) {
    const Place& place = places.places[places.place_of[edge.from]];
    const auto rail = static_cast<std::uint32_t>(
        std::find(place.nics.begin(), place.nics.end(), edge.nic_out) - place.nics.begin());
    if (is_gateway(places, edge.from, rail)) continue;
    const auto near = std::find_if(place.ranks.begin(), place.ranks.end(), [&](std::uint32_t rank) {
      return is_gateway(places, rank, rail);
    });
    if (near != place.ranks.end()) edge.relay = group[*near].gpu;
  }
}

// Rails that every channel may use: all of the node that has most, or none if a node has no NIC.
std::uint32_t rail_count(const Places& places) {
  std::size_t most = 0;
  for (const Place& place : places.places) {
    if (place.rails.empty()) return 0;
    most = std::max(most, place.rails.size());
  }
  return static_cast<std::uint32_t>(most);
}

std::uint32_t count_by_rule(const Places& places) {
  const std::uint32_t rails = rail_count(places);
  const bool one_node = places.places.size() == 1;
  if (places.nvswitch) {
    if (one_node) return 24;
    if (rails == 0) return 16;
    const auto wanted = static_cast<std::uint32_t>(align_up(std::min(16u, 4 * rails), rails));
    return std::min(wanted, kMaxChannels / 2);
  }
  if (places.nvlink) return 12;
  if (!places.pcie) return 1;
  return one_node || rails == 0 ? 2 : std::min(4u, 2 * rails);
}

}  // namespace

Result<std::uint32_t> default_channel_count(const sim::Topology& topology,
                                            const sim::Group& group) {
  RAILYARD_ASSIGN(const Places places, find_places(topology, group));
  return count_by_rule(places);
}

Result<Channels> default_channels(const sim::Topology& topology, const sim::Group& group,
                                  const ChannelOptions& options) {
  RAILYARD_ASSIGN(const Places places, find_places(topology, group));
  const std::uint32_t count = options.count == 0 ? count_by_rule(places) : options.count;
  if (count > kMaxChannels)
    return bad_input(std::to_string(count) + " channels; at most " + std::to_string(kMaxChannels) +
                     " are possible");
  std::uint32_t rails = rail_count(places);
  if (options.rails > rails)
    return bad_input(std::to_string(options.rails) +
                     " rails asked for; the nodes of this group have " + std::to_string(rails));
  if (options.rails > 0) rails = options.rails;
  Channels channels(count);
  for (std::uint32_t c = 0; c < count; ++c) {
    std::vector<Segment> segments;
    for (const Place& place : places.places) segments.push_back(segment(places, place, c, rails));
    add_tree(places, segments, c < div_up(count, 2) ? 0 : 1, channels[c]);
    add_ring(places, std::move(segments), channels[c]);
    drop_repeated_edges(channels[c]);
    add_relays(places, group, channels[c]);
  }
  add_default_heads(topology, places, group, rails, channels);
  return channels;
}

}  // namespace railyard::algorithms
