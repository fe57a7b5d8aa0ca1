// The rules of algorithms/point_to_point.h that do not depend on a schedule: rounds, channels,
// parts.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "algorithms/chunking.h"
#include "algorithms/point_to_point.h"

namespace railyard::algorithms {
namespace {

using sim::bytes;
using sim::Bytes;
using sim::Protocol;

constexpr std::uint32_t kGroupSize = 8;  // NCCL_P2P_SCHEDULE_GROUP_SIZE
constexpr std::uint32_t kWorksPerBatch = 8;
constexpr std::int64_t kNetChunk = 131'072;     // NCCL_P2P_NET_CHUNKSIZE
constexpr std::int64_t kNvlinkChunk = 524'288;  // NCCL_P2P_NVL_CHUNKSIZE
constexpr std::int64_t kPcieChunk = 131'072;    // NCCL_P2P_PCI_CHUNKSIZE
constexpr std::int64_t kLlThreshold = 16'384;   // NCCL_P2P_LL_THRESHOLD, per channel
constexpr std::int64_t kPartAlign = 4'096;
constexpr std::uint32_t kNetPerPeer = 4;  // one 400 Gb/s NIC at 14 GB/s a channel
constexpr std::uint32_t kPciePerPeer = 2;

std::int64_t step_size(const P2pLayout& layout) {
  if (layout.chunk.raw() > 0) return layout.chunk.raw();
  if (layout.shape.nodes > 1) return kNetChunk;
  return layout.nvlink ? kNvlinkChunk : kPcieChunk;
}

std::uint32_t group_size(const Places& places) {
  const auto local = [](const Place& place) {
    return static_cast<std::uint32_t>(place.ranks.size());
  };
  if (places.places.size() == 1) return local(places.places.front());
  std::uint32_t size = kGroupSize;
  for (const Place& place : places.places) size = std::gcd(size, local(place));
  return size;
}

std::vector<P2pRound> make_rounds(const CommShape& shape, std::uint32_t group_size) {
  const std::uint32_t groups = shape.ranks / group_size;
  const std::uint32_t modulus = power_of_two_up(groups);
  const auto bases_per_distance = static_cast<std::uint32_t>(div_up(group_size, kWorksPerBatch));
  std::vector<P2pRound> rounds;
  std::uint32_t index = 0;
  std::uint32_t distance = 0;
  for (std::uint32_t i = 1; i <= modulus; distance = (distance + i++) % modulus) {
    if (distance >= groups) continue;
    for (std::uint32_t local = 0; local < group_size; ++local) {
      const std::uint32_t base =
          shape.nodes == 1 ? local : index * bases_per_distance + local / kWorksPerBatch;
      rounds.push_back({.base = base, .group_distance = distance, .local_distance = local});
    }
    ++index;
  }
  return rounds;
}

std::uint32_t channels_per_peer(const P2pLayout& layout) {
  if (layout.shape.nodes == 1) return layout.nvlink ? layout.channels : kPciePerPeer;
  std::uint32_t channels = kNetPerPeer;
  const auto batches = static_cast<std::uint32_t>(div_up(layout.shape.ranks, kWorksPerBatch));
  while (channels > 1 && channels * batches > layout.channels) channels /= 2;
  return channels;
}

std::uint32_t reverse_bits(std::uint32_t value, std::uint32_t bits) {
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < bits; ++i) result |= ((value >> i) & 1u) << (bits - 1 - i);
  return result;
}

}  // namespace

P2pLayout p2p_layout(Places places, const sim::Group& group, std::uint32_t collective_channels,
                     const P2pOptions& options) {
  P2pLayout layout;
  layout.shape = shape_of(places);
  layout.channels = power_of_two_up(options.channels > 0 ? options.channels : collective_channels);
  layout.chunk = options.chunk;
  layout.nvlink = places.nvlink;
  layout.pxn = options.pxn && places.nvlink;
  layout.channels_per_peer = std::min(
      layout.channels, options.channels_per_peer > 0 ? power_of_two_up(options.channels_per_peer)
                                                     : channels_per_peer(layout));
  layout.group_size = group_size(places);
  for (const Place& place : places.places) {
    const auto first = static_cast<std::ptrdiff_t>(layout.order.size());
    layout.order.insert(layout.order.end(), place.ranks.begin(), place.ranks.end());
    std::sort(layout.order.begin() + first, layout.order.end());
  }
  layout.rounds = make_rounds(layout.shape, layout.group_size);
  for (const sim::Member& member : group) layout.gpu.push_back(member.gpu);
  layout.places = std::move(places);
  layout.plan = options.plan;
  return layout;
}

P2pPeers p2p_peers(const P2pLayout& layout, const P2pRound& round, std::uint32_t place) {
  const std::uint32_t size = layout.group_size;
  const std::uint32_t groups = layout.shape.ranks / size;
  const std::uint32_t group = place / size;
  const std::uint32_t local = place % size;
  const std::uint32_t to_group = (group + round.group_distance) % groups;
  const std::uint32_t from_group = (group + groups - round.group_distance) % groups;
  return {.send_to = to_group * size + (local + round.local_distance) % size,
          .recv_from = from_group * size + (local + size - round.local_distance) % size};
}

std::uint32_t p2p_channel(const P2pLayout& layout, const P2pRound& round, std::uint32_t part) {
  const std::uint32_t first = reverse_bits(round.base, log2_floor(layout.channels));
  return (first + part) % layout.channels;
}

P2pParts p2p_parts(const P2pLayout& layout, Protocol protocol, Bytes size, bool between_nodes) {
  if (protocol == Protocol::plain) return {.count = 1, .size = size, .chunk = size};
  const bool one_node = layout.shape.nodes == 1;
  const std::int64_t step = step_size(layout);
  const std::int64_t smallest = one_node ? step / 8 : step / 2;
  const std::int64_t largest = one_node ? step * 32 : step;
  std::uint32_t least = layout.channels_per_peer;
  while (least > 1 && least * layout.shape.ranks > layout.channels) least /= 2;
  auto count =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(div_up(size.raw(), smallest), 1, least));
  while (div_up(size.raw(), count) > largest && count <= layout.channels_per_peer / 2) count *= 2;
  P2pParts parts;
  parts.size = bytes(align_up(div_up(size.raw(), count), kPartAlign));
  parts.count = static_cast<std::uint32_t>(
      std::max<std::int64_t>(1, div_up(size.raw(), std::max(parts.size.raw(), kPartAlign))));
  parts.chunk =
      protocol == Protocol::ll ? step_payload(Protocol::ll, layout.shape.fifos) : bytes(step);
  if (between_nodes && protocol == Protocol::simple) {
    if (size < bytes(step))
      parts.chunk = bytes(step / 4);
    else if (size < bytes(8 * step))
      parts.chunk = bytes(step / 2);
  }
  return parts;
}

namespace {

// Which of its nearest rails a rank begins with: those that share them begin at different ones.
std::size_t first_rail(const Places& all, std::uint32_t rank) {
  const Place& place = all.places[all.place_of[rank]];
  std::size_t before = 0;
  for (const std::uint32_t other : place.ranks) {
    if (other == rank) break;
    before += all.nearest_rails[other] == all.nearest_rails[rank] ? 1 : 0;
  }
  return before;
}

std::uint32_t rail_on(const Places& all, std::uint32_t rank, std::uint32_t channel) {
  const auto& rails = all.nearest_rails[rank];
  return rails[(first_rail(all, rank) + channel) % rails.size()];
}

// Of the sender's place, the rank by which others reach a rail: the one that begins with it, else
// the first at its NIC.
std::optional<std::uint32_t> gateway(const Places& all, const Place& place, std::uint32_t rail) {
  std::optional<std::uint32_t> found;
  for (const std::uint32_t rank : place.ranks) {
    if (!is_gateway(all, rank, rail)) continue;
    if (rail_on(all, rank, 0) == rail) return rank;
    if (!found) found = rank;
  }
  return found;
}

NicPair hop_by_rule(const P2pLayout& layout, std::uint32_t from, std::uint32_t to,
                    std::uint32_t channel) {
  const Places& all = layout.places;
  if (all.place_of[from] == all.place_of[to] || all.nearest_rails[to].empty() ||
      all.nearest_rails[from].empty())
    return {};
  const Place& sender = all.places[all.place_of[from]];
  const std::uint32_t in_rail = rail_on(all, to, channel);
  NicPair hop;
  hop.in = all.places[all.place_of[to]].nics[in_rail];
  hop.out = sender.nics[is_nearest(all, from, in_rail) ? in_rail : rail_on(all, from, channel)];
  if (!layout.pxn) return hop;
  const auto relay = gateway(all, sender, in_rail);
  if (!relay) return hop;
  hop.out = sender.nics[in_rail];
  if (*relay != from) hop.relay = layout.gpu[*relay];
  return hop;
}

}  // namespace

NicPair p2p_hop(const P2pLayout& layout, std::uint32_t from, std::uint32_t to,
                std::uint32_t channel) {
  return layout.plan ? layout.plan->hop(from, to, channel) : hop_by_rule(layout, from, to, channel);
}

Protocol p2p_protocol(const P2pLayout& layout, Bytes size) {
  const P2pParts parts = p2p_parts(layout, Protocol::simple, size, false);
  const bool small = size <= bytes(parts.count * kLlThreshold);
  return layout.shape.nodes == 1 && small ? Protocol::ll : Protocol::simple;
}

}  // namespace railyard::algorithms
