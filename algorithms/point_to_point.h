// AllToAll, Gather, Scatter and SendRecv (every rank to the next) as NCCL's sends and receives.
// Source: NCCL 2.30, ncclP2pSchedule, addP2pToPlan, scheduleP2pTasksToPlan, sendrecv.h.
//
// Rounds. Every rank goes through the peers in rounds; in each it sends to one and receives from
// another, if the call has messages for them, and round 0 is a copy to itself. Ranks form groups of
// g: all ranks on one node, else 8 (reduced so that it divides each node's ranks). The group
// distance D runs through 0, 1, 3, 6, 10
// ... mod the next power of two (x <- x + i), without those that are not below the number of
// groups; for each D the local distance d = 0..g-1: send to (group + D, local + d), receive from
// (group - D, local - d).
//
// Channels. base = round on one node, else (index of D) * ceil(g/8) + d/8; part k of a round goes
// to channel (bit reverse of base + k) mod p2p channels.
//
// Parts. b bytes for a peer use min(least per peer, ceil(b / smallest part)) channels, doubled
// while a part is above the largest, up to the most per peer; parts are multiples of 4 KiB. Least
// per peer = most per peer, halved while it times the ranks is above the p2p channels.
//
// Batches. The rounds of one channel run eight at a time, in order (Lane::batch), and divide the
// warps of their CTA; a round that only sends or only receives leaves the other half to it.
//
// Left out: the network's buffers, which the connections of a channel share; 0-byte messages (a
// call of 0 bytes does nothing); Simple beside LL in one call. A large group has O(ranks^2)
// connections.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/builder.h"
#include "algorithms/places.h"
#include "algorithms/shape.h"
#include "sim/collective.h"
#include "sim/result.h"
#include "sim/schedule.h"

namespace railyard::algorithms {

// The way of connections where somebody planned it (NCCL); without a plan they follow p2p_hop's
// rule and do not stop in the memory of hosts.
class ConnectionPlan {
 public:
  virtual ~ConnectionPlan() = default;
  // NICs, relay and stops of what `from` sends to `to` on a channel; no NICs: inside a place.
  [[nodiscard]] virtual NicPair hop(std::uint32_t from, std::uint32_t to,
                                    std::uint32_t channel) const = 0;
};

struct P2pOptions {
  std::uint32_t channels = 0;           // 0 = collective channels, up to a power of two
  std::uint32_t channels_per_peer = 0;  // 0: one node, NVLink 32, PCIe 2; more nodes 4
  sim::Bytes chunk{};  // one FIFO step; 0: network and PCIe 128 KiB, NVLink 512 KiB
  bool pxn = true;  // across nodes, leave by the NIC of the receiver's rail through its nearest GPU
  std::shared_ptr<const ConnectionPlan> plan{};
};

// Who exchanges with whom in which round, on which channels; a communicator has one.
struct P2pRound {
  std::uint32_t base = 0;  // of its channels, before the bit reverse
  std::uint32_t group_distance = 0;
  std::uint32_t local_distance = 0;
};

struct P2pLayout {
  CommShape shape;
  std::uint32_t channels = 1;
  std::uint32_t channels_per_peer = 1;
  sim::Bytes chunk{};
  bool nvlink = false;
  bool pxn = false;
  std::uint32_t group_size = 1;
  std::vector<std::uint32_t> order;  // ranks by (node, rank): place in the groups -> rank
  std::vector<P2pRound> rounds;
  std::vector<sim::DeviceId> gpu;  // by rank, for PXN relays
  Places places;
  std::shared_ptr<const ConnectionPlan> plan;  // null: none
};

P2pLayout p2p_layout(Places places, const sim::Group& group, std::uint32_t collective_channels,
                     const P2pOptions& options);

// The peers of `place` (in P2pLayout::order) in a round.
struct P2pPeers {
  std::uint32_t send_to = 0;
  std::uint32_t recv_from = 0;
};
P2pPeers p2p_peers(const P2pLayout& layout, const P2pRound& round, std::uint32_t place);

// Channels of a round, for so many parts.
std::uint32_t p2p_channel(const P2pLayout& layout, const P2pRound& round, std::uint32_t part);

// How `size` bytes for one peer are cut.
struct P2pParts {
  std::uint32_t count = 1;
  sim::Bytes size;   // of all but the last
  sim::Bytes chunk;  // one FIFO step
};
P2pParts p2p_parts(const P2pLayout& layout, sim::Protocol protocol, sim::Bytes size,
                   bool between_nodes);

// The NICs of an edge between places, none inside one. The layout's plan says them; without one:
// into the receiver's nearest (of several by channel; GPUs that share them begin at different
// ones), out of the sender's nearest, or with PXN out of the NIC of the receiver's rail, through
// the GPU whose first it is.
NicPair p2p_hop(const P2pLayout& layout, std::uint32_t from, std::uint32_t to,
                std::uint32_t channel);

// The protocol NCCL uses for sends of `size` bytes to each peer: LL up to 16 KiB per channel where
// all ranks are in one node, else Simple (network connections have no LL buffers by default).
sim::Protocol p2p_protocol(const P2pLayout& layout, sim::Bytes size);

// Bytes of one message of a call.
sim::Bytes p2p_message(const sim::CollectiveCall& call, std::uint32_t ranks);

// Error: more lanes than a schedule can number.
sim::Result<sim::Schedule> point_to_point_schedule(const sim::CollectiveCall& call,
                                                   const P2pLayout& layout);

}  // namespace railyard::algorithms
