// The parts of a run, one file each: collectives, a DDP job, raw traffic, and what they share.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "scenarios/bind.h"
#include "scenarios/run.h"
#include "sim/collective_runner.h"
#include "sim/simulation.h"
#include "sim/trace.h"

namespace railyard::scenarios {

class Faults;
class HostState;

// Keeps the messages of one communicator for the timeline, up to a limit for the whole run.
class MessageKeeper final : public sim::MessageObserver {
 public:
  MessageKeeper(std::size_t limit, const sim::Group& group, RunResult& result)
      : limit_(limit), group_(&group), result_(&result) {}
  void on_message(const sim::Schedule& schedule, const sim::Message& message) override;

 private:
  std::size_t limit_;
  const sim::Group* group_;
  RunResult* result_;
};

// What the network's capacities meant to a run: without a link that held something back, or a
// schedule that slows kernels down, more capacity changes nothing.
struct RunFacts {
  struct PlannedSchedule {
    std::shared_ptr<const sim::Schedule> schedule;
    std::shared_ptr<const sim::Group> group;
    sim::Slowdown slowdown;
  };
  std::vector<bool> limiting;  // by link
  std::vector<PlannedSchedule> schedules;
  double events = 0;
};

// What a run may be given besides the scenario.
struct SharedState {
  sim::ReplayCache* outcomes = nullptr;  // of earlier runs with the same communication costs
  double events = 0;                     // expected, for the progress report; 0 = unknown
  RunFacts* facts = nullptr;             // to be filled in, if anybody wants to know
  // When the time of RunLimits is up, for all runs that belong together.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// One run under way: what is built, what changes, and where results go.
struct RunContext {
  const Scenario& scenario;
  const RunOptions& options;
  Bound& bound;
  sim::Simulation& simulation;
  sim::Trace& trace;
  const SharedState& shared;
  RunResult& result;
  std::deque<MessageKeeper> keepers;  // where messages are kept: one per communicator
  std::vector<std::shared_ptr<sim::EventHandler>> handlers;  // of events yet to come
  bool stop = false;                                         // a fault ended the job
  // When the workload ended, where faults are at work: flows that once stood still leave events
  // long past it, which do nothing.
  std::optional<sim::Time> ended{};
  Faults* faults = nullptr;                   // at work; null = none
  std::shared_ptr<HostState> host{};          // what the hosts do; set by start_host()
  std::shared_ptr<std::size_t> hosts_left{};  // programs that have not ended
};

Result<RunResult> run_bound(const Scenario& scenario, const RunOptions& options, Bound& bound,
                            const SharedState& shared);

// The part of the progress report that belongs to the base run, where variations follow it: they
// are several, but most need little.
inline constexpr double kBaseShare = 0.25;

// Runs again with one thing changed at a time and adds a row for each; `shared` is the base
// run's.
struct SensitivityInput {
  Bound& bound;
  const SharedState& shared;
  const RunFacts& facts;
};
Result<void> add_sensitivity(const Scenario& scenario, const RunOptions& options,
                             const SensitivityInput& input, RunResult& result);

// Whether collectives may be replayed: one communicator, and nothing else on the network.
bool may_replay(const RunContext& context);

std::unique_ptr<sim::CollectiveRunner> make_runner(RunContext& context,
                                                   Communication& communication);

// The simulated time that the run has taken so far, or took.
sim::Duration run_time(const RunContext& context);

// Runs the event queue to its end within the limits; `finished` adds nothing to it.
sim::EventQueue::Outcome run_queue(RunContext& context);

// Adds what the runner did to the result's counts and the trace, and to SharedState::facts.
void account(const sim::CollectiveRunner& runner, RunContext& context);

// gloo_report.cpp: how busy Gloo kept the processors, as a note of the result.
void note_processor_time(const sim::CollectiveRunner& runner, RunContext& context);

// Background (or only) traffic: starts with the run. Results are filled in by finish().
class TrafficSource {
 public:
  virtual ~TrafficSource() = default;
  virtual void finish() = 0;
};
Result<std::unique_ptr<TrafficSource>> start_traffic(RunContext& context);

Result<void> run_collectives(RunContext& context);
Result<void> run_ddp_job(RunContext& context);
void report_links(RunContext& context);

}  // namespace railyard::scenarios
