// The AllReduces of a tensor-parallel group as a time by size, simulated apart from the run. Sizes
// up to 4 MiB (decode's) are simulated each; of longer ones 16 per octave, with straight lines
// between them, since a prefill batch may have any length.
#pragma once

#include <map>
#include <optional>

#include "scenarios/run_parts.h"

namespace railyard::scenarios {

class KvReductions {
 public:
  KvReductions(RunContext& context, Communication& communication)
      : context_(&context), communication_(&communication) {}

  sim::Duration operator()(sim::Bytes size);
  // Why a call could not be made; times are zero then.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  sim::Duration at(sim::Bytes size);
  [[nodiscard]] Result<sim::Duration> simulate(sim::Bytes size);

  RunContext* context_;
  Communication* communication_;
  std::map<sim::Bytes, sim::Duration> times_;
  std::optional<Error> failure_;
};

}  // namespace railyard::scenarios
