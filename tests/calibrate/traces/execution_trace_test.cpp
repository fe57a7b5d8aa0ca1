// Execution traces: the samples' collectives, the older form, what is refused.
#include "calibrate/traces/execution_trace.h"

#include "calibrate/traces/gunzip.h"
#include "tests/calibrate/readers/support.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::calibrate;       // NOLINT
using railyard::sim::Collective;

TEST_CASE("ResNet-50 on two GPUs: fifteen all-reduces and six broadcasts, in three steps") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const std::string packed = text_of(sample_path("traces/param_resnet50"));
  const std::string text = gunzip(packed, "e.gz").value();
  CHECK(is_execution_trace(text));
  const ExecutionTrace trace = good(read_execution_trace, text, "e.json");
  CHECK(trace.schema == "1.1.0-chakra.0.0.4");
  CHECK(trace.nodes == 14392);
  CHECK(trace.ranks == 2);
  REQUIRE(trace.steps.size() == 3);
  CHECK(trace.steps[0].name == "ProfilerStep#4");
  CHECK(trace.steps[2].name == "ProfilerStep#6");
  const std::vector<std::int64_t> bytes{212480,   424,      8196000, 31502336,
                                        26255360, 26550272, 9724160};
  for (const ExecutionTrace::Step& step : trace.steps) {
    REQUIRE(step.last - step.first == 7);
    for (std::size_t i = 0; i < 7; ++i) {
      CHECK(trace.collectives[step.first + i].bytes == bytes[i]);
      CHECK(trace.collectives[step.first + i].collective ==
            (i < 2 ? Collective::broadcast : Collective::all_reduce));
    }
  }
  const TracedReplay replay = replay_step(trace, trace.steps[0]);
  CHECK(replay.forward.size() == 14);  // each is waited for
  CHECK(replay.notes.size() == 1);
}

TEST_CASE("the older form: name, size and type stand among the inputs") {
  const std::string text = R"({"schema":"1.0.2-chakra.0.0.4","nodes":[
    {"id":9,"name":"record_param_comms","inputs":{"values":[12,0,0,"wait",[],[],1],"types":["Int"]},
     "outputs":{"values":[]},"attrs":[]},
    {"id":5,"name":"record_param_comms","inputs":{"values":[[[14,15,0,3,2,"cuda:0"]],12,82,0,
     "all_gather",[],[],2],"types":["GenericList[Tensor(c10::Half)]"]},
     "outputs":{"values":[[[[19,20,0,3,2,"cuda:0"],[5,23,0,3,2,"cuda:0"]]]]},"attrs":[]}]})";
  const ExecutionTrace trace = good(read_execution_trace, text, "c.json");
  REQUIRE(trace.collectives.size() == 1);
  CHECK(trace.collectives[0].collective == Collective::all_gather);
  CHECK(trace.collectives[0].dtype == "Half");
  CHECK(trace.collectives[0].elements_in == 3);
  CHECK(trace.collectives[0].bytes == 12);
  CHECK(trace.collectives[0].group_size == 2);
  REQUIRE(trace.steps.size() == 1);
  CHECK(trace.steps[0].name == "whole trace");
}

TEST_CASE("execution traces that cannot be read: why") {
  CHECK(error_of(read_execution_trace, R"({"schema":"2.0.0","nodes":[{}]})", "x.json") ==
        "x.json: an execution trace of schema '2.0.0'; 1.0.x and 1.1.x are what can be read");
  CHECK(error_of(read_execution_trace, R"({"schema":"1.1.0","nodes":[]})", "x.json") ==
        "x.json: an execution trace without nodes");
  CHECK(error_of(read_execution_trace, "{\"schema\":\"1.1.0\",\"nodes\":[{\"id\":1,", "x.json")
            .find("the file ends in the middle of its JSON: cut off?") != std::string::npos);
}
