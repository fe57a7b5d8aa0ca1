// A step of a trace as a program that can be run again: runs of kernels, collectives with their
// sizes and groups, and who waits for what. Nothing of the framework is understood, so every kind
// of job can be replayed, but only what does not change the program can be asked (another cluster,
// algorithm, protocol).
//
//   run          launches between two of the following, on one stream, as one (launches.h)
//   call         a collective. It starts behind everything that the compute stream was given before
//                it, as c10d has it
//   wait         the compute stream waits for the oldest call that nobody waited for yet: a
//                cudaStreamWaitEvent outside of c10d's own operators. Without any in the trace, the
//                compute stream waits for all calls at the end of the step
//   synchronize  the host waits for the compute stream
//
// Calls of unknown size, sends and receives keep the time they took in the trace (`fixed_ns`): the
// trace of one rank does not hold what the other side did.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/traces/gpu_trace.h"
#include "calibrate/traces/launches.h"

namespace railyard::calibrate {

struct ReplayCall {
  std::string name;
  std::optional<sim::Collective> collective;  // none: fixed_ns counts
  std::int64_t bytes = 0;                     // of the whole buffer
  std::string dtype;                          // PyTorch's; empty if not known
  std::size_t group = 0;                      // TracedReplay::groups
  std::int64_t fixed_ns = 0;
};

enum class ReplayKind : std::uint8_t { run, call, wait, synchronize };

struct ReplayItem {
  ReplayKind kind = ReplayKind::run;
  MeasuredRun run;             // of a call: its host time is before_ns
  bool compute_bound = false;  // of a run: most of it is matrix products and convolutions
  std::size_t stream = 0;      // of a run: TracedReplay::streams; 0 is the compute stream
  ReplayCall call;
  std::size_t waits_for = 0;  // of a wait: which call of the step, from 1
};

struct ReplayGroup {
  std::string name;   // PyTorch's; empty: all ranks, as far as the trace says
  std::string ranks;  // "[0, 1]"; may be empty
  std::int64_t size = -1;
};

struct TracedReplay {
  std::vector<ReplayItem> forward, backward, after_backward;
  std::vector<ReplayGroup> groups;
  std::vector<std::string> streams{"compute"};
  std::int64_t waited_ns = 0;  // host waits that are left out
  std::vector<std::string> notes;
};

TracedReplay replay_step(const GpuTrace& trace, const TraceStep& step);

// For whoever finds calls elsewhere (execution traces): the call as a replay has it, its group
// added to those known. Notes what is left open.
ReplayCall replay_call(const KinetoCollective& call, std::int64_t world, TracedReplay& out);

}  // namespace railyard::calibrate
