// CollectiveRunner: the collectives of one communicator in a run. Every rank enters the calls in
// the same order, each when its stream reaches it.
//
// When a call goes on the wire:
//   * AllReduce, AllGather, ReduceScatter, AllToAll: no rank can end before all have entered, so
//   the
//     transfer starts when the LAST rank has entered (and the previous call of the communicator is
//     over). What early ranks could push into their FIFOs before that - at most 8 steps - is left
//     out; a rank's own duration still counts from its own entry.
//   * Rooted calls, SendRecv and empty messages: every rank starts as it enters.
//   * One call of a communicator is on the wire at a time. (NCCL's channels are FIFOs that
//   consecutive
//     calls share; measured, ranks leave a collective within microseconds of each other.)
//
// Exact replay. A call that meets no other traffic and starts on all ranks at once depends on its
// plan alone: integer times make it independent of when it runs. With `replay` it is simulated
// once, apart, and its outcome (ends, digest, bytes per link) used again. It is for runs in which
// this communicator is the only source of traffic. Both ways give the same trace hash.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/collective.h"
#include "sim/cost.h"
#include "sim/executor.h"
#include "sim/schedule_costs.h"
#include "sim/simulation.h"

namespace railyard::sim {

using PlanId = Id<struct PlanTag>;

class CollectiveRunner;

class CollectiveListener {
 public:
  virtual ~CollectiveListener() = default;
  virtual void on_collective_done(const CollectiveRunner& runner, std::uint32_t group_rank,
                                  std::uint32_t call) = 0;
};

// One call, when it is over.
struct CallRecord {
  PlanId plan;
  std::vector<Time> enter;  // by group rank: when its stream reached the call
  std::vector<Time> end;    // by group rank
  Time begin{};             // the transfer starts
  Time done{};              // last end
  std::uint64_t digest = 0;
  std::int64_t messages = 0;
  bool replayed = false;
};

// What came of calls that were simulated apart, for replay: by schedule, for one communicator, one
// set of costs and options. May be shared by runs that differ in nothing of that.
struct ReplayOutcome {
  std::vector<Duration> end;  // by rank, after the start
  std::uint64_t digest = 0;
  std::int64_t messages = 0;
  std::vector<std::pair<ResourceId, Bytes>> carried;
};
using ReplayCache = std::map<const Schedule*, ReplayOutcome>;

class CollectiveRunner final : public EventHandler, public RunListener {
 public:
  struct Options {
    bool credits = true;
    bool replay = false;
    ReplayCache* outcomes = nullptr;      // null: the runner's own
    MessageObserver* observer = nullptr;  // sees the messages of calls simulated in place
    // Asked now and then during a call that is simulated apart; true gives the call up, and the run
    // with it: it is for whoever stops the event queue as well.
    std::function<bool()> stop;
  };
  // Who communicates, with which schedules, at which cost. What is pointed to must outlive the
  // runner.
  struct Communicator {
    const Topology* topology;
    Group group;
    CollectiveSource* source;
    const CostModel* costs;
  };
  CollectiveRunner(Simulation& simulation, Communicator communicator, const Options& options);
  ~CollectiveRunner() override;
  CollectiveRunner(const CollectiveRunner&) = delete;
  CollectiveRunner& operator=(const CollectiveRunner&) = delete;

  // Builds (or finds) the schedule and costs of a call, so that bad calls fail before the run.
  Result<PlanId> plan(const CollectiveCall& call);
  [[nodiscard]] const Schedule& schedule(PlanId plan) const {
    return *plans_[plan.index()].schedule;
  }
  [[nodiscard]] Slowdown slowdown(PlanId plan) const { return plans_[plan.index()].slowdown; }
  [[nodiscard]] std::size_t plan_count() const { return plans_.size(); }
  [[nodiscard]] std::shared_ptr<const Schedule> shared_schedule(PlanId plan) const {
    return plans_[plan.index()].schedule;
  }

  // The rank's stream reaches its next call now. Calls are numbered 0, 1, 2, ... per rank; all
  // ranks must make the same calls in the same order. `listener` hears when the rank leaves this
  // call.
  std::uint32_t enter(std::uint32_t group_rank, PlanId plan, CollectiveListener& listener);

  // The number of the rank's next call.
  [[nodiscard]] std::uint32_t next_call(std::uint32_t group_rank) const {
    return next_call_[group_rank];
  }

  // Marks the links whose rate mattered: to a call that was simulated apart, or to a cut-through
  // connection, which counts on the rate of its route. What the run's own network says comes on
  // top.
  void mark_limiting(std::vector<bool>& links) const;

  [[nodiscard]] const Group& group() const { return group_; }
  [[nodiscard]] const std::vector<CallRecord>& records() const { return records_; }
  [[nodiscard]] std::int64_t messages() const { return messages_; }
  [[nodiscard]] std::int64_t replays() const { return replays_; }
  // Events and solves of calls that were simulated apart for replay.
  [[nodiscard]] std::uint64_t sandbox_events() const;
  [[nodiscard]] std::uint64_t sandbox_solves() const;
  // Who waits for whom, when the run ended with calls open; at most `limit` lines.
  [[nodiscard]] std::vector<std::string> waiting(std::size_t limit) const;

  void on_event(std::uint32_t code, std::uint32_t argument) override;
  void on_rank_done(std::uint32_t group_rank) override;

 private:
  struct Sandbox;
  struct Plan {
    CollectiveCall call;
    std::shared_ptr<const Schedule> schedule;
    std::shared_ptr<const ScheduleCosts> costs;
    Slowdown slowdown;
    std::unique_ptr<Executor> in_place;
    bool together = false;  // starts on all ranks at once
  };
  struct OpenCall {
    PlanId plan;
    std::vector<std::uint32_t> order;  // ranks as they entered
    std::vector<CollectiveListener*> listeners;
    std::uint32_t left = 0;
  };

  void open_call(PlanId plan);
  void begin_current();
  void start_in_place(std::uint32_t group_rank);
  void start_all();
  void replay(const Plan& plan);
  std::optional<ReplayOutcome> simulate_apart(PlanId plan);
  bool run_apart(const Executor& executor);
  void leave(std::uint32_t group_rank, Time end);
  void close_current();

  Simulation* simulation_;
  const Topology* topology_;
  Group group_;
  CollectiveSource* source_;
  const CostModel* costs_;
  Options options_;
  std::vector<Plan> plans_;
  std::vector<CallRecord> records_;       // by call
  std::vector<OpenCall> open_;            // calls current_, current_ + 1, ...
  std::vector<std::uint32_t> next_call_;  // by rank
  std::uint32_t current_ = 0;             // the call on the wire
  std::int64_t messages_ = 0;
  std::int64_t replays_ = 0;
  ReplayCache own_outcomes_;
  ReplayCache* outcomes_;
  std::unique_ptr<Sandbox> sandbox_;
  std::vector<std::string> stuck_;  // who waits for whom in a call that never ended apart
};

}  // namespace railyard::sim
