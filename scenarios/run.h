// Running a scenario: binds topology, ranks, channels, costs and workload, simulates, and returns
// every number a report needs. Nothing is printed here; the command line and its files are in
// tools/.
//
//   RAILYARD_ASSIGN(const Scenario scenario, read_scenario(path));
//   RAILYARD_ASSIGN(const RunResult result, run(scenario, {}));
//
// Times in a result are relative to the start of the run unless said otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario.h"
#include "sim/collective.h"
#include "sim/event_queue.h"
#include "sim/trace.h"
#include "sim/units.h"

namespace railyard::scenarios {

struct KvResult;
struct TrainingResult;

// What a run will cost, found without running it.
struct Estimate {
  double events = 0;
  double messages = 0;
  double memory_bytes = 0;
  double timeline_entries = 0;
};

struct RunLimits {
  double max_events = 5e9;
  double max_memory_bytes = 16e9;
  double timeout_seconds = 0;                      // of wall time; 0 = none
  const std::atomic<bool>* interrupted = nullptr;  // Ctrl-C
  // Called now and then with the share of the expected events that ran (0..1); without a number to
  // expect (an Estimate's), not at all.
  std::function<void(double)> progress;
  double expected_events = 0;
};

struct RunOptions {
  RunLimits limits;
  bool sensitivity = false;       // also run with each link class, launch cost and compute +10 %
  std::uint32_t trace_ranks = 0;  // keep the spans of the first so many ranks
  std::size_t message_limit = 0;  // keep up to so many messages for the timeline
};

// One call of one collective (a row of nccl-tests).
struct CollectiveRow {
  sim::Collective collective = sim::Collective::all_reduce;
  sim::Bytes size{};       // nccl-tests' size column
  std::int64_t count = 0;  // nccl-tests' count column, elements
  std::string dtype;       // nccl-tests' spelling: "float", "half", ...
  std::int64_t root = -1;
  std::string group;
  std::string label;  // of its spans in the timeline: "AllGather 64MiB"
  std::size_t ranks = 0;
  sim::Algorithm algorithm = sim::Algorithm::ring;
  sim::Protocol protocol = sim::Protocol::simple;
  std::uint32_t channels = 0;  // that carried something
  sim::Duration time{};
  double algbw = 0;  // GB/s
  double busbw = 0;  // GB/s
  std::int64_t messages = 0;
};

// One gradient bucket of the steady iteration. Times are relative to the start of that iteration.
struct BucketRow {
  sim::Bytes size{};
  sim::Bytes sent{};  // of its AllReduces together: less than `size` where a hook compresses
  std::size_t parameters = 0;
  sim::Duration ready{};  // last gradient copied in, on the last rank
  sim::Duration start{};  // first rank enters the collective
  sim::Duration end{};    // last rank leaves it
  sim::Algorithm algorithm = sim::Algorithm::ring;
  sim::Protocol protocol = sim::Protocol::simple;
  std::uint32_t channels = 0;
  double busbw = 0;         // GB/s, of the transfer itself (from the last rank's entry)
  sim::Duration exposed{};  // part of the exposed communication that is this bucket's
};

// What every training scheme says about its steps.
struct StepResult {
  std::string model;
  std::int64_t model_parameters = 0;
  std::vector<sim::Duration> iterations;  // duration of each simulated iteration
  sim::Duration step_time{};              // of the steady (last) one
  sim::Duration compute{};                // compute kernels' time in it, as they ran
  sim::Duration compute_alone{};          // had nothing slowed them down
  sim::Duration forward{};
  sim::Duration backward{};
  sim::Duration after_backward{};  // reductions still under way, copies back, optimizer
  sim::Duration communication{};   // some collective is running
  sim::Duration exposed{};         // and no compute kernel is
  std::string bound_by;            // "communication", "compute", "host launches"
  double samples_per_second = 0;   // whole job
};

struct DdpResult : StepResult {
  std::int32_t exposing_bucket = -1;                  // the bucket with the largest exposed part
  std::vector<BucketRow> buckets;                     // of the steady iteration, launch order
  std::vector<std::vector<sim::Bytes>> bucket_bytes;  // of every simulated iteration
  std::optional<int> rebuild_before_iteration;
};

struct FlowResult {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  sim::Bytes size{};
  sim::Duration start{};
  sim::Duration end{};
};

struct LinkRow {
  std::string name;
  sim::LinkClass link_class = sim::LinkClass::nvlink;
  sim::Bytes bytes{};
  double utilization = 0;  // bytes / (achievable rate x duration of the run)
  sim::Bandwidth rate{};   // achievable
};

struct IdleLinks {
  sim::LinkClass link_class = sim::LinkClass::nvlink;
  std::size_t count = 0;  // declared links of this class that carried nothing
  std::size_t total = 0;
  std::string example;
};

struct SensitivityRow {
  std::string what;     // "nvlink bandwidth", "launch cost", "compute time", ...
  double change = 0.1;  // +10 %
  sim::Duration base{};
  sim::Duration varied{};  // of the objective (step time or total time)
};

struct KeptMessage {
  std::string name;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t channel = 0;
  sim::Bytes size{};
  sim::Time start{};
  sim::Time arrival{};
};

// A rank that others waited for.
struct LateRank {
  std::uint32_t rank = 0;
  std::int64_t last_in = 0;  // collectives that it was the last to enter
  std::int64_t calls = 0;    // of so many
  sim::Duration median{};    // behind the median rank, in those
  sim::Duration worst{};
  sim::Duration total{};
  std::string cause;  // what the scenario says of it; may be empty
};

// Host time that steps lost to one cause.
struct HostLoss {
  std::string what;  // "data loader", "communicators", ...
  std::uint32_t rank = 0;
  sim::Duration total{};
};

struct RunResult {
  sim::Duration duration{};  // of the whole simulated run
  sim::EventQueue::Outcome outcome = sim::EventQueue::Outcome::drained;
  std::vector<std::string> unfinished;  // who waits for whom; empty when the job ended
  std::vector<CollectiveRow> collectives;
  std::optional<DdpResult> ddp;
  std::shared_ptr<const TrainingResult> training;  // training_result.h
  std::shared_ptr<const KvResult> kv;              // kv_result.h
  std::vector<LateRank> late_ranks;                // of a training job, latest first
  std::vector<HostLoss> host_losses;               // each on the rank that lost most, largest first
  std::vector<FlowResult> flows;
  std::vector<LinkRow> busiest_links;  // at most 10, busiest first
  std::vector<IdleLinks> idle_links;
  std::vector<SensitivityRow> sensitivity;
  std::vector<std::string> notes;  // what the user should know about how this was predicted

  std::size_t ranks = 0;
  std::size_t nodes = 0;
  std::string machine;
  std::string profile;
  std::int64_t messages = 0;
  std::uint64_t events = 0;
  std::uint64_t solves = 0;
  std::int64_t replays = 0;  // collectives taken from an identical earlier one
  std::uint64_t trace_hash = 0;
  std::vector<std::string> stream_names;
  std::vector<std::string> span_names;
  std::vector<sim::Span> spans;  // of the ranks asked for
  std::vector<KeptMessage> kept_messages;
};

// Stops when the topology and channels alone would take more than `max_memory_bytes`, before they
// are built: what the estimate then says is their memory.
Result<Estimate> estimate(const Scenario& scenario,
                          double max_memory_bytes = std::numeric_limits<double>::infinity());
Result<RunResult> run(const Scenario& scenario, const RunOptions& options);

// The steps of a training job, whichever scheme it is of; null if none was run.
const StepResult* step_result(const RunResult& result);

// The number that a study compares: step time, the median time to first token, else the total time
// of the collectives or flows.
sim::Duration objective_time(const RunResult& result);

}  // namespace railyard::scenarios
