// Steps as replays: order, merging, waits, groups, and what is kept as a time.
#include "calibrate/traces/replay_step.h"

#include "calibrate/traces/gunzip.h"
#include "tests/calibrate/readers/support.h"
#include "tests/calibrate/traces/made_trace.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::tests::traces;   // NOLINT
using namespace railyard::calibrate;       // NOLINT
using railyard::sim::Collective;

namespace {

TracedReplay replay_of(const MadeTrace& made, const std::string& head = MadeTrace::kHead) {
  const GpuTrace trace = good(read_gpu_trace, made.text(head), "t.json");
  return replay_step(trace, find_steps(trace).steps.front());
}

std::string shape_of(const std::vector<ReplayItem>& items) {
  std::string text;
  for (const ReplayItem& item : items) {
    if (item.kind == ReplayKind::run) text += fmt::format("run{} ", item.run.count);
    if (item.kind == ReplayKind::call) text += item.call.collective ? "call " : "fixed ";
    if (item.kind == ReplayKind::wait) text += fmt::format("wait{} ", item.waits_for);
    if (item.kind == ReplayKind::synchronize) text += "sync ";
  }
  return text;
}

}  // namespace

TEST_CASE("replay: runs between calls, waits outside of c10d, host waits") {
  MadeTrace made;
  made.range(0, 500, "ProfilerStep#1");
  made.kernel(10, 15, 5, "gemm").kernel(20, 25, 5, "relu");
  made.op(40, 20, "c10d::allreduce_").host(45, 1, "cudaStreamWaitEvent");  // c10d's own
  made.collective(50, 60, 30, "allreduce", 1000);
  made.kernel(100, 105, 50, "gemm");
  made.host(150, 1, "cudaStreamWaitEvent");  // for the call
  made.host(160, 1, "cudaStreamWaitEvent");  // nothing is open any more
  made.kernel(200, 205, 10, "relu");
  made.host(220, 100, "cudaStreamSynchronize");
  made.kernel(400, 405, 10, "relu");
  const TracedReplay replay = replay_of(made);
  CHECK(shape_of(replay.forward) == "run2 call run1 wait1 run1 sync run1 ");
  CHECK(replay.backward.empty());
  CHECK(replay.forward[0].run.before_ns ==
        15'000);  // both kernels end where they did: 10 after each
  CHECK(replay.forward[0].run.host_ns() == 20'000);
  CHECK(replay.forward[0].run.kernel_ns == 10'000);
  CHECK(replay.forward[1].run.before_ns == 30'000);
  CHECK(replay.forward[1].call.bytes == 4000);
  CHECK(replay.forward[1].call.collective == Collective::all_reduce);
  CHECK(replay.forward[4].run.host_ns() == 120'000);  // 200 - 100, and 20 before the wait
  CHECK(replay.forward[6].run.host_ns() == 180'000);  // 400 - 320, and 100 to the end
  CHECK(replay.groups.size() == 1);
  CHECK(replay.groups[0].name.empty());  // two ranks of two: all of them
  CHECK(replay.notes.empty());
}

TEST_CASE("replay: forward, backward and the rest by autograd's functions") {
  MadeTrace made;
  made.range(0, 300, "ProfilerStep#1").kernel(10, 15, 5, "gemm");
  made.backward(50, 20, "AddmmBackward0", 1).kernel(55, 60, 5, "gemm");
  made.backward(80, 20, "MulBackward0", 0).kernel(85, 90, 5, "mul");
  made.kernel(150, 155, 5, "adam");
  const TracedReplay replay = replay_of(made);
  CHECK(shape_of(replay.forward) == "run1 ");
  CHECK(shape_of(replay.backward) == "run2 ");
  CHECK(shape_of(replay.after_backward) == "run1 ");
  CHECK(replay.forward[0].compute_bound);
  CHECK_FALSE(replay.after_backward[0].compute_bound);
}

TEST_CASE("replay: other groups, other streams, calls of unknown size") {
  MadeTrace made;
  made.range(0, 300, "ProfilerStep#1").kernel(10, 15, 50, "gemm");
  made.copy(20, 25, 5, 4096, 9);
  made.collective(30, 35, 10, "allreduce", 10, "7", "[0, 4]", 2);
  made.collective(40, 50, 10, "send", 10);
  const TracedReplay replay =
      replay_of(made, R"("schemaVersion":1,"distributedInfo":{"rank":0,"world_size":8})");
  CHECK(shape_of(replay.forward) == "run1 run1 call fixed run0 wait1 wait2 ");
  CHECK(replay.forward[1].stream == 1);
  CHECK(replay.streams == std::vector<std::string>{"compute", "stream 9"});
  REQUIRE(replay.groups.size() == 2);
  CHECK(replay.groups[0].name == "7");
  CHECK(replay.groups[0].ranks == "[0, 4]");
  CHECK(replay.forward[3].call.fixed_ns == 10'000);
  REQUIRE(replay.notes.size() == 3);
  CHECK(replay.notes[0] == "send: of no known collective or size, kept as a time");
  CHECK(replay.notes[1].find("no cudaStreamWaitEvent") != std::string::npos);
  CHECK(replay.notes[2].find("1 streams beside the compute stream") != std::string::npos);
}

TEST_CASE("ResNet-50's step as a replay: seven calls, each waited for in its order") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const std::string packed = text_of(sample_path("traces/hta_resnet50"));
  const GpuTrace trace = good(read_gpu_trace, gunzip(packed, "r.gz").value(), "r.json");
  const TraceSteps found = find_steps(trace);
  const TracedReplay replay = replay_step(trace, found.steps[0]);
  CHECK(shape_of(replay.forward) == "run1 call run1 call wait1 run106 wait2 run348 ");
  std::int64_t host = 0, launches = 0, waits = 0, calls = 0;
  for (const auto* list : {&replay.forward, &replay.backward, &replay.after_backward})
    for (const ReplayItem& item : *list) {
      host += item.run.host_ns();
      launches += static_cast<std::int64_t>(item.run.count);
      waits += item.kind == ReplayKind::wait ? 1 : 0;
      calls += item.kind == ReplayKind::call ? 1 : 0;
    }
  CHECK(launches + calls == 1258);
  CHECK(calls == 7);
  CHECK(waits == 7);
  CHECK(host + replay.waited_ns == found.steps[0].duration_ns());
}
