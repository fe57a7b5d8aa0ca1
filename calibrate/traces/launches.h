// What one step launched, in program order, with the host's own time before each launch; and runs
// of launches as one.
//
// Host time of a launch = from the start of the launch before it (of whichever thread: autograd's
// works while the main one waits for it) to its own, less what the host spent waiting for the GPU
// in between: in calls that synchronize, and in launches that found the stream's queue full. What
// remains is what the host would need with an infinitely fast GPU.
//
// Time on the GPU of a launch = its duration, plus the gap before it where the GPU, not the host,
// made it: the launch came before the end of its predecessor on the stream.
//
// A run of launches (h1, k1) ... (hn, kn), host and GPU time of each, takes a host at T and a
// stream that is free at G to
//   host    T + sum(h)
//   stream  max(G + sum(k), T + L),   L = max over i of (h1 + ... + hi) + (ki + ... + kn)
// so one launch of sum(k) after L - sum(k) of host time, with the rest of the host time behind it,
// is the same, whichever of the two is the bottleneck. (Kernels that slow down beside a collective
// are not: their share within a run is lost.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calibrate/traces/gpu_trace.h"
#include "calibrate/traces/steps.h"

namespace railyard::calibrate {

struct MeasuredRun {
  std::int64_t before_ns = 0;  // host, then the launch of
  std::int64_t kernel_ns = 0;  // so much work, then
  std::int64_t after_ns = 0;   // host
  std::size_t count = 0;       // launches
  [[nodiscard]] std::int64_t host_ns() const { return before_ns + after_ns; }
};

class RunMerger {
 public:
  void add(std::int64_t host_ns, std::int64_t kernel_ns);
  void add_host(std::int64_t host_ns) { host_ += host_ns; }  // behind what there is
  [[nodiscard]] bool empty() const { return count_ == 0 && host_ == 0; }
  [[nodiscard]] MeasuredRun run() const;
  MeasuredRun take();

 private:
  std::int64_t host_ = 0, kernel_ = 0, longest_ = 0;  // longest: L above
  std::size_t count_ = 0;
};

struct StepLaunch {
  std::size_t activity = 0;
  std::int64_t host_ns = 0;
  std::int64_t gpu_ns = 0;
};

struct StepLaunches {
  std::vector<StepLaunch> launches;
  std::int64_t tail_ns = 0;    // host time behind the last launch
  std::int64_t waited_ns = 0;  // left out: the host waited for the GPU
  [[nodiscard]] std::int64_t host_ns() const;
};

StepLaunches launches_of(const GpuTrace& trace, const TraceStep& step);

}  // namespace railyard::calibrate
