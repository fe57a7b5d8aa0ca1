// What a rank of a DistributedDataParallel job holds all the time, in bytes:
//
//   parameters   of the network, in their own types, and its buffers
//   gradients    one element per element of a parameter that requires a gradient
//   buckets      the same again, DDP's flat buffers; with gradient_as_bucket_view the gradients lie
//                in them and are not counted twice
//   optimizer    `optimizer_states` elements per such element, in the parameter's type, as
//                torch.optim keeps them (SGD 0, momentum 1, Adam 2)
//
// Activations, autocast's half copies of weights, workspaces and NCCL's own buffers come on top.
// Source: torch/csrc/distributed/c10d/reducer.cpp (initialize_buckets), torch/optim.
//
//   ddp_memory(gpt2_xl, {.optimizer_states = 2}).total();  // 5 x 6.2 GB
#pragma once

#include "models/ddp/step.h"
#include "models/nn/network.h"

namespace railyard::models {

struct DdpMemory {
  double parameters = 0;
  double gradients = 0;
  double buckets = 0;
  double optimizer = 0;
  [[nodiscard]] double total() const { return parameters + gradients + buckets + optimizer; }
};

DdpMemory ddp_memory(const NeuralNetwork& network, const DdpOptions& options);

}  // namespace railyard::models
