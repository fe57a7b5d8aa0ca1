// A communicator's plan (algorithms/nccl) in the terms that a log is compared in.
//
//   RAILYARD_ASSIGN(const CommPlan plan, make_comm_plan(inputs, env));
//   const Comparison comparison = compare(predict(plan, env), log, main_communicator(log));
//
// Transports: of connections between nodes the plan knows the network device (`net_hops`), not the
// relay or GPU Direct, and inside nodes nothing; whoever has the nodes' topologies can set
// NcclPrediction::transport to say more.
#pragma once

#include "algorithms/nccl/environment.h"
#include "algorithms/nccl/plan.h"
#include "tools/cli/nccl_compare.h"

namespace railyard::cli {

// The prediction keeps a copy of the plan.
NcclPrediction predict(const algorithms::nccl::CommPlan& plan,
                       const algorithms::nccl::Environment& environment);

}  // namespace railyard::cli
