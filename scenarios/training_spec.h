// What every training scheme is told: the network, what is computed in which precision, and how
// often. A scheme's own block adds its arguments to these keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/nn/dtype.h"
#include "models/nn/network.h"
#include "sim/enum_table.h"

namespace railyard::scenarios {

class MapReader;

// How the network is computed: amp-* keeps parameters and gradients in fp32, as autocast does;
// fp16 and bf16 are models converted as a whole.
enum class Precision { fp32, tf32, amp_fp16, amp_bf16, fp16, bf16 };
enum class Optimizer { none, sgd, sgd_momentum, adam, adamw };

struct TrainingSpec {
  std::string model;                           // of the catalogue; empty if `network` is set
  std::optional<models::NetworkSpec> network;  // stated in the scenario
  std::int64_t batch_per_gpu = 1;
  std::optional<std::int64_t> sequence_length;
  std::optional<std::int64_t> image_size;
  Precision precision = Precision::fp32;
  Optimizer optimizer = Optimizer::sgd;
  bool recompute = false;  // activation checkpointing: forward runs again in backward
  std::int64_t iterations = 3;
};

// Which element types a precision stores and computes in.
models::Dtype parameter_dtype(Precision precision);
models::Dtype compute_dtype(Precision precision);
// Of parameters as schemes with their own mixed precision gather and send them: TF32 is a way to
// compute, not to store.
models::Dtype sent_dtype(Precision precision);

// HBM bytes that one step of a fused optimizer moves per parameter, and tensors of state as large
// as the parameters that it keeps.
struct OptimizerCost {
  std::int64_t step_bytes = 0;
  int states = 0;
};
OptimizerCost cost_of(Optimizer optimizer);

// Reads the keys of a TrainingSpec; finish_training() then builds the network once, so that
// whatever is wrong with it has a line in the file.
void read_training(MapReader& reader, TrainingSpec& out);
sim::Result<void> finish_training(MapReader& reader, const TrainingSpec& spec);

sim::Result<models::NeuralNetwork> network_of(const TrainingSpec& spec);

}  // namespace railyard::scenarios

namespace railyard::sim {
template <>
struct EnumTable<scenarios::Precision> {
  static constexpr std::string_view kind = "precision";
  static constexpr std::array entries{EnumEntry{scenarios::Precision::fp32, "fp32"},
                                      EnumEntry{scenarios::Precision::tf32, "tf32"},
                                      EnumEntry{scenarios::Precision::amp_fp16, "amp-fp16"},
                                      EnumEntry{scenarios::Precision::amp_bf16, "amp-bf16"},
                                      EnumEntry{scenarios::Precision::fp16, "fp16"},
                                      EnumEntry{scenarios::Precision::bf16, "bf16"}};
};
template <>
struct EnumTable<scenarios::Optimizer> {
  static constexpr std::string_view kind = "optimizer";
  static constexpr std::array entries{EnumEntry{scenarios::Optimizer::none, "none"},
                                      EnumEntry{scenarios::Optimizer::sgd, "sgd"},
                                      EnumEntry{scenarios::Optimizer::sgd_momentum, "sgd-momentum"},
                                      EnumEntry{scenarios::Optimizer::adam, "adam"},
                                      EnumEntry{scenarios::Optimizer::adamw, "adamw"}};
};
}  // namespace railyard::sim
