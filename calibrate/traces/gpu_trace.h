// A profiler trace (Kineto) as the structure of what ran: activities of the GPU in the order in
// which the host launched them, the ranges of host code around the launches, and where streams and
// the host waited.
//
// A GPU activity is joined to the host call that launched it by its correlation id, so its place in
// the program is known even where the GPU ran it much later. Times are nanoseconds on the clock of
// the trace; host and GPU share it, as Kineto aligns them.
//
// Kept of the host: ranges that give the program a shape (annotations, autograd's functions, c10d,
// DDP's reducer, forward operators with a sequence number), not every operator. Memory:
// O(activities + those ranges).
//
// A trace is `sampled` if launches or parts of operators are missing in it: what is left out cannot
// be told from what never was, so such a trace is shown but never imported.
//
//   RAILYARD_ASSIGN(const GpuTrace trace, read_gpu_trace(text, "rank0.json"));
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/readers/kineto.h"
#include "sim/result.h"

namespace railyard::calibrate {

// The version of Kineto's layout that is read: "schemaVersion".
inline constexpr std::int64_t kKinetoSchema = 1;

enum class ActivityKind : std::uint8_t { kernel, copy, collective };

struct Activity {
  ActivityKind kind = ActivityKind::kernel;
  std::uint32_t name = 0;  // GpuTrace::names
  std::int64_t start_ns = 0, end_ns = 0;
  std::optional<std::int64_t> launch_ns;  // start of the call; nothing: the call is not there
  std::int64_t launch_end_ns = 0;
  std::uint32_t thread = 0;  // GpuTrace::threads
  std::int64_t device = -1, stream = -1;
  std::int64_t bytes = -1;          // of a copy
  std::size_t collective_call = 0;  // of a collective: index into facts.collectives
  // Where it stands in the program.
  [[nodiscard]] std::int64_t issued_ns() const { return launch_ns.value_or(start_ns); }
};

// Host code that was running; nested ranges of one thread contain each other.
struct HostRange {
  std::uint32_t name = 0;
  std::uint32_t thread = 0;
  std::int64_t start_ns = 0, end_ns = 0;
  std::optional<std::int64_t> sequence;  // autograd's number: a forward operator and its backward
  bool annotation = false;               // record_function's, by the user or the framework
};

// cudaStreamWaitEvent: a stream will wait for an event (the trace does not say which).
struct StreamWait {
  std::uint32_t thread = 0;
  std::int64_t host_ns = 0;
};

// The host waited for the GPU.
struct HostWait {
  std::uint32_t thread = 0;
  std::int64_t start_ns = 0, end_ns = 0;
  bool everything = false;  // for a whole stream or device, not for one event
};

struct GpuTrace {
  KinetoTrace facts;  // who, where, and the collectives with their sizes
  std::vector<std::string> names, threads;
  std::vector<Activity> activities;      // by issued_ns()
  std::vector<HostRange> ranges;         // by start, the outer first
  std::vector<StreamWait> stream_waits;  // by time
  std::vector<HostWait> host_waits;      // by start
  std::size_t unlaunched = 0;            // activities without their launch
  std::size_t hollow = 0;                // autograd's calls whose function is not there
  std::size_t functions = 0;             // of so many
  [[nodiscard]] const std::string& name(const Activity& a) const { return names[a.name]; }
  [[nodiscard]] const std::string& name(const HostRange& r) const { return names[r.name]; }
  [[nodiscard]] const KinetoCollective& call(const Activity& a) const {
    return facts.collectives[a.collective_call];
  }
  // Why it cannot be complete; empty if nothing says so.
  [[nodiscard]] std::string sampled() const;
};

// "autograd::engine::evaluate_function: ": the engine's call of one function of the graph.
inline constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";

// Errors: those of read_kineto(), another schema version, nothing that ran on a GPU.
sim::Result<GpuTrace> read_gpu_trace(std::string_view text, std::string_view name);

}  // namespace railyard::calibrate
