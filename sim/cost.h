// CostModel: what moving a slice costs, between two lanes and within one. models/ implements it
// from Parameters and Topology; both engines read it, so they cannot disagree about costs.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "sim/collective.h"
#include "sim/ids.h"
#include "sim/schedule.h"
#include "sim/topology.h"
#include "sim/units.h"

namespace railyard::sim {

// The pipeline of one connection, per slice:
//
//   direct:  lane [op_overhead] -> flow over `route` capped at `cap` -> `latency` -> receiver
//   staged:  lane [op_overhead + bytes / cap] -> send service on the sender's proxy (serial)
//            -> flow over `route` -> `latency` -> recv_service on the receiver's proxy -> receiver
//
// A rank's proxy is one thread: it serves what the rank (or another one through it, relay_rank)
// sends and what the rank receives, message by message in the order in which they come up.
// recv_busy is its time behind a message that the receiver has already seen.
//
// The lane is busy up to the first arrow's end; the rest runs behind it.
// Slots: on a direct connection a slot is free again `credit_latency` after the receiver consumed
// the slice. A staged connection has a FIFO on each side, as NCCL's network transport has: the
// sender's slot is free `completion` after its flow ended, and a flow starts only when the receiver
// has room (clear to send): `credit_latency` after the slice FIFO-depth earlier was consumed.
// Fetched: the slice then lies in the host's memory, and the operation that receives it loads it
// from there before it does anything else: see LaneCost::fetch.
struct ConnectionCost {
  static constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();

  // What a run reads most, first.
  Bandwidth cap{};                  // wire rate that the sending lane can feed; 0 = no limit
  std::int64_t wire_numerator = 1;  // wire bytes = ceil(payload * numerator / denominator)
  std::int64_t wire_denominator = 1;
  Duration latency{};
  Duration credit_latency{};
  // Cut-through (within the node): the receiver may start `latency` + one grain after the
  // sender's flow started, and ends no earlier than the input's end plus one grain. 0 = store and
  // forward.
  Bytes grain{};
  Duration completion{};  // staged: from the end of the flow until the sender's slot is free
  bool staged = false;
  bool fetched = false;

  Route route{};
  Bandwidth wire_cap{};                // staged: rate of its flow (TCP streams); 0 = no limit
  Duration send_service{};             // per message; send_service_time() has all of it
  Bandwidth send_byte_rate{};          // wire bytes that the proxy itself looks at; 0 = none
  Bytes rendezvous_from{};             // messages of so many wire bytes ...
  Bytes rendezvous_to{};               // ... to so many take
  Duration rendezvous{};               // so much longer
  Bytes inline_to{};                   // messages of one to so many wire bytes ...
  Duration inline_copy{};              // take the sender's proxy so much longer
  Bytes eager_to{};                    // messages of one to so many wire bytes ...
  Duration eager_copy{};               // take the receiver's proxy so much longer,
  Duration eager_interval{};           // and are looked at no faster than this, by rank
  Duration recv_service{};             // per message; recv_service_time() has all of it
  Bandwidth recv_byte_rate{};          // wire bytes that the proxy itself moves; 0 = none
  Duration recv_busy{};                // of the proxy, behind a message that is already seen
  std::uint32_t relay_rank = kNoRank;  // whose proxy sends; the sender's own if it is kNoRank
  // Staged: the paths of further queue pairs; the first's is `route`. Messages take the pairs in
  // turn, or all of them at once if they are split; each pair has one flow at a time, and the
  // receiver sees messages in order.
  std::vector<Route> more_routes{};
  bool split = false;
};

struct LinkUse {
  LinkId link;
  std::uint32_t weight = 1;
};

// What an operation of a lane in a switch (Lane::in_switch) moves before anything else: one flow
// that takes `weight` times its rate of every link, so that all senders and receivers go in step.
// The lane's connections then need no route and no cap of their own: latencies and services only.
struct SwitchFlow {
  std::vector<LinkUse> uses;  // each link once
  Bandwidth cap{};            // 0 = no limit
  std::int64_t wire_numerator = 1;
  std::int64_t wire_denominator = 1;
};

struct LaneCost {
  Duration op_overhead{};  // per slice
  Bandwidth local_rate{};  // of operations without a send; 0 = no limit
  std::shared_ptr<const SwitchFlow> in_switch{};
  Duration poll_time{};
  Bytes poll_unit{};  // 0 = nothing is polled
  // What an operation loads from the host's memory before it moves anything on: its bytes times the
  // `fetched` connections that it receives on, in one flow. One that sends nothing is done then,
  // and has no local_rate of its own. A lane has this or in_switch.
  std::shared_ptr<const SwitchFlow> fetch{};
  // Payload of an operation that both sends and writes its target (recvCopySend, ...), which stores
  // twice; 0 = the second store takes no time. See keep_time().
  Bandwidth keep_rate{};
};

// The legs of an operation that sends and keeps end no earlier than so long after it began: size /
// keep_rate. Others: 0.
Duration keep_time(const LaneCost& cost, Primitive primitive, Bytes size);

// How long an operation that receives looks at a slice: poll_time for every poll_unit behind the
// first, whose poll is part of what the slice takes to come. It looks while the slice comes, from
// the end of the lane's previous operation and, on a direct connection, from when the start of its
// sender's operation can be seen (`latency` later); its legs end no earlier than it has looked.
Duration poll_time(const LaneCost& cost, Bytes size);

// How much longer compute kernels of a GPU take while a collective runs on it (1 = not at all):
// it holds SMs and draws memory bandwidth.
struct Slowdown {
  double compute = 1;  // of kernels bound by arithmetic
  double memory = 1;   // of kernels bound by memory bandwidth
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  // Achievable rate of a topology link.
  [[nodiscard]] virtual Bandwidth link_capacity(const Link& link) const = 0;
  [[nodiscard]] virtual Result<ConnectionCost> connection(const Schedule& schedule,
                                                          const Group& group,
                                                          ConnectionId connection) const = 0;
  [[nodiscard]] virtual LaneCost lane(const Schedule& schedule, const Lane& lane) const = 0;
  // Of a lane that is in a switch; a model that knows of no switches refuses.
  [[nodiscard]] virtual Result<SwitchFlow> switch_flow(const Schedule& schedule, const Group& group,
                                                       LaneId lane) const;
  // From the first operation that a rank could start to the one that it does: what a collective's
  // kernel needs beyond the time that all kernels need.
  [[nodiscard]] virtual Duration start(const Schedule& schedule) const;
  // LaneCost::fetch of a lane that has fetched connections; none by default.
  [[nodiscard]] virtual Result<std::optional<SwitchFlow>> fetch_flow(const Schedule& schedule,
                                                                     const Group& group,
                                                                     LaneId lane) const;
  [[nodiscard]] virtual Slowdown slowdown(const Schedule& schedule, const Group& group) const = 0;
};

// What a message of so many wire bytes takes of the sender's proxy:
//   send_service + wire / send_byte_rate + rendezvous + inline_copy, the last two in their sizes.
Duration send_service_time(const ConnectionCost& cost, Bytes wire);
// And of the receiver's, until the receiver sees it: recv_service + wire / recv_byte_rate +
// eager_copy, the last within its sizes.
Duration recv_service_time(const ConnectionCost& cost, Bytes wire);
// From when a rank looks at such a message to when it looks at its next eager one, of whatever
// connection: eager_interval, within its sizes.
Duration eager_interval(const ConnectionCost& cost, Bytes wire);
// Whether the receiver's proxy has anything to do with messages.
bool is_served(const ConnectionCost& cost);

std::uint32_t queue_pairs(const ConnectionCost& cost);
const Route& route_of_pair(const ConnectionCost& cost, std::uint32_t pair);
// What a queue pair carries of message `sequence`, of `wire` bytes in all. Split: in equal parts of
// whole 128 bytes, the last ones shorter or empty (NCCL src/transport/net_ib.cc).
Bytes pair_bytes(const ConnectionCost& cost, std::uint32_t sequence, std::uint32_t pair,
                 Bytes wire);

// Wire bytes of a payload on a connection: ceil(payload * numerator / denominator).
Bytes wire_bytes(const ConnectionCost& cost, Bytes payload);
Bytes wire_bytes(const SwitchFlow& flow, Bytes payload);

}  // namespace railyard::sim
