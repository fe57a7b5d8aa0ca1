#include "calibrate/traces/launches.h"

#include <algorithm>
#include <map>
#include <vector>

#include "sim/intervals.h"

namespace railyard::calibrate {
namespace {

// A launch that took longer while its stream was this far behind had found the queue full.
constexpr std::int64_t kFullQueueNs = 1'000'000;
constexpr std::int64_t kLongLaunchNs = 100'000;
// Launched so much before its predecessor's end, an activity waited for the GPU alone. Longer gaps
// than the second figure are something else.
constexpr std::int64_t kAheadNs = 5'000;
constexpr std::int64_t kLongestGapNs = 20'000;

// How long the host waited for the GPU on a thread, in ns.
class Waits {
 public:
  explicit Waits(const GpuTrace& trace) {
    for (const HostWait& wait : trace.host_waits)
      threads_[wait.thread].push_back({wait.start_ns, wait.end_ns});
    for (auto& [thread, waits] : threads_) waits = sim::united(std::move(waits));
  }

  [[nodiscard]] std::int64_t within(std::uint32_t thread, std::int64_t start,
                                    std::int64_t end) const {
    const auto found = threads_.find(thread);
    if (found == threads_.end() || end <= start) return 0;
    return end - start - sim::uncovered({start, end}, found->second);
  }

 private:
  std::map<std::uint32_t, std::vector<sim::Interval<std::int64_t>>> threads_;
};

std::int64_t blocked_in_launch(const Activity& each) {
  const std::int64_t call = each.launch_end_ns - each.issued_ns();
  const bool full = each.start_ns - each.issued_ns() > kFullQueueNs;
  return each.launch_ns && full && call > kLongLaunchNs ? call : 0;
}

}  // namespace

void RunMerger::add(std::int64_t host_ns, std::int64_t kernel_ns) {
  host_ += host_ns;
  kernel_ += kernel_ns;
  longest_ = std::max(count_ == 0 ? 0 : longest_ + kernel_ns, host_ + kernel_ns);
  ++count_;
}

MeasuredRun RunMerger::run() const {
  if (count_ == 0) return {host_, 0, 0, 0};
  const std::int64_t before = longest_ - kernel_;
  return {before, kernel_, host_ - before, count_};
}

MeasuredRun RunMerger::take() {
  const MeasuredRun out = run();
  *this = {};
  return out;
}

std::int64_t StepLaunches::host_ns() const {
  std::int64_t sum = tail_ns;
  for (const StepLaunch& each : launches) sum += each.host_ns;
  return sum;
}

StepLaunches launches_of(const GpuTrace& trace, const TraceStep& step) {
  StepLaunches out;
  Waits waits(trace);
  std::map<std::int64_t, std::int64_t> stream_end;
  std::int64_t host = step.start_ns;
  std::int64_t blocked = 0;  // of the launch before
  std::uint32_t thread = 0;
  for (std::size_t i = step.first; i < step.last; ++i) {
    const Activity& each = trace.activities[i];
    thread = each.thread;
    StepLaunch launch{i, 0, each.end_ns - each.start_ns};
    const std::int64_t passed = std::max<std::int64_t>(0, each.issued_ns() - host);
    const std::int64_t waited =
        std::min(passed, waits.within(thread, host, each.issued_ns()) + blocked);
    launch.host_ns = passed - waited;
    out.waited_ns += waited;
    const auto [end, first] = stream_end.emplace(each.stream, each.end_ns);
    if (!first) {
      const std::int64_t gap = each.start_ns - end->second;
      if (each.issued_ns() + kAheadNs < end->second && gap > 0 && gap < kLongestGapNs)
        launch.gpu_ns += gap;
      end->second = std::max(end->second, each.end_ns);
    }
    host = std::max(host, each.issued_ns());
    blocked = blocked_in_launch(each);
    out.launches.push_back(launch);
  }
  const std::int64_t passed = std::max<std::int64_t>(0, step.end_ns - host);
  const std::int64_t waited = std::min(passed, waits.within(thread, host, step.end_ns) + blocked);
  out.tail_ns = passed - waited;
  out.waited_ns += waited;
  return out;
}

}  // namespace railyard::calibrate
