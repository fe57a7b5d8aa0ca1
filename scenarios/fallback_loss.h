// What a host that lacks InfiniBand, GPUDirect or peer-to-peer costs: the same job with all of it.
#pragma once

#include <optional>
#include <string>

#include "scenarios/run.h"

namespace railyard::scenarios {

// What NCCL is kept from using, by the scenario's `nccl:` keys or its variables, in words; empty if
// nothing.
std::string missing_transports(const NcclSetup& setup);

// Runs the scenario again with nothing missing and says the difference; nothing where nothing is
// missing or that run does not end. Cost: one more run.
std::optional<std::string> fallback_loss(const Scenario& scenario, const RunLimits& limits,
                                         sim::Duration with_fallback);

}  // namespace railyard::scenarios
