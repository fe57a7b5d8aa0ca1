// A recorded program, run again on every rank: runs of kernels with the host's time around their
// launch, collectives, and who waits for what. Where it came from (a profiler trace, as a rule) and
// what the framework meant by it is not its affair.
//
//   kernels      the host works for `before`, launches a kernel of `time` on a stream, works for
//                `after`. Without a launch only the host's time counts
//   call         the host works for `before`, then launches a collective on its group's stream; it
//                starts behind what the compute stream was given before. A rank that is not in the
//                group spends the host's time only. Without a collective a kernel of `time` takes
//                its place there: a call of which only the duration is known
//   wait         the compute stream waits for the n-th call of this iteration (from 1)
//   synchronize  the host waits until the compute stream has done what it was given
//
// The host's times are all there is: launch costs of the profile are not added to them. The next
// iteration begins where this one's host ended, ahead of the GPU if that is slower.
//
// Not valid where the program itself would change: another bucket size, another parallelism.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/rank.h"

namespace railyard::models {

enum class ReplayAction : std::uint8_t { kernels, call, wait, synchronize };

struct ReplayStep {
  ReplayAction action = ReplayAction::kernels;
  sim::Duration before{};
  sim::Duration after{};
  sim::Kernel kernel;        // of kernels; of a call without a collective
  bool launches = false;     // whether there is a kernel
  std::uint32_t stream = 0;  // of kernels: 0 = compute, else the (stream - 1)-th of its own
  NamedCall collective;      // invalid call: the kernel takes its place
  std::uint32_t group = 0;   // of a call: of the program's groups
  std::uint32_t call = 0;    // of a wait, from 1
};

struct ReplayProgram {
  std::vector<ReplayStep> forward, backward, after_backward;
  CallTable calls;
  std::uint32_t streams = 0;  // of its own, beside compute and the groups'
  std::int64_t iterations = 1;
};

// Kernel time of one iteration on the compute stream.
sim::Duration compute_time(const ReplayProgram& program);

// Host costs under which a program runs: its own times only.
sim::HostParameters replay_host(const sim::HostParameters& of_profile);

// The control flow of one rank. `program` and `rank` must outlive it.
sim::Task run_replay(const ReplayProgram& program, WorkloadRank& rank);

}  // namespace railyard::models
