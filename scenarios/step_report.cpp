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

BucketRow bucket_row(const StepReportInput& input, std::size_t iteration, std::size_t bucket,
                     Time origin) {
  const models::BucketList& buckets =
      input.program.plan.of_iteration(static_cast<std::int64_t>(iteration));
  const models::DdpCollectives& calls =
      input.program.of_iteration(static_cast<std::int64_t>(iteration));
  const sim::Schedule& schedule = input.runner.schedule(calls.buckets[bucket]);
  const models::DdpRank::Marks& marks = input.ranks.front()->marks[iteration - 1];
  const sim::CallRecord& record = input.runner.records()[marks.first_bucket_call + bucket];
  BucketRow row;
  row.size = buckets[bucket].size;
  row.parameters = buckets[bucket].parameters.size();
  Time ready{};
  for (const auto& rank : input.ranks)
    ready = std::max(ready, mark_of(*rank, rank->marks[iteration - 1].bucket_ready[bucket]));
  row.ready = ready - origin;
  row.start = *std::ranges::min_element(record.enter) - origin;
  row.end = record.done - origin;
  row.algorithm = schedule.call.algorithm;
  row.protocol = schedule.call.protocol;
  row.channels = schedule.channels;
  const Time last_entry = std::max(record.begin, *std::ranges::max_element(record.enter));
  row.busbw = bus_bandwidth(schedule, record.done - last_entry);
  return row;
}

void find_exposed(const StepReportInput& input, std::size_t iteration, const Interval& step,
                  DdpResult& result) {
  const std::uint32_t rank = input.runner.group().front().rank.value();
  const std::vector<Interval> kernels = measure_step(input.trace, rank, step, result);
  const models::DdpRank::Marks& marks = input.ranks.front()->marks[iteration - 1];
  for (std::size_t b = 0; b < result.buckets.size(); ++b) {
    const sim::CallRecord& record = input.runner.records()[marks.first_bucket_call + b];
    const Interval call{record.enter.front(), record.end.front()};
    result.buckets[b].exposed = sim::uncovered(call, kernels);
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
  for (const auto* hook : {&input.program.compress, &input.program.decompress})
    if (!hook->empty()) result.compute_alone += models::alone(hook->back());
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
