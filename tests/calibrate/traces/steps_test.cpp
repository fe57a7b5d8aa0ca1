// Steps: periods, ProfilerStep, what overlaps what; the ResNet-50 sample against figures that a few
// lines of Python gave.
#include "calibrate/traces/steps.h"

#include "calibrate/traces/gunzip.h"
#include "tests/calibrate/readers/support.h"
#include "tests/calibrate/traces/made_trace.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::tests::traces;   // NOLINT
using namespace railyard::calibrate;       // NOLINT

namespace {

GpuTrace trace_of(const MadeTrace& made) { return good(read_gpu_trace, made.text(), "t.json"); }

}  // namespace

TEST_CASE("period of a sequence: the shortest that repeats to the end, twice at least") {
  CHECK(period_of({1, 2, 3, 1, 2, 3}) == 3);
  CHECK(period_of({1, 2, 3, 1, 2, 3, 1}) == 3);
  CHECK(period_of({1, 1, 1, 1}) == 1);
  CHECK(period_of({1, 2, 3, 1, 2}) == 0);
  CHECK(period_of({1, 2, 3, 4}) == 0);
  CHECK(period_of({1, 2, 1, 2, 3}) == 0);
  CHECK(period_of({}) == 0);
  CHECK(period_of({5}) == 0);
}

TEST_CASE("a step holds what was launched in it, whenever that ran") {
  MadeTrace made;
  made.range(0, 100, "ProfilerStep#1").range(110, 90, "ProfilerStep#2");
  made.kernel(10, 12, 30, "gemm");                 // 12..42
  made.collective(20, 30, 40, "allreduce", 1000);  // 30..70: 12 beside the gemm
  made.kernel(95, 115, 10, "late");                // step 1, though it ran in step 2
  made.kernel(120, 130, 20, "gemm");
  const TraceSteps found = find_steps(trace_of(made));
  CHECK(found.source == StepSource::profiler);
  REQUIRE(found.steps.size() == 2);
  const TraceStep& first = found.steps[0];
  CHECK(first.name == "ProfilerStep#1");
  CHECK(first.duration_ns() == 110'000);  // to the start of the next
  CHECK(first.last - first.first == 3);
  CHECK(first.compute_ns == 40'000);
  CHECK(first.communication_ns == 40'000);
  CHECK(first.overlap_ns == 12'000);
  CHECK(first.exposed_ns == 28'000);
  CHECK(first.idle_ns == 110'000 - 68'000);
  CHECK(found.steps[1].duration_ns() == 90'000);
  CHECK(found.steps[1].compute_ns == 20'000);
}

TEST_CASE("without ProfilerStep: the pattern of activities, without a pattern: the whole") {
  MadeTrace made;
  for (int i = 0; i < 3; ++i) {
    made.kernel(100 * i, 100 * i + 5, 10, "gemm").kernel(100 * i + 20, 100 * i + 25, 10, "relu");
    made.collective(100 * i + 40, 100 * i + 50, 10, "allreduce", 64);
  }
  made.kernel(300, 305, 10, "gemm");  // a fourth that is not whole
  const TraceSteps found = find_steps(trace_of(made));
  CHECK(found.source == StepSource::pattern);
  REQUIRE(found.steps.size() == 3);
  CHECK(found.steps[1].name == "iteration 2");
  CHECK(found.steps[1].duration_ns() == 100'000);
  CHECK(found.steps[2].duration_ns() == 100'000);

  MadeTrace once;
  once.kernel(0, 5, 10, "gemm").kernel(20, 25, 10, "relu");
  const TraceSteps whole = find_steps(trace_of(once));
  CHECK(whole.source == StepSource::whole);
  REQUIRE(whole.steps.size() == 1);
  CHECK(whole.steps[0].duration_ns() == 35'000);
}

TEST_CASE("the typical step: of median duration, among those with the usual collectives") {
  MadeTrace made;
  const auto step = [&](int number, double at, double duration, int calls) {
    made.range(at, duration, "ProfilerStep#" + std::to_string(number));
    for (int c = 0; c < calls; ++c) made.collective(at + 1 + c, at + 10 + c, 1, "allreduce", 64);
  };
  step(1, 0, 500, 1);  // the first iteration reduces everything at once
  step(2, 500, 120, 3);
  step(3, 620, 100, 3);
  step(4, 720, 110, 3);
  const GpuTrace trace = trace_of(made);
  const TraceSteps found = find_steps(trace);
  CHECK(found.typical(trace).name == "ProfilerStep#4");
}

TEST_CASE("collectives: one row for each kind, size and group, busbw from the shortest") {
  MadeTrace made;
  made.collective(0, 0, 10, "allreduce", 1000).collective(20, 20, 30, "allreduce", 1000);
  made.collective(60, 60, 8, "allreduce", 1000).collective(80, 80, 5, "_allgather_base", 500);
  const auto rows = collective_rows(trace_of(made));
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].count == 3);
  CHECK(rows[0].bytes == 4000);
  CHECK(rows[0].total_ns == 48'000);
  CHECK(rows[0].shortest_ns == 8'000);
  CHECK(rows[0].median_ns == 10'000);
  CHECK(rows[0].busbw == doctest::Approx(0.5));  // 4000 B / 8 us, factor 2 (2-1) / 2
  CHECK(rows[1].bytes == 4000);                  // what comes out of it
  CHECK(rows[1].busbw == doctest::Approx(0.4));  // factor 1/2
}

TEST_CASE("ResNet-50 on two A100: steps as Python finds them") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const std::string packed = text_of(sample_path("traces/hta_resnet50"));
  const GpuTrace trace = good(read_gpu_trace, gunzip(packed, "r.gz").value(), "r.json");
  CHECK(trace.activities.size() == 3774);
  CHECK(trace.unlaunched == 0);
  CHECK(trace.functions == 1026);
  CHECK(trace.hollow == 0);
  CHECK(trace.sampled().empty());
  const TraceSteps found = find_steps(trace);
  CHECK(found.source == StepSource::profiler);
  REQUIRE(found.steps.size() == 3);
  struct Expected {
    std::int64_t duration, compute, communication, overlap, exposed, idle;
  };
  const Expected expected[] = {{222503285, 39391994, 11989021, 1942094, 10046927, 173064364},
                               {219786430, 39296837, 12300029, 1867940, 10432089, 170057504},
                               {224936243, 39620514, 22587443, 3875790, 18711653, 166604076}};
  for (std::size_t i = 0; i < 3; ++i) {
    const TraceStep& step = found.steps[i];
    CHECK(step.last - step.first == 1258);
    CHECK(step.duration_ns() == expected[i].duration);
    CHECK(step.compute_ns == expected[i].compute);
    CHECK(step.communication_ns == expected[i].communication);
    CHECK(step.overlap_ns == expected[i].overlap);
    CHECK(step.exposed_ns == expected[i].exposed);
    CHECK(step.idle_ns == expected[i].idle);
  }
  CHECK(found.typical(trace).name == "ProfilerStep#4");
  CHECK(collective_rows(trace).size() == 7);
}

TEST_CASE("a sampled trace is known by what it lacks") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const std::string packed = text_of(sample_path("traces/hta_128rank_sampled"));
  const GpuTrace trace = good(read_gpu_trace, gunzip(packed, "s.gz").value(), "s.json");
  CHECK(trace.sampled() == "43 of 314 calls of autograd's engine lack the function they called");

  MadeTrace made;
  made.kernel(-1, 5, 10, "gemm").kernel(20, 25, 10, "relu");
  CHECK(trace_of(made).sampled() == "1 of 2 activities of the GPU have no launch in the trace");
}

TEST_CASE("traces that cannot be read: why") {
  MadeTrace made;
  made.kernel(0, 5, 10, "gemm");
  CHECK(error_of(read_gpu_trace, made.text(R"("schemaVersion":7)"), "t.json") ==
        "t.json: a trace of schemaVersion 7; version 1 is what can be read");
  const std::string whole = made.text();
  CHECK(error_of(read_gpu_trace, whole.substr(0, whole.size() - 9), "t.json")
            .find("the trace ends in the middle of its JSON: cut off?") != std::string::npos);
  CHECK(error_of(read_gpu_trace, MadeTrace().op(0, 1, "aten::add").text(), "t.json") ==
        "t.json: nothing in this trace ran on a GPU (no kernel, no copy): was "
        "ProfilerActivity.CUDA left out?");
}
