#include "calibrate/traces/ddp_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "calibrate/traces/walk.h"
#include "sim/enum_table.h"

namespace railyard::calibrate {
namespace {

using models::LayerKind;
using sim::Collective;

constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";
constexpr std::string_view kCopyBack = "copy_bucket_to_grad";

constexpr std::int64_t kLongestStepNs = std::int64_t{3'600} * 1'000'000'000;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;  // of one collective or copy

struct KindWord {
  std::string_view word;
  LayerKind kind;
};
constexpr std::array kKindWords{KindWord{"attention", LayerKind::attention},
                                KindWord{"conv", LayerKind::conv},
                                KindWord{"norm", LayerKind::norm},
                                KindWord{"embedding", LayerKind::embedding},
                                KindWord{"pool", LayerKind::pooling},
                                KindWord{"linear", LayerKind::gemm},
                                KindWord{"mm", LayerKind::gemm},
                                KindWord{"matmul", LayerKind::gemm}};

LayerKind kind_of(std::string_view operation) {
  for (const KindWord& each : kKindWords)
    if (operation.find(each.word) != operation.npos) return each.kind;
  return LayerKind::elementwise;
}

// "aten::batch_norm" -> "batch_norm"
std::string_view short_name(std::string_view operation) {
  const std::size_t colons = operation.rfind("::");
  return colons == operation.npos ? operation : operation.substr(colons + 2);
}

class Extractor {
 public:
  Extractor(const GpuTrace& trace, TracedDdp& out) : trace_(trace), out_(out) {}

  void range(const HostRange& range, const Around& around) {
    const std::string_view name = trace_.name(range);
    if (name.starts_with("Optimizer.step#")) {
      const std::string_view what = name.substr(name.find('#') + 1);
      out_.optimizer_name = what.substr(0, what.find('.'));
    }
    if (name.starts_with(kEvaluate)) return function(name.substr(kEvaluate.size()), range);
    const bool forward = phase_ == Phase::start || phase_ == Phase::forward;
    if (forward && range.sequence && !range.annotation && !around.numbered())
      open_layer(name, *range.sequence);
  }

  void wait(const StreamWait&, const Around&) {}

  void launch(const StepLaunch& launch, const Activity& activity, const Around& around) {
    const bool in_function = around.inside(kEvaluate);
    if (phase_ == Phase::backward && !in_function && !around.inside(kCopyBack))
      phase_ = Phase::after;
    if (activity.kind == ActivityKind::collective && collective(launch, activity, in_function))
      return;
    if (around.inside(kCopyBack)) {
      ++copies_;
      copy_host_ += launch.host_ns;
      copied_.push_back(activity.bytes <= kMostBytes ? activity.bytes : -1);
    } else if (in_function && around.inside(kAccumulate)) {
      hook_host_ += launch.host_ns;
    } else {
      run().add(launch.host_ns, launch.gpu_ns);
    }
  }

  sim::Result<void> finish(const StepLaunches& launches) {
    if (arrivals_.empty()) return sim::bad_input("no gradient was accumulated in this step");
    if (out_.buckets.empty()) return sim::bad_input("no gradient's hook launched an all-reduce");
    if (!out_.buckets.empty() && layers_.empty())
      return sim::bad_input("no forward operator has autograd's sequence number");
    after_.add_host(launches.tail_ns);
    out_.waited_ns = launches.waited_ns;
    out_.start = start_.run();
    out_.optimizer = after_.run();
    const auto gradients = static_cast<std::int64_t>(arrivals_.size());
    out_.hook_ns = hook_host_ / gradients;
    out_.collective_ns = collectives_ > 0 ? collective_host_ / collectives_ : 0;
    out_.copy_back_ns = copies_ > 0 ? copy_host_ / gradients : 0;
    out_.bucket_view = copies_ == 0;
    RAILYARD_TRY(size_gradients());
    close_layers();
    if (others_ > 0)
      out_.notes.push_back(fmt::format(
          "{} collectives that are neither buckets nor buffers were left out", others_));
    return {};
  }

 private:
  enum class Phase : std::uint8_t { start, forward, backward, after };
  struct Building {
    TracedLayer layer;
    std::int64_t sequence = 0;  // the first of its own
    RunMerger forward, backward;
  };

  void open_layer(std::string_view name, std::int64_t sequence) {
    phase_ = Phase::forward;
    // Numbers ascend, or a function's layer could not be found by them.
    if (!layers_.empty() && sequence < layers_.back().sequence) return;
    // A number that comes again was not used up: the operators before (batch norm's counter) made
    // no function, and the layer is this one's.
    if (layers_.empty() || sequence > layers_.back().sequence) layers_.emplace_back();
    layers_.back().layer.kind = kind_of(short_name(name));
    layers_.back().layer.name = short_name(name);
    layers_.back().sequence = sequence;
  }

  void function(std::string_view name, const HostRange& range) {
    if (layers_.empty()) return;
    if (phase_ != Phase::after) phase_ = Phase::backward;
    if (name == kAccumulate) {
      layers_[backward_].layer.gradients.push_back(arrivals_.size());
      arrivals_.push_back(out_.buckets.size());
    } else if (range.sequence) {
      const auto above = std::partition_point(
          layers_.begin(), layers_.end(),
          [&](const Building& each) { return each.sequence <= *range.sequence; });
      backward_ =
          above == layers_.begin() ? 0 : static_cast<std::size_t>(above - layers_.begin()) - 1;
    }
  }

  RunMerger& run() {
    switch (phase_) {
      case Phase::start: return start_;
      case Phase::forward: return layers_.back().forward;
      case Phase::backward: return layers_[backward_].backward;
      case Phase::after: break;
    }
    return after_;
  }

  // Whether it is one of DDP's.
  bool collective(const StepLaunch& launch, const Activity& activity, bool in_function) {
    const KinetoCollective& call = trace_.call(activity);
    const bool sized = call.bytes && *call.bytes <= kMostBytes;
    const bool bucket = in_function && call.collective == Collective::all_reduce && sized;
    const bool buffers = phase_ == Phase::start && call.collective == Collective::broadcast &&
                         sized && (call.dtype == "Float" || call.dtype == "Long");
    if (!bucket && !buffers) {
      ++others_;
      run().add_host(launch.host_ns);
      return true;
    }
    ++collectives_;
    collective_host_ += launch.host_ns;
    if (buffers) {
      (call.dtype == "Float" ? out_.buffers.fp32_elements : out_.buffers.int64_elements) +=
          call.elements_in;
      return true;
    }
    if (out_.buckets.empty()) out_.dtype = call.dtype;
    if (call.dtype != out_.dtype) mixed_ = true;
    out_.buckets.push_back(*call.bytes);
    return true;
  }

  sim::Result<void> size_gradients() {
    const std::int64_t element = bytes_of_type(out_.dtype);
    if (mixed_) return sim::bad_input("its buckets are of several types, which is not supported");
    const bool sizes_known = copied_.size() == arrivals_.size() &&
                             std::all_of(copied_.begin(), copied_.end(), [&](std::int64_t bytes) {
                               return bytes > 0 && bytes % element == 0;
                             });
    const auto sum = [](const std::vector<std::int64_t>& list) {
      return std::accumulate(list.begin(), list.end(), std::int64_t{0});
    };
    if (sizes_known && sum(copied_) == sum(out_.buckets)) {
      for (const std::int64_t bytes : copied_) out_.gradient_elements.push_back(bytes / element);
      return {};
    }
    return divide_buckets(element);
  }

  // arrivals_[g]: buckets that had been launched before gradient g came.
  sim::Result<void> divide_buckets(std::int64_t element) {
    out_.notes.emplace_back(
        "sizes of single gradients are not in the trace: each bucket's is divided evenly among the "
        "gradients that arrived for it");
    for (std::size_t b = 0; b < out_.buckets.size(); ++b) {
      const auto count = static_cast<std::int64_t>(
          std::count(arrivals_.begin(), arrivals_.end(), b) +
          (b + 1 == out_.buckets.size()
               ? std::count_if(arrivals_.begin(), arrivals_.end(),
                               [&](std::size_t before) { return before > b; })
               : 0));
      const std::int64_t elements = out_.buckets[b] / element;
      if (count == 0 || count > elements)
        return sim::bad_input(
            fmt::format("no gradients arrived for bucket {} ({} bytes)", b, out_.buckets[b]));
      for (std::int64_t g = 0; g < count; ++g)
        out_.gradient_elements.push_back(elements / count + (g < elements % count ? 1 : 0));
    }
    return {};
  }

  // Layers of which nothing ran and that own nothing go to the one before.
  void close_layers() {
    for (Building& each : layers_) {
      each.layer.forward = each.forward.run();
      each.layer.backward = each.backward.run();
      each.layer.name += fmt::format(" {}", ++named_[each.layer.name]);
      const bool empty = each.forward.empty() && each.backward.empty();
      if (!empty || !each.layer.gradients.empty()) out_.layers.push_back(std::move(each.layer));
    }
  }

  const GpuTrace& trace_;
  TracedDdp& out_;
  Phase phase_ = Phase::start;
  std::vector<Building> layers_;
  std::map<std::string, int> named_;
  std::size_t backward_ = 0;           // the layer whose backward runs
  std::vector<std::size_t> arrivals_;  // by gradient: buckets launched before
  std::vector<std::int64_t> copied_;   // bytes, by copy
  RunMerger start_, after_;
  std::int64_t hook_host_ = 0, collective_host_ = 0, copy_host_ = 0;
  std::int64_t collectives_ = 0, copies_ = 0;
  std::size_t others_ = 0;
  bool mixed_ = false;
};

}  // namespace

bool is_ddp(const GpuTrace& trace, const TraceStep& step) {
  bool accumulates = false, wrapped = false;
  for (const HostRange& range : trace.ranges) {
    if (range.start_ns < step.start_ns || range.start_ns >= step.end_ns) continue;
    const std::string_view name = trace.name(range);
    accumulates = accumulates || name.substr(0, kEvaluate.size()) == kEvaluate;
    wrapped = wrapped || name.find("DistributedDataParallel.forward") != name.npos ||
              name.find("reducer::") != name.npos;
  }
  return accumulates && wrapped;
}

sim::Result<TracedDdp> ddp_step(const GpuTrace& trace, const TraceStep& step) {
  std::int64_t kernels = 0;
  for (std::size_t i = step.first; i < step.last; ++i)
    kernels += trace.activities[i].end_ns - trace.activities[i].start_ns;
  if (std::max(kernels, step.duration_ns()) > kLongestStepNs)
    return sim::bad_input(step.name + " is longer than an hour", trace.facts.source);
  const StepLaunches launches = launches_of(trace, step);
  TracedDdp out;
  Extractor extractor(trace, out);
  walk(trace, step, launches, extractor);
  if (auto done = extractor.finish(launches); !done.ok())
    return sim::bad_input(
        fmt::format("{} cannot be read as a DDP step: {}", step.name, done.error().message),
        trace.facts.source);
  return out;
}

}  // namespace railyard::calibrate
