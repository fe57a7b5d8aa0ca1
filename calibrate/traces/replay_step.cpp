#include "calibrate/traces/replay_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "calibrate/traces/walk.h"

namespace railyard::calibrate {
namespace {

// Parts of the names of kernels that compute bounds: matrix products and convolutions.
constexpr std::array<std::string_view, 9> kComputeWords{
    "gemm", "conv", "xmma", "cutlass", "wgrad", "dgrad", "fprop", "flash", "mma_"};
constexpr std::int64_t kRealWaitNs = 20'000;  // shorter ones found the GPU done already

bool bound_by_compute(std::string_view kernel) {
  return std::any_of(kComputeWords.begin(), kComputeWords.end(),
                     [&](std::string_view word) { return kernel.find(word) != kernel.npos; });
}

// The stream of most of the computing time.
std::int64_t compute_stream(const GpuTrace& trace, const TraceStep& step) {
  std::map<std::int64_t, std::int64_t> time;
  for (std::size_t i = step.first; i < step.last; ++i) {
    const Activity& each = trace.activities[i];
    if (each.kind != ActivityKind::collective) time[each.stream] += each.end_ns - each.start_ns;
  }
  const auto most = std::max_element(
      time.begin(), time.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == time.end() ? -1 : most->first;
}

// Where the last function of the backward pass begins; the end of time if there is none.
std::int64_t last_function(const GpuTrace& trace, const TraceStep& step) {
  std::int64_t last = INT64_MAX;
  for (const HostRange& range : trace.ranges) {
    if (range.start_ns >= step.end_ns) break;
    if (range.start_ns >= step.start_ns && trace.name(range).starts_with(kEvaluate))
      last = range.start_ns;
  }
  return last;
}

class Builder {
 public:
  Builder(const GpuTrace& trace, const TraceStep& step, TracedReplay& out)
      : trace_(trace),
        out_(out),
        list_(&out.forward),
        compute_(compute_stream(trace, step)),
        last_function_(last_function(trace, step)),
        previous_ns_(step.start_ns) {
    for (const HostWait& wait : trace.host_waits)
      if (wait.everything && wait.start_ns >= step.start_ns && wait.start_ns < step.end_ns &&
          wait.end_ns - wait.start_ns >= kRealWaitNs)
        waits_.push_back(wait);
  }

  void range(const HostRange& range, const Around&) {
    if (list_ == &out_.forward && trace_.name(range).starts_with(kEvaluate)) enter(out_.backward);
  }

  void wait(const StreamWait&, const Around& around) {
    if (around.inside("c10d::") || around.inside("nccl:")) return;
    ++stream_waits_;
    if (awaited_ == calls_) return;
    flush();
    add_wait();
  }

  void launch(const StepLaunch& launch, const Activity& activity, const Around& around) {
    if (list_ == &out_.backward && activity.issued_ns() > last_function_ &&
        !around.inside(kEvaluate))
      enter(out_.after_backward);
    const std::int64_t host = synchronized(launch.host_ns, activity.issued_ns());
    previous_ns_ = activity.issued_ns();
    if (activity.kind == ActivityKind::collective) return call(host, activity);
    const std::size_t stream = stream_of(activity.stream);
    if (stream != stream_) flush();
    stream_ = stream;
    run_.add(host, launch.gpu_ns);
    if (bound_by_compute(trace_.name(activity))) bound_ns_ += launch.gpu_ns;
  }

  void finish(const StepLaunches& launches) {
    run_.add_host(synchronized(launches.tail_ns, INT64_MAX));
    flush();
    if (stream_waits_ == 0 && calls_ > 0) {
      out_.notes.emplace_back(
          "the trace has no cudaStreamWaitEvent: the compute stream is taken to wait for all "
          "collectives at the end of the step");
      while (awaited_ < calls_) add_wait();
    }
    if (out_.streams.size() > 1)
      out_.notes.push_back(fmt::format(
          "{} streams beside the compute stream run without waiting for it: the trace does not say "
          "for what they wait",
          out_.streams.size() - 1));
  }

 private:
  void enter(std::vector<ReplayItem>& list) {
    flush();
    list_ = &list;
  }

  void flush() {
    if (run_.empty()) return;
    ReplayItem item;
    item.run = run_.take();
    item.stream = item.run.count == 0 ? 0 : stream_;
    item.compute_bound = 2 * bound_ns_ > item.run.kernel_ns;
    bound_ns_ = 0;
    list_->push_back(std::move(item));
  }

  void add_wait() {
    ReplayItem item;
    item.kind = ReplayKind::wait;
    item.waits_for = ++awaited_;
    list_->push_back(std::move(item));
  }

  // Host waits before `ns`: the part of the host's time that came before each, then the wait.
  // Returns what is left of the host's time.
  std::int64_t synchronized(std::int64_t host_ns, std::int64_t ns) {
    for (; next_wait_ < waits_.size() && waits_[next_wait_].start_ns < ns; ++next_wait_) {
      const HostWait& wait = waits_[next_wait_];
      const std::int64_t before =
          std::clamp<std::int64_t>(wait.start_ns - previous_ns_, 0, host_ns);
      run_.add_host(before);
      host_ns -= before;
      flush();
      ReplayItem item;
      item.kind = ReplayKind::synchronize;
      list_->push_back(std::move(item));
      previous_ns_ = std::max(previous_ns_, wait.end_ns);
    }
    return host_ns;
  }

  void call(std::int64_t host_ns, const Activity& activity) {
    flush();
    ReplayItem item;
    item.kind = ReplayKind::call;
    item.run.before_ns = host_ns;
    item.call = replay_call(trace_.call(activity), trace_.facts.world_size, out_);
    list_->push_back(std::move(item));
    ++calls_;
  }

  std::size_t stream_of(std::int64_t stream) {
    if (stream == compute_) return 0;
    const auto [place, added] = streams_.emplace(stream, out_.streams.size());
    if (added) out_.streams.push_back(fmt::format("stream {}", stream));
    return place->second;
  }

  const GpuTrace& trace_;
  TracedReplay& out_;
  std::vector<ReplayItem>* list_;
  std::int64_t compute_, last_function_, previous_ns_;
  std::vector<HostWait> waits_;
  std::size_t next_wait_ = 0;
  RunMerger run_;
  std::int64_t bound_ns_ = 0;
  std::size_t stream_ = 0, calls_ = 0, awaited_ = 0, stream_waits_ = 0;
  std::map<std::int64_t, std::size_t> streams_;
};

void note_once(std::vector<std::string>& notes, std::string text) {
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(std::move(text));
}

}  // namespace

ReplayCall replay_call(const KinetoCollective& call, std::int64_t world, TracedReplay& out) {
  ReplayCall result;
  result.name = call.name.empty() ? call.kernel : call.name;
  const bool all = call.group.empty() || (world > 0 && call.group_size == world);
  ReplayGroup group{all ? "" : call.group, all ? "" : call.group_ranks, call.group_size};
  const auto found =
      std::find_if(out.groups.begin(), out.groups.end(), [&](const ReplayGroup& each) {
        return each.name == group.name && each.ranks == group.ranks;
      });
  result.group = static_cast<std::size_t>(found - out.groups.begin());
  if (found == out.groups.end()) out.groups.push_back(std::move(group));
  if (call.collective && call.bytes) {
    result.collective = call.collective;
    result.bytes = *call.bytes;
    result.dtype = call.dtype;
    if (call.uneven)
      note_once(out.notes,
                "all-to-alls with split sizes are taken as even: the trace of one rank "
                "does not hold the other ranks' sizes");
  } else {
    result.fixed_ns = call.end_ns - call.start_ns;
    note_once(out.notes,
              fmt::format("{}: of no known collective or size, kept as a time", result.name));
  }
  return result;
}

TracedReplay replay_step(const GpuTrace& trace, const TraceStep& step) {
  const StepLaunches launches = launches_of(trace, step);
  TracedReplay out;
  out.waited_ns = launches.waited_ns;
  Builder builder(trace, step, out);
  walk(trace, step, launches, builder);
  builder.finish(launches);
  return out;
}

}  // namespace railyard::calibrate
