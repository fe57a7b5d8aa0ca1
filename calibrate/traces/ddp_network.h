// A traced DDP step as a network of its own, and the bucket limits that explain its buckets.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "calibrate/traces/ddp_step.h"
#include "models/ddp/buckets.h"
#include "models/nn/network.h"

namespace railyard::calibrate {

// Parameters in the reverse of the gradients' arrival, as if registered so; layers with the
// measured times. Error: a type of gradients that no network has.
sim::Result<models::NetworkSpec> network_of(const TracedDdp& traced, const std::string& name);

// PyTorch's name of a type as ours; nothing for types that are not on a wire.
std::optional<models::Dtype> dtype_of(std::string_view torch_name);

// The default limits if they give the traced buckets, else the first of the usual caps that does;
// nothing if none does (a step before the buckets were rebuilt, a list of caps).
std::optional<models::BucketOptions> explain_buckets(const TracedDdp& traced,
                                                     const models::NeuralNetwork& network);

}  // namespace railyard::calibrate
