// A communicator's plan: everything NCCL decides when it is created. Built once from what the
// searches found, never changed; selection.h answers calls from it.
//
//   CommInputs inputs;                       // comm.h: node kinds with their graphs, nodes,
//   plugins RAILYARD_ASSIGN(const CommPlan plan, make_comm_plan(inputs, env)); plan.info.channels;
//   plan.connections.rings; plan.tuning.bandwidth;
#pragma once

#include <string>
#include <vector>

#include "algorithms/nccl/comm.h"
#include "algorithms/nccl/connect.h"
#include "algorithms/nccl/tuning.h"

namespace railyard::algorithms::nccl {

struct CommPlan {
  CommInputs inputs;
  CommInfo info;
  Connections connections;
  Tuning tuning;
  std::string lists_text;          // NCCL_ALGO and NCCL_PROTO as given, for error messages
  std::vector<std::string> notes;  // what is approximated, e.g. the version's constants
};

// Errors: those of merge_nodes() and parse_lists().
sim::Result<CommPlan> make_comm_plan(const CommInputs& inputs, const Environment& env);

}  // namespace railyard::algorithms::nccl
