#include "calibrate/traces/gpu_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "calibrate/readers/log_text.h"

namespace railyard::calibrate {
namespace {

struct Launch {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t thread = 0;
};

constexpr std::array<std::string_view, 3> kLaunchWords{"Launch", "Memcpy", "Memset"};

bool launches(std::string_view call) {
  return std::any_of(kLaunchWords.begin(), kLaunchWords.end(),
                     [&](std::string_view word) { return call.find(word) != call.npos; });
}

// Operators that give the program a shape.
bool is_landmark(std::string_view name) {
  return name.starts_with(kEvaluate) || name.starts_with("c10d::") ||
         name.find("reducer::") != name.npos;
}

class Names {
 public:
  explicit Names(std::vector<std::string>& all) : all_(all) {}
  std::uint32_t of(std::string_view text) {
    const auto found = known_.find(std::string(text));
    if (found != known_.end()) return found->second;
    const auto id = static_cast<std::uint32_t>(all_.size());
    all_.emplace_back(text);
    known_.emplace(all_.back(), id);
    return id;
  }

 private:
  std::vector<std::string>& all_;
  std::unordered_map<std::string, std::uint32_t> known_;
};

struct Times {
  std::int64_t start_ns = 0, end_ns = 0;
};

std::optional<Times> times_of(const TraceEvent& event) {
  const auto times = event.times();
  if (!times) return std::nullopt;
  return Times{times->first, times->second};
}

class Builder {
 public:
  explicit Builder(GpuTrace& out) : out_(out), names_(out.names), threads_(out.threads) {}

  void value(std::string_view path, std::string_view value) {
    if (path == "schemaVersion") schema_ = value;
  }

  void event(const TraceEvent& event) {
    if (event.text("ph") != "X") return;
    const auto times = times_of(event);
    if (!times) return;
    const std::string_view category = event.text("cat");
    if (category == "kernel" || category == "Kernel")
      activity(event, *times, ActivityKind::kernel);
    else if (category == "gpu_memcpy" || category == "gpu_memset")
      activity(event, *times, ActivityKind::copy);
    else if (category == "cuda_runtime" || category == "cuda_driver" || category == "Runtime")
      host_call(event, *times);
    else if (category == "cpu_op" || category == "Operator")
      operation(event, *times);
    else if (category == "user_annotation")
      annotation(event, *times);
  }

  // `schema` is empty where the file does not say.
  [[nodiscard]] const std::string& schema() const { return schema_; }

  void finish() {
    std::size_t collectives = 0;
    for (std::size_t i = 0; i < out_.activities.size(); ++i) {
      Activity& each = out_.activities[i];
      if (const auto found = launches_.find(correlations_[i]); found != launches_.end()) {
        each.launch_ns = found->second.start_ns;
        each.launch_end_ns = found->second.end_ns;
        each.thread = found->second.thread;
      } else {
        ++out_.unlaunched;
      }
      if (each.kind == ActivityKind::collective) ++collectives;
    }
    if (collectives == out_.facts.collectives.size())
      number_collectives();
    else  // a time out of range: which is which cannot be told
      for (Activity& each : out_.activities)
        if (each.kind == ActivityKind::collective) each.kind = ActivityKind::kernel;
    const auto by = [](auto key) {
      return [key](const auto& a, const auto& b) { return key(a) < key(b); };
    };
    std::stable_sort(out_.activities.begin(), out_.activities.end(),
                     by([](const Activity& a) { return a.issued_ns(); }));
    std::stable_sort(out_.ranges.begin(), out_.ranges.end(),
                     by([](const HostRange& r) { return std::pair(r.start_ns, -r.end_ns); }));
    std::stable_sort(out_.stream_waits.begin(), out_.stream_waits.end(),
                     by([](const StreamWait& w) { return w.host_ns; }));
    std::stable_sort(out_.host_waits.begin(), out_.host_waits.end(),
                     by([](const HostWait& w) { return w.start_ns; }));
    count_hollow();
  }

 private:
  void activity(const TraceEvent& event, const Times& times, ActivityKind kind) {
    Activity each;
    const std::string_view name = event.text("name");
    each.kind =
        kind == ActivityKind::kernel && is_nccl_kernel(name) ? ActivityKind::collective : kind;
    each.name =
        names_.of(name.substr(0, kind == ActivityKind::kernel ? name.find('(') : name.npos));
    each.start_ns = times.start_ns;
    each.end_ns = times.end_ns;
    each.device = event.integer("args.device").value_or(-1);
    each.stream = event.integer("args.stream").value_or(-1);
    each.bytes = event.integer("args.bytes").value_or(-1);
    each.thread = threads_.of("");
    correlations_.push_back(event.integer("args.correlation").value_or(-1));
    out_.activities.push_back(each);
  }

  void host_call(const TraceEvent& event, const Times& times) {
    const std::string_view name = event.text("name");
    const std::uint32_t thread = threads_.of(event.text("tid"));
    if (name.find("StreamWaitEvent") != name.npos)
      out_.stream_waits.push_back({thread, times.start_ns});
    else if (name.find("Synchronize") != name.npos)
      out_.host_waits.push_back(
          {thread, times.start_ns, times.end_ns, name.find("EventSynchronize") == name.npos});
    else if (const auto id = event.integer("args.correlation"); id && launches(name))
      launches_[*id] = {times.start_ns, times.end_ns, thread};
  }

  void operation(const TraceEvent& event, const Times& times) {
    const std::string_view name = event.text("name");
    const auto sequence = event.integer("args.Sequence number");
    const bool evaluates = name.starts_with(kEvaluate);
    if (!evaluates)
      inner_[std::pair(threads_.of(event.text("tid")), names_.of(name))].push_back(times.start_ns);
    const bool numbered = sequence && *sequence >= 0;
    if (!numbered && !is_landmark(name)) return;
    out_.ranges.push_back({names_.of(name), threads_.of(event.text("tid")), times.start_ns,
                           times.end_ns, numbered ? sequence : std::nullopt, false});
  }

  void annotation(const TraceEvent& event, const Times& times) {
    const std::string_view name = event.text("name");
    if (name.starts_with("ProfilerStep#")) return;
    out_.ranges.push_back({names_.of(name), threads_.of(event.text("tid")), times.start_ns,
                           times.end_ns, std::nullopt, true});
  }

  // facts.collectives holds the same kernels, in the order of their starts.
  void number_collectives() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < out_.activities.size(); ++i)
      if (out_.activities[i].kind == ActivityKind::collective) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return out_.activities[a].start_ns < out_.activities[b].start_ns;
    });
    for (std::size_t i = 0; i < order.size(); ++i) out_.activities[order[i]].collective_call = i;
  }

  // The engine's call of a function contains the function: where it does not, operators are
  // missing.
  void count_hollow() {
    for (auto& [key, starts] : inner_) std::sort(starts.begin(), starts.end());
    for (const HostRange& range : out_.ranges) {
      const std::string_view name = out_.names[range.name];
      if (!name.starts_with(kEvaluate)) continue;
      ++out_.functions;
      const auto found =
          inner_.find(std::pair(range.thread, names_.of(name.substr(kEvaluate.size()))));
      const bool holds = found != inner_.end() && [&, &starts = found->second] {
        const auto at = std::lower_bound(starts.begin(), starts.end(), range.start_ns);
        return at != starts.end() && *at <= range.end_ns;
      }();
      if (!holds) ++out_.hollow;
    }
    inner_.clear();
  }

  GpuTrace& out_;
  Names names_, threads_;
  std::string schema_;
  std::vector<std::int64_t> correlations_;  // by activity
  std::unordered_map<std::int64_t, Launch> launches_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> inner_;
};

}  // namespace

std::string GpuTrace::sampled() const {
  constexpr std::size_t kTolerated = 20;  // one in so many: a trace begins and ends somewhere
  if (unlaunched * kTolerated > activities.size())
    return fmt::format("{} of {} activities of the GPU have no launch in the trace", unlaunched,
                       activities.size());
  if (hollow * kTolerated > functions)
    return fmt::format("{} of {} calls of autograd's engine lack the function they called", hollow,
                       functions);
  return {};
}

sim::Result<GpuTrace> read_gpu_trace(std::string_view text, std::string_view name) {
  GpuTrace trace;
  Builder builder(trace);
  const TraceSink also{
      [&](const TraceEvent& event) { builder.event(event); },
      [&](std::string_view path, std::string_view value) { builder.value(path, value); }};
  RAILYARD_ASSIGN(trace.facts, read_kineto_with(text, name, also));
  if (const std::string& schema = builder.schema();
      !schema.empty() && to_integer(schema) != kKinetoSchema)
    return sim::bad_input(fmt::format("a trace of schemaVersion {}; version {} is what can be read",
                                      excerpt(schema, 20), kKinetoSchema),
                          std::string(name));
  if (trace.activities.empty())
    return sim::bad_input(
        "nothing in this trace ran on a GPU (no kernel, no copy): was "
        "ProfilerActivity.CUDA left out?",
        std::string(name));
  builder.finish();
  return trace;
}

}  // namespace railyard::calibrate
