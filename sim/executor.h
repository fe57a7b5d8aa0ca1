// The executor: runs one schedule on the event queue and the network, lane by lane, slice by slice,
// with FIFO credits. State is O(lanes + connections); the schedule itself is never changed.
//
// Per slice of an operation (see cost.h for the pipeline and longest_path.h for the same in
// formulas):
//   wait for the incoming slices and the free slots -> op_overhead -> flows of the direct sends
//   (their rates divided by the network), or a copy of known length -> credits back, data on ->
//   next slice.
// Lanes wait for one thing at a time and are woken by events; nothing is polled.
//
// A run may be started again after it ended. Its digest is a sum over messages of a hash of
// (connection, sequence, start, arrival) with times relative to the first start, so it depends
// neither on the order of events within an instant nor on when the collective ran.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/event_queue.h"
#include "sim/executor_state.h"
#include "sim/network.h"
#include "sim/schedule.h"
#include "sim/schedule_costs.h"

namespace railyard::sim {

struct Message {
  ConnectionId connection;
  std::uint32_t sequence = 0;
  Bytes payload{};
  Time start{};    // of the sender's operation
  Time arrival{};  // when the receiver may use all of it
};

// Observers see every message when its arrival is known. They must not change the run.
class MessageObserver {
 public:
  virtual ~MessageObserver() = default;
  virtual void on_message(const Schedule& schedule, const Message& message) = 0;
};

class RunListener {
 public:
  virtual ~RunListener() = default;
  virtual void on_rank_done(std::uint32_t group_rank) = 0;  // all lanes of the rank have ended
};

class Executor final : public EventHandler, public FlowListener {
 public:
  struct Options {
    bool credits = true;  // false: FIFOs without end, as simulators without flow control have it
    MessageObserver* observer = nullptr;
  };
  // Network resource i must be topology link i. The schedule and costs are shared with the caller.
  Executor(std::shared_ptr<const Schedule> schedule, std::shared_ptr<const ScheduleCosts> costs,
           EventQueue& queue, Network& network, const Options& options);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void set_listener(RunListener* listener) { listener_ = listener; }

  // The rank's kernel begins now. Each rank once per run.
  void start_rank(std::uint32_t group_rank);
  [[nodiscard]] bool finished() const { return ranks_left_ == 0; }
  void reset();  // only when finished

  [[nodiscard]] const Schedule& schedule() const { return *schedule_; }
  [[nodiscard]] std::uint64_t digest() const { return digest_; }
  [[nodiscard]] std::int64_t messages() const { return messages_; }
  // What each unfinished lane waits for, at most `limit` lines. Ranks are those of the job.
  [[nodiscard]] std::vector<std::string> waiting_lanes(std::size_t limit, const Group& group) const;

  void on_event(std::uint32_t code, std::uint32_t argument) override;
  // Tags: connections, after them lanes (flows in a switch), after them queue pairs.
  void on_flow_done(std::uint32_t tag) override;

 private:
  using Phase = LanePhase;
  static constexpr std::uint32_t kLocal = 0xffffffff;  // the leg of an operation that sends nothing
  static constexpr std::uint32_t kNone = 0xffffffff;

  // Event codes; the argument is a lane (the first six) or a connection.
  enum Code : std::uint32_t {
    try_lane_code,
    begin_code,
    local_leg_code,
    settle_tails_code,
    finish_slice_code,
    end_lane_code,
    staged_leg_code,
    post_code,
    served_code,
    wire_code,
    landed_code
  };
  // executor_build.cpp: state laid out once
  void group_lanes();
  void add_lane_flows();
  void add_queue_pairs();

  // executor.cpp: lanes
  void start_group(std::uint32_t group);
  void enter_loop(std::uint32_t lane);
  void enter_op(std::uint32_t lane);
  void set_slice(std::uint32_t lane);
  bool advance(std::uint32_t lane);
  void try_lane(std::uint32_t lane);
  bool ready(std::uint32_t lane);
  bool inputs_ready(std::uint32_t lane, std::int64_t& at);
  bool slots_ready(std::uint32_t lane, std::int64_t& at);
  void begin(std::uint32_t lane);
  void open_slices(std::uint32_t lane);
  void begin_first_flow(std::uint32_t lane);
  [[nodiscard]] std::int64_t fetched_bytes(std::uint32_t lane) const;
  [[nodiscard]] std::int64_t least_end(std::uint32_t lane) const;
  [[nodiscard]] std::int64_t polled_until(std::uint32_t lane) const;
  void begin_legs(std::uint32_t lane);
  void leg_done(std::uint32_t lane);
  bool tails_known(std::uint32_t lane);
  [[nodiscard]] std::int64_t held_until(std::uint32_t lane, std::uint32_t connection) const;
  void settle_tails(std::uint32_t lane);
  void finish_slice(std::uint32_t lane);
  void end_lane(std::uint32_t lane);
  void at(std::int64_t time, std::uint32_t code, std::uint32_t argument);
  void after(std::int64_t wait, std::uint32_t code, std::uint32_t argument);

  // executor_connections.cpp: slices on their way
  void leg_of_connection(std::uint32_t connection);
  void hand_over(std::uint32_t connection, std::int64_t leg_end);
  void deliver(std::uint32_t connection, std::int64_t arrival);
  void announce_head(std::uint32_t connection);
  void give_credit(std::uint32_t connection);
  void post(std::uint32_t connection);
  void served(std::uint32_t connection);
  void start_wire(std::uint32_t connection);
  void wake_sender(std::uint32_t connection, std::int64_t at);
  void wire_done(std::uint32_t connection);
  void free_slot(std::uint32_t connection);
  void on_the_way(std::uint32_t connection);
  void landed(std::uint32_t connection);
  void report(std::uint32_t connection, std::uint32_t sequence);
  // executor_queue_pairs.cpp: connections with several queue pairs
  [[nodiscard]] bool has_queue_pairs(std::uint32_t connection) const {
    return !first_pair_.empty() && first_pair_[connection] != kNone;
  }
  [[nodiscard]] bool is_cleared(std::uint32_t connection, std::uint32_t message);
  void start_queue_pairs(std::uint32_t connection);
  void pair_done(std::uint32_t pair);
  [[nodiscard]] std::int64_t copy_time(std::int64_t size, Bandwidth rate) const;
  [[nodiscard]] std::int64_t leg_rate_time(std::uint32_t connection, std::int64_t payload) const;
  [[nodiscard]] std::int64_t now() const { return queue_->now().time_since_epoch().count(); }
  [[nodiscard]] std::size_t slot(std::uint32_t connection, std::uint32_t sequence) const {
    return std::size_t{connection} * ring_ + (sequence & (ring_ - 1));
  }
  [[nodiscard]] SliceState& slice(std::uint32_t connection, std::uint32_t sequence) {
    return slices_[slot(connection, sequence)];
  }
  [[nodiscard]] const SliceState& slice(std::uint32_t connection, std::uint32_t sequence) const {
    return slices_[slot(connection, sequence)];
  }
  [[nodiscard]] std::int64_t wire(std::uint32_t connection, std::int64_t payload) const {
    return wire_bytes(costs_->connections[connection], bytes(payload)).raw();
  }

  [[nodiscard]] bool receives_now(std::uint32_t lane) const {
    return receives(lanes_[lane].op->primitive);
  }
  [[nodiscard]] bool sends_now(std::uint32_t lane) const {
    return sends(lanes_[lane].op->primitive);
  }
  // Calls visit(connection) for the slots that `mask` names.
  template <typename Visitor>
  void for_slots(std::uint32_t first, std::uint32_t count, std::uint32_t mask,
                 Visitor&& visit) const {
    for (std::uint32_t k = 0; k < count; ++k)
      if (names_slot(mask, k)) visit(schedule_->slots[first + k].value());
  }
  // Those that the lane's current operation uses.
  template <typename Visitor>
  void for_recv(std::uint32_t lane, Visitor&& visit) const {
    const Lane& l = schedule_->lanes[lane];
    if (receives_now(lane))
      for_slots(l.first_recv, l.recv_count, lanes_[lane].op->recv_slots, visit);
  }
  template <typename Visitor>
  void for_send(std::uint32_t lane, Visitor&& visit) const {
    const Lane& l = schedule_->lanes[lane];
    if (sends_now(lane)) for_slots(l.first_send, l.send_count, lanes_[lane].op->send_slots, visit);
  }

  // The signals that it waits for before its first slice, and those it gives after its last.
  template <typename Visitor>
  void for_wait(std::uint32_t lane, Visitor&& visit) const {
    const Lane& l = schedule_->lanes[lane];
    const LaneState& state = lanes_[lane];
    if (state.op->wait_slots != 0 && state.iteration == 0 && state.slice == 0)
      for_slots(l.first_recv, l.recv_count, state.op->wait_slots, visit);
  }
  void give_signals(std::uint32_t lane);
  void tell_held(std::uint32_t lane);

  std::shared_ptr<const Schedule> schedule_;
  std::shared_ptr<const ScheduleCosts> costs_;
  EventQueue* queue_;
  Network* network_;
  RunListener* listener_ = nullptr;
  MessageObserver* observer_;
  bool credits_;
  std::uint32_t fifo_ = 8;  // slots of one FIFO
  // Slices a connection may have in flight: both FIFOs of a staged one, up to a power of two.
  std::uint32_t ring_ = 16;

  std::vector<LaneState> lanes_;
  std::vector<ConnectionState> connections_;
  std::vector<SliceState> slices_;         // [connection][sequence mod ring]
  std::vector<Bandwidth> solo_;            // by connection: solo_rate()
  std::vector<FlowId> lane_flows_;         // by lane, of LaneCost; none if no lane has one
  std::vector<QueuePair> pairs_;           // of a connection one after the other
  std::vector<std::uint32_t> first_pair_;  // by connection, or kNone; empty if none has several
  std::vector<std::uint32_t> parts_left_;  // [connection][sequence mod ring], or empty likewise
  std::vector<std::uint32_t> grouped_lanes_;
  std::vector<LaneGroup> groups_;           // sorted by (rank, channel, batch)
  std::vector<std::uint32_t> group_of_;     // by lane
  std::vector<std::uint32_t> first_group_;  // by rank, one more at the end
  std::vector<std::uint32_t> lanes_left_;   // by rank
  std::vector<std::int64_t> proxy_free_;    // by rank
  std::vector<std::int64_t> eager_free_;    // by rank: when it looks at another eager message
  std::uint32_t ranks_left_ = 0;
  std::int64_t origin_ = -1;  // first start
  std::uint64_t digest_ = 0;
  std::int64_t messages_ = 0;
};

}  // namespace railyard::sim
