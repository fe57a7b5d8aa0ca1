// Any bytes as a profiler trace or an execution trace, plain or gzip: a value or a one-line error
// comes back; steps, runs and imports of whatever was read are consistent.
#include <string>

#include "calibrate/traces/ddp_network.h"
#include "calibrate/traces/ddp_step.h"
#include "calibrate/traces/execution_trace.h"
#include "calibrate/traces/gpu_trace.h"
#include "calibrate/traces/gunzip.h"
#include "calibrate/traces/replay_step.h"
#include "calibrate/traces/steps.h"
#include "tests/fuzz/measurement_log.h"

namespace {

namespace calibrate = railyard::calibrate;

void check_run(const calibrate::MeasuredRun& run) {
  fuzz::require(run.before_ns >= 0 && run.kernel_ns >= 0 && run.after_ns >= 0);
}

void check_replay(const calibrate::TracedReplay& replay) {
  std::size_t calls = 0;
  for (const auto* list : {&replay.forward, &replay.backward, &replay.after_backward})
    for (const calibrate::ReplayItem& item : *list) {
      check_run(item.run);
      fuzz::require(item.stream < replay.streams.size());
      if (item.kind == calibrate::ReplayKind::call) {
        ++calls;
        fuzz::require(item.call.group < replay.groups.size());
        fuzz::require(!item.call.collective || item.call.bytes > 0);
      }
      if (item.kind == calibrate::ReplayKind::wait) fuzz::require(item.waits_for <= calls);
    }
}

void check_ddp(const calibrate::TracedDdp& ddp) {
  check_run(ddp.start);
  check_run(ddp.optimizer);
  std::int64_t elements = 0;
  for (const std::int64_t each : ddp.gradient_elements) {
    fuzz::require(each > 0);
    elements += each;
  }
  std::int64_t bytes = 0;
  for (const std::int64_t each : ddp.buckets) bytes += each;
  fuzz::require(bytes >= elements);
  const auto spec = calibrate::network_of(ddp, "fuzz");
  if (!spec.ok()) return;
  const auto network = railyard::models::validate(spec.value());
  if (network.ok()) (void)calibrate::explain_buckets(ddp, network.value());
}

void check_trace(const calibrate::GpuTrace& trace) {
  const calibrate::TraceSteps found = calibrate::find_steps(trace);
  (void)trace.sampled();
  (void)calibrate::collective_rows(trace);
  (void)found.typical(trace);
  std::size_t looked_at = 0;
  for (const calibrate::TraceStep& step : found.steps) {
    fuzz::require(step.first <= step.last && step.last <= trace.activities.size());
    fuzz::require(step.overlap_ns <= step.communication_ns && step.overlap_ns <= step.compute_ns);
    if (++looked_at > 4) continue;
    check_replay(calibrate::replay_step(trace, step));
    (void)calibrate::is_ddp(trace, step);
    if (const auto ddp = calibrate::ddp_step(trace, step); ddp.ok()) check_ddp(ddp.value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMost = 1 << 20;
  std::string text(reinterpret_cast<const char*>(data), size);
  if (calibrate::is_gzip(text)) {
    auto unpacked = calibrate::gunzip(text, "fuzz", kMost);
    if (!unpacked.ok()) {
      fuzz::check_error(unpacked.error().text());
      return 0;
    }
    text = std::move(unpacked).value();
  }
  if (calibrate::is_execution_trace(text)) {
    const auto trace = calibrate::read_execution_trace(text, "fuzz");
    if (!trace.ok()) return fuzz::check_error(trace.error().text());
    for (const auto& step : trace.value().steps)
      check_replay(calibrate::replay_step(trace.value(), step));
    return 0;
  }
  const auto trace = calibrate::read_gpu_trace(text, "fuzz");
  if (!trace.ok()) return fuzz::check_error(trace.error().text());
  check_trace(trace.value());
  return 0;
}
