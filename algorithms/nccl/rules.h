// Which (function, algorithm, protocol) may be chosen at all: NCCL_ALGO and NCCL_PROTO, and NCCL's
// own rules about hardware.
//
//   NCCL_ALGO, NCCL_PROTO   entry[;entry...]; entry = [function:]list; list = [^]name[,name...]
//
// Names in any case; ^ = all but these. Only the first entry may lack the function and then sets
// all of them; later entries override one each. Naming LL128 forces it past the hardware rule.
//
//   NCCL_ALGO="ring,tree;allreduce:tree"      NCCL_PROTO="^ll128"
//
// Source: NCCL 2.30.7 graph/tuning.cc (parseList and the end of ncclTopoTuneModel).
#pragma once

#include "algorithms/nccl/comm.h"
#include "algorithms/nccl/constants.h"
#include "algorithms/nccl/environment.h"
#include "algorithms/nccl/names.h"
#include "sim/result.h"

namespace railyard::algorithms::nccl {

enum class Enabled : std::uint8_t { no, yes, where_safe };

struct Lists {
  std::array<std::array<Enabled, kAlgorithms>, kFunctions> algorithms{};
  std::array<std::array<Enabled, kProtocols>, kFunctions> protocols{};
};

// Errors as NCCL's invalid usage, with the variable as the place: an unknown function, algorithm or
// protocol; a later entry without a function.
sim::Result<Lists> parse_lists(const Environment& env);

// Whether NCCL would use PAT on this communicator (NCCL_PAT_ENABLE).
bool pat_enabled(const CommInfo& info, const ModelRules& rules, const Environment& env);

// Sets the bandwidth of what may not be chosen to 0.
void apply_rules(const CommInfo& info, const ModelRules& rules, const Lists& lists,
                 const Environment& env, PerFunction<float>& bandwidth);

}  // namespace railyard::algorithms::nccl
