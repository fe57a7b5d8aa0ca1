// Execution traces of PyTorch (ExecutionTraceObserver), which Chakra's converter reads: a JSON
// graph of operators without any times. What is taken from it: the collectives in program order
// with their sizes, types and groups.
//
//   early 1.0.x         names, sizes and groups stand among the inputs of record_param_comms
//   later, 1.1.x        and as attributes of it: collective_name, in_msg_nelems, dtype, pg_name,
//   ...
//
// Node ids ascend in the order in which operators began. Chakra's own protobuf files (.et) are not
// read: an error says so. Cost: the whole document in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/readers/kineto.h"
#include "calibrate/traces/replay_step.h"
#include "sim/result.h"

namespace railyard::calibrate {

struct ExecutionTrace {
  std::string source, schema;
  std::size_t nodes = 0;
  std::vector<KinetoCollective> collectives;  // in program order; no times
  struct Step {
    std::string name;
    std::size_t first = 0, last = 0;  // collectives, [first, last)
  };
  std::vector<Step> steps;  // ProfilerStep#k; at least one: "whole trace"
  std::int64_t ranks = -1;  // of the largest group
  std::vector<std::string> notes;
};

bool is_execution_trace(std::string_view text);

// Errors: not JSON (line, column), an unknown schema, no nodes.
sim::Result<ExecutionTrace> read_execution_trace(std::string_view text, std::string_view name);

// The collectives of a step back to back, each waited for, without any time between them.
TracedReplay replay_step(const ExecutionTrace& trace, const ExecutionTrace::Step& step);

}  // namespace railyard::calibrate
