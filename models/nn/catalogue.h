// The networks Railyard knows by name.
//
//   RAILYARD_ASSIGN(const NeuralNetwork network, build_model("gpt2", {.sequence_length = 512}));
//
// Parameter lists follow the public implementations (families.h). FLOPs count attention in full;
// with causal_half a decoder's attention counts only the half below the diagonal, as causal kernels
// compute it. Cost: O(tensors + layers), no tensor is ever allocated.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "models/nn/network.h"

namespace railyard::models {

struct ModelOptions {
  std::optional<std::int64_t>
      sequence_length{};                     // tokens; default: the context it was trained with
  std::optional<std::int64_t> image_size{};  // pixels per side; default 224
  Dtype parameter_dtype = Dtype::fp32;       // PyTorch's default; also that of the gradients
  bool causal_half = false;
};

struct ModelDescription {
  std::string_view name{};
  std::string_view summary{};
};

std::vector<std::string_view> model_names();
std::vector<ModelDescription> model_descriptions();

// Unknown names get the nearest known one as a hint; options that the model has no use for, or that
// are out of its range, are errors.
Result<NeuralNetwork> build_model(std::string_view name, const ModelOptions& options = {});

}  // namespace railyard::models
