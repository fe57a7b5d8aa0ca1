#include "scenarios/step_report.h"

#include <algorithm>

#include "models/workload/layers.h"
#include "scenarios/measure_step.h"
#include "scenarios/training_result.h"

namespace railyard::scenarios {
namespace {

using sim::Duration;
using sim::Time;

// Ends of the iterations (0 = the start of the run), and other marks, over all ranks.
Time last_end(const StepReportInput& input, std::size_t iteration) {
  if (iteration == 0) return {};
  Time last{};
  for (const auto& rank : input.ranks)
    last = std::max(last, rank->host->gpu().fire_time(rank->marks[iteration - 1].end));
  return last;
}

Time mark_of(const models::DdpRank& rank, sim::GpuEventId event) {
  return rank.host->gpu().fire_time(event);
}

// The collectives of one bucket; a hook may make several.
struct BucketCalls {
  std::vector<const sim::Schedule*> schedules;
  std::vector<const sim::CallRecord*> records;
};

BucketCalls calls_of(const StepReportInput& input, std::size_t iteration, std::size_t bucket) {
  const models::DdpCollectives& calls =
      input.program.of_iteration(static_cast<std::int64_t>(iteration));
  const models::DdpRank::Marks& marks = input.ranks.front()->marks[iteration - 1];
  BucketCalls out;
  std::size_t call = marks.bucket_calls[bucket];
  for (const sim::PlanId plan : calls.buckets[bucket]) {
    if (!plan.valid()) continue;
    out.schedules.push_back(&input.runner.schedule(plan));
    out.records.push_back(&input.runner.records()[call++]);
  }
  return out;
}

BucketRow bucket_row(const StepReportInput& input, std::size_t iteration, std::size_t bucket,
                     Time origin) {
  const models::BucketList& buckets =
      input.program.plan.of_iteration(static_cast<std::int64_t>(iteration));
  const BucketCalls of_bucket = calls_of(input, iteration, bucket);
  BucketRow row;
  row.size = buckets[bucket].size;
  row.parameters = buckets[bucket].parameters.size();
  Time ready{};
  for (const auto& rank : input.ranks)
    ready = std::max(ready, mark_of(*rank, rank->marks[iteration - 1].bucket_ready[bucket]));
  row.ready = ready - origin;
  double moved = 0;  // GB/s times seconds
  double seconds = 0;
  sim::Bytes largest{};
  for (std::size_t c = 0; c < of_bucket.records.size(); ++c) {
    const sim::CallRecord& record = *of_bucket.records[c];
    const sim::Schedule& schedule = *of_bucket.schedules[c];
    if (c == 0) row.start = *std::ranges::min_element(record.enter) - origin;
    row.end = record.done - origin;
    row.sent += schedule.call.size;
    const Duration time =
        record.done - std::max(record.begin, *std::ranges::max_element(record.enter));
    moved += bus_bandwidth(schedule, time) * sim::to_seconds(time);
    seconds += sim::to_seconds(time);
    if (c > 0 && schedule.call.size <= largest) continue;
    largest = schedule.call.size;
    row.algorithm = schedule.call.algorithm;
    row.protocol = schedule.call.protocol;
    row.channels = schedule.channels;
  }
  row.busbw = seconds > 0 ? moved / seconds : 0;
  return row;
}

void find_exposed(const StepReportInput& input, std::size_t iteration, const Interval& step,
                  DdpResult& result) {
  const std::uint32_t rank = input.runner.group().front().rank.value();
  const std::vector<Interval> kernels = measure_step(input.trace, rank, step, result);
  for (std::size_t b = 0; b < result.buckets.size(); ++b) {
    for (const sim::CallRecord* record : calls_of(input, iteration, b).records)
      result.buckets[b].exposed +=
          sim::uncovered(Interval{record->enter.front(), record->end.front()}, kernels);
    const bool largest =
        result.exposing_bucket < 0 ||
        result.buckets[b].exposed >
            result.buckets[static_cast<std::size_t>(result.exposing_bucket)].exposed;
    if (result.buckets[b].exposed.count() > 0 && largest)
      result.exposing_bucket = static_cast<std::int32_t>(b);
  }
}

}  // namespace

DdpResult report_steps(const StepReportInput& input) {
  DdpResult result;
  const auto iterations = static_cast<std::size_t>(input.program.iteration_count);
  for (std::size_t i = 1; i <= iterations; ++i) {
    result.iterations.push_back(last_end(input, i) - last_end(input, i - 1));
    std::vector<sim::Bytes> sizes;
    for (const models::Bucket& bucket :
         input.program.plan.of_iteration(static_cast<std::int64_t>(i)))
      sizes.push_back(bucket.size);
    result.bucket_bytes.push_back(std::move(sizes));
  }
  result.step_time = last_end(input, iterations) - last_end(input, iterations - 1);
  result.rebuild_before_iteration = input.program.plan.rebuild_before_iteration;
  const models::DdpRank& first = *input.ranks.front();
  const models::DdpRank::Marks& marks = first.marks[iterations - 1];
  // Rank 0's own step: the last rank may end the previous iteration when rank 0 is in this one.
  const Time origin = iterations > 1 ? mark_of(first, first.marks[iterations - 2].end) : Time{};
  const Interval step{origin, mark_of(first, marks.end)};
  result.forward = mark_of(first, marks.forward_end) - step.start;
  result.backward = mark_of(first, marks.backward_end) - mark_of(first, marks.forward_end);
  result.after_backward = mark_of(first, marks.end) - mark_of(first, marks.backward_end);
  for (std::size_t b = 0; b < result.bucket_bytes.back().size(); ++b)
    result.buckets.push_back(bucket_row(input, iterations, b, step.start));
  find_exposed(input, iterations, step, result);
  const std::int64_t passes = input.program.accumulation;
  for (const models::DdpProgram::Launches& each : input.program.forward)
    result.compute_alone += models::alone(each.kernels) * passes;
  result.compute_alone +=
      models::alone(input.program.start.kernels) + models::alone(input.program.optimizer.kernels);
  if (passes > 1) result.compute_alone += models::alone(input.program.accumulate) * (passes - 1);
  for (const models::BucketHook& hook : input.program.hooks.back()) {
    for (const std::vector<sim::Kernel>& before : hook.before)
      result.compute_alone += models::alone(before);
    result.compute_alone += models::alone(hook.after) + models::alone(hook.last);
  }
  for (const auto* copies : {&input.program.copy_in, &input.program.copy_out})
    for (std::uint32_t p = 0; p < copies->size(); ++p)
      if (!std::ranges::binary_search(input.program.unused, p))
        result.compute_alone += (*copies)[p].alone;
  for (const models::DdpProgram::BackwardStep& each : input.program.backward)
    result.compute_alone += models::alone(each.kernels) * passes;
  if (!input.program.of_iteration(input.program.iteration_count).buffers.empty())
    result.compute_alone += models::alone(input.program.flatten_buffers) * 2;
  return result;
}

}  // namespace railyard::scenarios
