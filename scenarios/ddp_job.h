// What a scenario's `ddp:` block says to the model of DistributedDataParallel.
#pragma once

#include <string>

#include "models/ddp/step.h"
#include "models/nn/network.h"
#include "scenarios/bind.h"
#include "scenarios/scenario.h"
#include "sim/collective.h"

namespace railyard::scenarios {

// For a job of `ranks` ranks. Error: join names others.
Result<models::DdpOptions> ddp_options(const DdpSpec& spec, std::size_t ranks);

// A collective of DDP with the scenario's choice. PyTorch passes one buffer for input and output.
Result<sim::CollectiveCall> choose_ddp(const Scenario& scenario, const Communication& world,
                                       const models::DdpCall& call);

// A sentence if what a GPU must hold all the time is more than its memory; else empty. Activations
// come on top and are not counted.
std::string memory_warning(const models::NeuralNetwork& network, const models::DdpOptions& options,
                           sim::Bytes capacity);

}  // namespace railyard::scenarios
