#include "sim/longest_path.h"

#include <algorithm>
#include <limits>

#include "sim/schedule_costs.h"
#include "sim/untimed_run.h"

namespace railyard::sim {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

using NodeId = std::uint32_t;

// An event: the latest of what its edges give; `pred` is the first edge that gave that.
struct Node {
  Duration time = Duration::min();
  NodeId pred = kNone;
  PathPart part = PathPart::rank_start;
  PathReason why = PathReason::rank_start;
  bool names_op = false;  // a step of the critical path: an operation's start, or its end by a tail
  LaneId lane;
  std::uint32_t op = 0;
};

struct Edge {
  NodeId from = kNone;
  Duration weight{};
  PathPart part = PathPart::latency;
  PathReason why = PathReason::lane_order;
};

// One outgoing connection of an operation, or its local leg (cost is null).
struct Leg {
  const ConnectionCost* cost = nullptr;
  Bandwidth rate;  // 0 = no limit
  PathPart part = PathPart::copy;

  [[nodiscard]] Duration time(Bytes payload) const {
    if (rate.raw() == 0) return {};
    return transfer_time(cost == nullptr ? payload : wire_bytes(*cost, payload), rate);
  }
};

// What has happened on a connection, by slice.
struct Fifo {
  std::vector<NodeId> data, tail, consumed;  // consumed: end of the receiver's operation
  std::vector<NodeId> issued;                // start of the sender's operation
  std::vector<NodeId> wired;                 // staged: end of its flow
  NodeId posted = kNone;                     // staged: of the last slice
  std::vector<Bytes> size;                   // of slices that are sent or open
  std::uint32_t waited = 0;                  // signals taken
};

// A message whose receiver is not told of it yet (Op::holds).
struct Held {
  MessageRef ref;
  Bytes size;
};

class PathBuilder {
 public:
  PathBuilder(const Expansion& expansion, const std::vector<ConnectionCost>& connections,
              const std::vector<LaneCost>& lanes, const std::vector<Bandwidth>& link_capacity,
              const std::vector<Duration>& rank_start)
      : expansion_(expansion),
        before_(lanes_before(expansion)),
        costs_(connections),
        lane_costs_(lanes),
        capacity_(link_capacity),
        fifos_(connections.size()),
        held_(expansion.lanes.size()),
        rank_start_(rank_start) {
    if (rank_start_.empty()) rank_start_.resize(expansion.ranks);
    for (const ExpandedLane& lane : expansion.lanes) {
      Node node;
      node.time = rank_start_[lane.rank];
      lane_end_.push_back(add(node));
    }
    result_.link_payload.resize(link_capacity.size());
  }

  LongestPathResult run() {
    UntimedRun untimed(expansion_);
    const bool ended = untimed.run([this](LaneId lane, std::uint32_t op) { execute(lane, op); });
    RAILYARD_CHECK(ended, "validate() the schedule before its longest path");
    result_.rank_end = rank_start_;
    for (std::size_t lane = 0; lane < lane_end_.size(); ++lane) {
      const Duration end = nodes_[lane_end_[lane]].time;
      result_.lane_end.push_back(end);
      Duration& rank_end = result_.rank_end[expansion_.lanes[lane].rank];
      rank_end = std::max(rank_end, end);
    }
    if (!result_.rank_end.empty()) result_.end = *std::ranges::max_element(result_.rank_end);
    trace_critical_path();
    return std::move(result_);
  }

 private:
  NodeId add(const Node& node) {
    nodes_.push_back(node);
    return static_cast<NodeId>(nodes_.size() - 1);
  }
  NodeId after(const Edge& edge) {
    const NodeId node = add({});
    relax(node, edge);
    return node;
  }
  // An edge from nothing is none.
  void relax(NodeId node, const Edge& edge) {
    if (edge.from == kNone) return;
    const Duration time = nodes_[edge.from].time + edge.weight;
    if (time <= nodes_[node].time) return;
    nodes_[node].time = time;
    nodes_[node].pred = edge.from;
    nodes_[node].part = edge.part;
    nodes_[node].why = edge.why;
  }

  // The flow of a lane in a switch or out of the host's memory, before all else that the operation
  // does.
  NodeId pass_first_flow(NodeId begin, LaneId lane, const SliceOp& op) {
    const LaneCost& cost = lane_costs_[lane.index()];
    const Bytes size = cost.in_switch ? op.size : op.size * fetches(lane, op);
    const SwitchFlow* flow = cost.in_switch ? cost.in_switch.get() : cost.fetch.get();
    if (flow == nullptr) return begin;
    for (const LinkUse& use : flow->uses)
      result_.link_payload[use.link.index()] += size * std::int64_t{use.weight};
    const Bandwidth rate = solo_rate(*flow, capacity_);
    const Duration time =
        rate.raw() == 0 ? Duration{} : transfer_time(wire_bytes(*flow, size), rate);
    return after({begin, time, PathPart::wire});
  }

  // Inputs that the operation loads from the host's memory.
  [[nodiscard]] std::int64_t fetches(LaneId lane, const SliceOp& op) const {
    if (!lane_costs_[lane.index()].fetch) return 0;
    return std::ranges::count_if(
        op.recv, [&](const MessageRef& ref) { return costs_[ref.connection.index()].fetched; });
  }

  void execute(LaneId lane, std::uint32_t index) {
    const SliceOp& op = expansion_.lanes[lane.index()].ops[index];
    const LaneCost& lane_cost = lane_costs_[lane.index()];
    const NodeId start = add_start(lane, index, op);
    polled_ = add_polled(lane, index, op);
    const NodeId begin =
        pass_first_flow(after({start, lane_cost.op_overhead, PathPart::op_overhead}), lane, op);
    const NodeId end = add({});
    if (op.send.empty()) {
      const Leg local{nullptr, lane_cost.local_rate, PathPart::copy};
      const bool copies = op.primitive != Primitive::nop && fetches(lane, op) == 0;
      const Bytes size = copies ? op.size : Bytes{};
      relax(end, {add_leg(begin, local, {lane, index, size}), {}, PathPart::copy});
    }
    for (const MessageRef& ref : op.send) {
      const ConnectionCost& cost = costs_[ref.connection.index()];
      const Leg leg = cost.staged ? Leg{&cost, cost.cap, PathPart::copy}
                                  : Leg{&cost, solo_rate(cost, capacity_), PathPart::wire};
      Bytes& size = fifos_[ref.connection.index()].size[ref.sequence];
      const Bytes growth = std::max(size, op.size * (ref.part.index + 1)) - size;
      size += growth;
      const NodeId leg_end = add_leg(begin, leg, {lane, index, cost.staged ? op.size : growth});
      relax(end, {leg_end, {}, leg.part});
      if (!cost.staged) account_route(cost.route, growth);
      if (ref.part.more) continue;
      if (op.holds)
        held_[lane.index()].push_back({ref, size});
      else if (cost.staged)
        send_staged(ref, size, leg_end);
      else
        send_direct(ref.connection, op.size, begin, leg_end);
    }
    if (!op.holds) tell_held(lane, end);
    for (const MessageRef& ref : op.recv)
      if (!ref.part.more) fifos_[ref.connection.index()].consumed.push_back(end);
    for (const ConnectionId id : op.signal) fifos_[id.index()].data.push_back(end);
    lane_end_[lane.index()] = end;
  }

  NodeId add_start(LaneId lane, std::uint32_t index, const SliceOp& op) {
    Node node;
    node.names_op = true;
    node.lane = lane;
    node.op = index;
    const NodeId start = add(node);
    const PathReason before = index == 0 ? PathReason::rank_start : PathReason::lane_order;
    relax(start, {lane_end_[lane.index()], {}, PathPart::rank_start, before});
    if (index == 0)
      for (const LaneId earlier : before_[lane.index()])
        relax(start, {lane_end_[earlier.index()], {}, PathPart::rank_start, PathReason::batch});
    for (const MessageRef& ref : op.recv)
      relax(start, {fifos_[ref.connection.index()].data[ref.sequence],
                    {},
                    PathPart::latency,
                    PathReason::data});
    for (const ConnectionId id : op.wait) {
      Fifo& fifo = fifos_[id.index()];
      relax(start, {fifo.data[fifo.waited++], {}, PathPart::latency, PathReason::data});
    }
    for (const MessageRef& ref : op.send) {
      const std::size_t c = ref.connection.index();
      if (ref.sequence < fifos_[c].size.size()) continue;  // its slot is taken already
      fifos_[c].size.resize(ref.sequence + std::size_t{1});
      fifos_[c].issued.resize(ref.sequence + std::size_t{1}, start);
      if (ref.sequence < expansion_.fifo_slices) continue;
      const std::uint32_t before_it = ref.sequence - expansion_.fifo_slices;
      const NodeId freed =
          costs_[c].staged ? fifos_[c].wired[before_it] : fifos_[c].consumed[before_it];
      const Duration back = costs_[c].staged ? costs_[c].completion : costs_[c].credit_latency;
      relax(start, {freed, back, PathPart::credit, PathReason::credit});
    }
    return start;
  }

  // When the operation has looked at what it receives, see poll_time(); kNone if it need not.
  NodeId add_polled(LaneId lane, std::uint32_t index, const SliceOp& op) {
    const Duration poll = poll_time(lane_costs_[lane.index()], op.size);
    if (op.recv.empty() || poll.count() == 0) return kNone;
    const NodeId polled = after({lane_end_[lane.index()], poll, PathPart::copy});
    if (index == 0)
      for (const LaneId earlier : before_[lane.index()])
        relax(polled, {lane_end_[earlier.index()], poll, PathPart::copy});
    for (const MessageRef& ref : op.recv) {
      const std::size_t c = ref.connection.index();
      if (costs_[c].staged) continue;
      const NodeId seen =
          after({fifos_[c].issued[ref.sequence], costs_[c].latency, PathPart::latency});
      relax(polled, {seen, poll, PathPart::copy});
    }
    return polled;
  }

  // An operation and the bytes of one of its legs.
  struct LegOf {
    LaneId lane;
    std::uint32_t index;
    Bytes size;
  };
  NodeId add_leg(NodeId begin, const Leg& leg, const LegOf& of) {
    const SliceOp& op = expansion_.lanes[of.lane.index()].ops[of.index];
    const NodeId end = after({begin, leg.time(of.size), leg.part});
    const Duration kept = keep_time(lane_costs_[of.lane.index()], op.primitive, op.size);
    if (kept.count() > 0) relax(end, {begin, kept, PathPart::copy});
    if (polled_ != kNone) relax(end, {polled_, {}, PathPart::copy});
    for (const MessageRef& ref : op.recv) {
      const ConnectionCost& input = costs_[ref.connection.index()];
      if (input.staged || input.grain.raw() == 0) continue;
      const NodeId tail = fifos_[ref.connection.index()].tail[ref.sequence];
      relax(end, {tail, leg.time(std::min(input.grain, op.size)), leg.part, PathReason::data_tail});
    }
    if (nodes_[end].why == PathReason::data_tail) {
      nodes_[end].names_op = true;
      nodes_[end].lane = of.lane;
      nodes_[end].op = of.index;
    }
    return end;
  }

  void tell_held(LaneId lane, NodeId end) {
    for (const Held& held : held_[lane.index()]) {
      const ConnectionId id = held.ref.connection;
      if (costs_[id.index()].staged) {
        send_staged(held.ref, held.size, end);
        continue;
      }
      const NodeId tail = after({end, costs_[id.index()].latency, PathPart::latency});
      fifos_[id.index()].tail.push_back(tail);
      fifos_[id.index()].data.push_back(tail);
      ++result_.messages;
    }
    held_[lane.index()].clear();
  }

  void send_direct(ConnectionId connection, Bytes size, NodeId begin, NodeId leg_end) {
    const ConnectionCost& cost = costs_[connection.index()];
    Fifo& fifo = fifos_[connection.index()];
    const NodeId tail = after({leg_end, cost.latency, PathPart::latency});
    fifo.tail.push_back(tail);
    if (cost.grain.raw() > 0) {
      const Leg leg{&cost, solo_rate(cost, capacity_), PathPart::wire};
      const NodeId first = after({begin, leg.time(std::min(cost.grain, size)), leg.part});
      fifo.data.push_back(after({first, cost.latency, PathPart::latency}));
    } else {
      fifo.data.push_back(tail);
    }
    ++result_.messages;
  }

  void send_staged(const MessageRef& ref, Bytes size, NodeId leg_end) {
    const ConnectionCost& cost = costs_[ref.connection.index()];
    Fifo& fifo = fifos_[ref.connection.index()];
    const Leg wire{&cost, solo_rate(cost, capacity_), PathPart::wire};
    const Duration service = send_service_time(cost, wire_bytes(cost, size));
    const NodeId posted = after({leg_end, service, PathPart::proxy});
    relax(posted, {fifo.posted, service, PathPart::proxy});
    const NodeId wired = after({posted, wire.time(size), PathPart::wire});
    if (!fifo.wired.empty()) relax(wired, {fifo.wired.back(), wire.time(size), PathPart::wire});
    if (ref.sequence >= expansion_.fifo_slices) {
      const NodeId consumed = fifo.consumed[ref.sequence - expansion_.fifo_slices];
      const NodeId cleared = after({consumed, cost.credit_latency, PathPart::credit});
      relax(wired, {cleared, wire.time(size), PathPart::wire});
    }
    const NodeId arrived = after({wired, cost.latency, PathPart::latency});
    const Duration receive = recv_service_time(cost, wire_bytes(cost, size));
    const NodeId tail = after({arrived, receive, PathPart::proxy});
    if (!fifo.tail.empty()) relax(tail, {fifo.tail.back(), receive, PathPart::proxy});
    fifo.posted = posted;
    fifo.wired.push_back(wired);
    fifo.tail.push_back(tail);
    fifo.data.push_back(tail);
    ++result_.messages;
    for (std::uint32_t pair = 0; pair < queue_pairs(cost); ++pair)
      account_route(route_of_pair(cost, pair), pair_bytes(cost, ref.sequence, pair, size));
  }

  void account_route(const Route& route, Bytes size) {
    for (const LinkId link : route) result_.link_payload[link.index()] += size;
  }

  // Backwards from the lane that ends last (the first such), then turned round.
  void trace_critical_path() {
    NodeId at = kNone;
    for (const NodeId end : lane_end_)
      if (nodes_[end].time == result_.end && at == kNone) at = end;
    if (at == kNone) {  // a rank without lanes starts last
      part(PathPart::rank_start) += result_.end;
      return;
    }
    for (; nodes_[at].pred != kNone; at = nodes_[at].pred) {
      const Node& node = nodes_[at];
      const Duration before = nodes_[node.pred].time;
      part(node.part) += node.time - before;
      if (!node.names_op) continue;
      const Duration time = node.why == PathReason::data_tail ? before : node.time;
      result_.critical_path.push_back({node.lane, node.op, node.why, time});
    }
    part(PathPart::rank_start) += nodes_[at].time;
    std::ranges::reverse(result_.critical_path);
  }
  Duration& part(PathPart part) { return result_.parts[static_cast<std::size_t>(part)]; }

  const Expansion& expansion_;
  const std::vector<std::vector<LaneId>> before_;  // by lane: of the next batch below
  const std::vector<ConnectionCost>& costs_;
  const std::vector<LaneCost>& lane_costs_;
  const std::vector<Bandwidth>& capacity_;
  std::vector<Fifo> fifos_;              // by connection
  std::vector<std::vector<Held>> held_;  // by lane: what no receiver is told of yet
  std::vector<Duration> rank_start_;
  std::vector<Node> nodes_;
  std::vector<NodeId> lane_end_;  // by lane, so far
  NodeId polled_ = kNone;         // of the operation that is executed
  LongestPathResult result_;
};

}  // namespace

LongestPathResult longest_path(const Schedule& schedule,
                               const std::vector<ConnectionCost>& connections,
                               const std::vector<LaneCost>& lanes,
                               const std::vector<Bandwidth>& link_capacity,
                               const std::vector<Duration>& rank_start) {
  RAILYARD_CHECK(connections.size() == schedule.connections.size(), "one cost per connection");
  RAILYARD_CHECK(lanes.size() == schedule.lanes.size(), "one cost per lane");
  RAILYARD_CHECK(rank_start.empty() || rank_start.size() == schedule.ranks, "one start per rank");
  const Expansion expansion = expand(schedule);
  return PathBuilder(expansion, connections, lanes, link_capacity, rank_start).run();
}

}  // namespace railyard::sim
