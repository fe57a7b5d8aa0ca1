// PyTorch profiler traces: samples against figures that a few lines of Python gave, and the rules
// of merging on made-up traces.
#include <doctest/doctest.h>

#include <array>
#include <cstdio>

#include "calibrate/readers/kineto.h"
#include "calibrate/readers/kineto_events.h"
#include "tests/calibrate/readers/support.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::calibrate;       // NOLINT
using railyard::sim::Collective;

namespace {

std::string unpacked(const std::string& path) {
  std::string text;
  std::FILE* pipe = popen(("gzip -dc '" + path + "'").c_str(), "r");  // NOLINT: a test's own file
  REQUIRE(pipe != nullptr);
  std::array<char, 65536> block{};
  for (std::size_t size; (size = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
    text.append(block.data(), size);
  pclose(pipe);
  return text;
}

std::string kernel(const std::string& name, const std::string& ts, const std::string& dur,
                   const std::string& args) {
  return R"({"ph":"X","cat":"kernel","name":")" + name + R"(","pid":0,"tid":7,"ts":)" + ts +
         R"(,"dur":)" + dur + R"(,"args":{"device":0,"stream":7,)" + args + "}}";
}
std::string allreduce(const std::string& ts, const std::string& dur, int elements,
                      const std::string& more = "") {
  return kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", ts, dur,
                R"("Collective name":"allreduce","In msg nelems":)" + std::to_string(elements) +
                    R"(,"Out msg nelems":)" + std::to_string(elements) +
                    R"(,"Group size":2,"dtype":"Float","In split size":"[]",)"
                    R"("Process Group Name":"0","Process Group Ranks":"[0, 1]")" +
                    more);
}
std::string trace(int rank, const std::string& events) {
  return R"({"deviceProperties":[{"id":0,"name":"NVIDIA H100"}],"distributedInfo":{"backend":"nccl","rank":)" +
         std::to_string(rank) + R"(,"world_size":2},"traceEvents":[)" + events + "]}";
}
KinetoTrace read(const std::string& text, std::string_view name = "rank.json") {
  return good(read_kineto, text, name);
}

}  // namespace

TEST_CASE("kineto samples: ResNet-50 on two A100") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const KinetoTrace log = read(unpacked(sample_path("traces/hta_resnet50")));
  CHECK(log.rank == 0);
  CHECK(log.world_size == 2);
  CHECK(log.nccl == "2.17.1");
  CHECK(log.devices.size() == 8);
  CHECK(log.devices[0] == "NVIDIA A100-PG509-200");
  CHECK(log.events == 40573);
  CHECK(log.compute.count == 2679);
  CHECK(log.compute.ns == 115655847);
  CHECK(log.communication.count == 21);
  CHECK(log.communication.ns == 46876493);
  CHECK(log.copies.count == 1074);
  CHECK(log.copies.ns == 2653498);
  REQUIRE(log.steps.size() == 3);
  CHECK(log.steps[1].name == "ProfilerStep#5");
  CHECK(log.steps[1].end_ns - log.steps[1].start_ns == 219726905);
  REQUIRE(log.collectives.size() == 21);
  const KinetoCollective& first = log.collectives[0];
  CHECK(first.name == "broadcast");
  CHECK(first.bytes == 53120 * 4);
  CHECK(first.start_ns == 4458676423385774);
  CHECK(first.end_ns - first.start_ns == 30975);
  CHECK(log.collectives[1].bytes == 53 * 8);
  CHECK(log.collectives[2].collective == Collective::all_reduce);
  CHECK(log.collectives[2].bytes == 8196000);  // the first bucket of ResNet-50
  CHECK(log.collectives[2].group_ranks == "[0, 1]");
  CHECK(log.collectives[2].group_size == 2);
  CHECK(log.collectives[2].stream == 40);
  std::int64_t bytes = 0;
  for (const KinetoCollective& call : log.collectives)
    if (call.collective == Collective::all_reduce) bytes += *call.bytes;
  CHECK(bytes == 306684384);
  CHECK(notes_text(log.notes).empty());
  const KinetoMerge alone = merge_kineto({log});
  CHECK(alone.calls.size() == 21);
  CHECK(notes_text(alone.notes) ==
        "0: group 0 has 2 ranks, 1 of them are here: durations may contain waiting\n");
  CHECK(measurements(alone).size() == 21);
}

TEST_CASE("kineto samples: an older trace without sizes") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const KinetoTrace log = read(unpacked(sample_path("traces/hta_128rank")));
  CHECK(log.world_size == 128);
  CHECK(log.compute.count == 1144);
  CHECK(log.compute.ns == 210320000);
  CHECK(log.communication.ns == 396199000);
  CHECK(log.copies.count == 50);
  CHECK(log.collectives.size() == 10);
  CHECK_FALSE(log.collectives[0].collective.has_value());  // SendRecv kernels: all_to_all or p2p
  CHECK(log.collectives[0].kernel == "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t");
  CHECK(measurements(merge_kineto({log})).empty());
}

TEST_CASE("kineto: the shortest of the ranks, call by call") {
  // The second call: rank 1 came late, so that rank 0 waited.
  const KinetoTrace zero =
      read(trace(0, allreduce("100", "50.5", 1000) + "," + allreduce("200.125", "900", 2000)),
           "zero.json");
  const KinetoTrace one =
      read(trace(1, allreduce("7000300", "40", 2000) + "," + allreduce("7000100", "60", 1000)),
           "one.json");
  const KinetoMerge merged = merge_kineto({zero, one});
  CHECK(notes_text(merged.notes).empty());
  REQUIRE(merged.calls.size() == 2);
  CHECK(merged.calls[0].shortest_ns == 50500);
  CHECK(merged.calls[0].longest_ns == 60000);
  CHECK(merged.calls[0].traces == 2);
  CHECK(merged.calls[1].shortest_ns == 40000);
  CHECK(merged.calls[1].source == "one.json");
  const auto all = measurements(merged);
  REQUIRE(all.size() == 2);
  CHECK(all[1].us == 40);
  CHECK(all[1].bytes == 8000);
  CHECK(all[1].ranks == 2);
  CHECK(all[1].devices == std::vector<std::string>{"NVIDIA H100"});
}

TEST_CASE("kineto: calls that do not match are left out, and said") {
  const KinetoTrace zero =
      read(trace(0, allreduce("100", "50", 1000) + "," + allreduce("200", "90", 2000) + "," +
                        allreduce("300", "90", 3000)));
  const KinetoTrace one =
      read(trace(1, allreduce("100", "50", 1000) + "," + allreduce("200", "90", 9999)));
  const KinetoMerge merged = merge_kineto({zero, one});
  CHECK(merged.calls.size() == 1);
  CHECK(mentions(merged.notes, "between 2 and 3 calls on its ranks; the first 2 are compared"));
  CHECK(mentions(merged.notes,
                 "1 calls differ between ranks and are left out, first allreduce of "
                 "2000 x Float"));
  CHECK(mentions(merge_kineto({zero, zero}).notes, "two traces of rank 0"));
  // PyTorch's own numbers decide where they are there.
  const KinetoTrace numbered = read(trace(1, allreduce("100", "30", 2000, R"(,"Seq":2)") + "," +
                                                 allreduce("200", "20", 1000, R"(,"Seq":1)")));
  const KinetoTrace straight = read(trace(0, allreduce("100", "30", 1000, R"(,"Seq":1)") + "," +
                                                 allreduce("200", "20", 2000, R"(,"Seq":2)")));
  const KinetoMerge sorted = merge_kineto({numbered, straight});
  REQUIRE(sorted.calls.size() == 2);
  CHECK(sorted.calls[0].shortest_ns == 20000);
  CHECK(sorted.calls[0].call.elements_in == 1000);
}

TEST_CASE("kineto: whole buffers, uneven splits, the operator that describes a kernel") {
  const auto one = [](const std::string& events) {
    const KinetoTrace log = read(trace(0, events));
    REQUIRE(log.collectives.size() == 1);
    return log.collectives[0];
  };
  const auto args = [](const std::string& name, const std::string& split) {
    return R"("Collective name":")" + name +
           R"(","In msg nelems":100,"Out msg nelems":800,"Group size":8,"dtype":"BFloat16","In split size":")" +
           split + R"(","External id":5)";
  };
  CHECK(one(kernel("ncclDevKernel_AllGather_RING_LL(x)", "1", "2", args("_allgather_base", "[]")))
            .bytes == 1600);
  CHECK(one(kernel("ncclDevKernel_ReduceScatter(x)", "1", "2", args("_reduce_scatter_base", "[]")))
            .bytes == 200);
  const KinetoCollective uneven =
      one(kernel("ncclDevKernel_SendRecv(x)", "1", "2", args("all_to_allv", "[60, 40]")));
  CHECK(uneven.collective == Collective::all_to_all);
  CHECK(uneven.uneven);
  CHECK_FALSE(one(kernel("ncclDevKernel_SendRecv(x)", "1", "2", args("send", "[]"))).collective);
  // The operator stands behind the kernel in the file; both have External id 5.
  const KinetoCollective joined =
      one(kernel("ncclKernel_AllReduce_RING_LL_Sum_half(x)", "1", "2", R"("External id":5)") +
          R"(,{"ph":"X","cat":"cpu_op","name":"record_param_comms","ts":0,"dur":1,"args":{)" +
          args("allreduce", "[]") + "}}");
  CHECK(joined.bytes == 200);
  CHECK(joined.group_size == 8);
  CHECK(joined.kernel == "ncclKernel_AllReduce_RING_LL_Sum_half");
  const KinetoTrace bare =
      read(trace(0, kernel("ncclKernel_AllReduce_RING_LL(x)", "1", "2", R"("queued":0)")));
  CHECK(bare.collectives.at(0).collective == Collective::all_reduce);
  CHECK(mentions(bare.notes, "1 of 1 collectives without a size"));
}

TEST_CASE("kineto: times keep their digits, odd events") {
  TraceEvent event;
  event.values["a"] = "4458676423385.774";
  event.values["b"] = "1682725898240982";
  event.values["c"] = "-1.5";
  event.values["d"] = "1.5e3";
  event.values["e"] = "99999999999999999999";
  event.values["f"] = "12.3456789";
  CHECK(event.nanoseconds("a") == 4458676423385774);
  CHECK(event.nanoseconds("b") == 1682725898240982000);
  CHECK(event.nanoseconds("c") == -1500);
  CHECK(event.nanoseconds("d") == 1500000);
  CHECK_FALSE(event.nanoseconds("e").has_value());
  CHECK(event.nanoseconds("f") == 12345);
  CHECK_FALSE(event.nanoseconds("missing").has_value());
  const KinetoTrace log = read(trace(
      0,
      R"({"ph":"M","name":"x"},[1,[2,{"a":3}]],7,{"ph":"X","cat":"kernel","name":"k","dur":5},)" +
          kernel("gemm", "1", "2", R"("grid":[1,2,{"x":3}])")));
  CHECK(log.events == 3);
  CHECK(log.compute.count == 1);
  CHECK(mentions(log.notes, "no NCCL kernel"));
  CHECK(mentions(log.notes, "1 events without a time"));
}

TEST_CASE("kineto: errors") {
  CHECK(error_of(read_kineto, "\x1f\x8b\x08").find("compressed by gzip; unpack it first") !=
        std::string::npos);
  const std::string whole = trace(0, allreduce("1", "2", 3));
  CHECK(error_of(read_kineto, whole.substr(0, whole.size() - 20))
            .find("the trace ends in the middle of its JSON") != std::string::npos);
  CHECK(error_of(read_kineto, "{\"traceEvents\": [\n oops]}") ==
        "test.log:2:2: not JSON here: \"oops]}\"");
  CHECK(error_of(read_kineto, "{\"schema\": \"1\", \"nodes\": []}") ==
        "test.log:1: this is an execution trace (PyTorch, Chakra), which holds no times "
        "(\"nodes\"), expected a trace of the PyTorch profiler");
}
