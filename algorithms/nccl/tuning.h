// NCCL's cost model: latency (microseconds) and algorithm bandwidth (GB/s) of every (function,
// algorithm, protocol), and threads per channel. It decides what is chosen, not how long it takes.
//
//   time = latency x operations + bytes / (1000 x bandwidth)
//
// Bandwidth: channels of the search x bandwidth per channel, capped per protocol and architecture,
// then turned from bus into algorithm bandwidth (ring n/steps, others one half). Latency: a base
// plus the hops of the algorithm inside and between nodes. The terms stand in tuning.cpp.
//
// Arithmetic is NCCL's, single precision with its double constants, so that the last digit agrees.
// Source: NCCL 2.30.7 graph/tuning.cc; older formulas: ModelRules in constants.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/nccl/comm.h"
#include "algorithms/nccl/constants.h"
#include "algorithms/nccl/environment.h"
#include "algorithms/nccl/rules.h"

namespace railyard::algorithms::nccl {

struct Tuning {
  PerFunction<float> latency{};
  PerFunction<float> bandwidth{};  // 0 = cannot be chosen
  PerAlgorithm<std::int32_t> max_threads{};
  PerAlgorithm<std::int64_t> thread_thresholds{};  // bytes per thread worth another thread
  TuningConstants constants;                       // those used, a tuner's edits included
  std::vector<std::string> notes;
};

struct TuningInputs {
  TuningConstants constants;
  Lists lists;
};
Tuning tune(const CommInfo& info, const TuningInputs& inputs, const Environment& env);

struct CostQuestion {
  Function function = Function::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  std::uint64_t bytes = 0;  // AllGather, ReduceScatter: of all ranks
  std::int32_t pipe_ops = 1;
};
// Microseconds; -1 = cannot be chosen.
float model_time(const CommInfo& info, const Tuning& tuning, const CostQuestion& question);

}  // namespace railyard::algorithms::nccl
