// A neural network as data-parallel training sees it: parameters in registration order, layers in
// execution order, buffers. A value, built once by validate() and never changed.
//
// Units. A sample is one image or one sequence. FLOPs count 2 per multiply-add. Activation traffic
// is kept in ELEMENTS read plus written, so that one network serves every compute precision;
// forward_traffic() and its siblings turn it into bytes.
//
// Equations per layer (N = activation elements):
//   gemm, conv  forward = 2 * multiply-adds; dgrad = wgrad = forward; the first layer has no dgrad.
//               traffic: forward in+out, dgrad out+in, wgrad in+out, plus the weights
//   attention   forward 4*s*s*d per sequence (two products), dgrad twice that, no weights. Traffic
//               is a fused kernel's: q, k, v, o; the s*s matrix stays on chip
//   norm        BN forward 3N (x twice, y once), backward 5N; LN/RMS forward 2N, backward 5N
//   elementwise ReLU and its like 2N, 3N; a residual addition 3N and, where its operand's gradients
//               meet, 3N
// Not valid for unfused attention, rematerialisation, or kernels that fuse norm and activation.
//
// Gradient arrival (autograd): execution order reversed; a weight used several times arrives after
// the backward of its FIRST use in forward. Inside a layer: `gemm` (addmm) bias before weight,
// since the weight passes a transpose node; every other kind weight before bias (as measured with
// PyTorch 1.13 on CPU by the oracle tests).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/nn/dtype.h"
#include "sim/units.h"

namespace railyard::models {

using sim::Bytes;
using sim::Flops;
using sim::Result;

enum class LayerKind : std::uint8_t {
  gemm,
  conv,
  attention,
  norm,
  elementwise,
  pooling,
  embedding,
};

struct Parameter {
  std::string name{};
  std::vector<std::int64_t> shape{};  // may be left empty when `elements` is given
  std::int64_t elements = 0;          // 0: validate() fills in the product of the shape
  Dtype dtype = Dtype::fp32;
  bool sparse = false;  // its gradient is sparse (nn.Embedding(sparse=True))
  bool requires_grad = true;
};

// The work of a layer for one sample; weights are read once per kernel, whatever the batch.
struct LayerWork {
  Flops forward_flops{};
  Flops dgrad_flops{};                // the gradient of the input
  Flops wgrad_flops{};                // the gradient of the parameters
  std::int64_t forward_elements = 0;  // activations read + written
  std::int64_t dgrad_elements = 0;
  std::int64_t wgrad_elements = 0;
  std::int64_t weight_elements = 0;    // read by forward and again by dgrad
  std::int64_t gradient_elements = 0;  // written by wgrad
};

// A pass of a layer as it was measured, with the host's time around its launch: the host works for
// `before`, launches a kernel of `time`, and works for `after`.
struct MeasuredPass {
  sim::Duration before{};
  sim::Duration time{};
  sim::Duration after{};
};

// Measured in place of LayerWork: for one sample (whatever the batch of the measurement was), with
// all of backward in one piece. The host's times do not grow with the batch.
struct MeasuredLayer {
  MeasuredPass forward{};
  MeasuredPass backward{};
};

struct Layer {
  std::string name{};
  LayerKind kind = LayerKind::gemm;
  bool has_dgrad = true;  // false for the first layer: its input needs no gradient
  std::vector<std::uint32_t> parameters{};  // indices, weight before bias
  LayerWork work{};
  std::optional<MeasuredLayer> measured{};
};

// Element counts of registered buffers; DDP broadcasts them coalesced by type at each forward.
struct Buffers {
  std::int64_t fp32_elements = 0;   // batch norm: running mean and variance
  std::int64_t int64_elements = 0;  // batch norm: num_batches_tracked
};

// What a user's file or a builder states. Layers name the parameters they use; a tied weight is one
// parameter (at its first position) named by several layers.
struct LayerSpec {
  std::string name{};
  LayerKind kind = LayerKind::gemm;
  bool has_dgrad = true;
  std::vector<std::string> parameters{};
  LayerWork work{};
  std::optional<MeasuredLayer> measured{};
};

struct NetworkSpec {
  std::string name{};
  std::vector<Parameter> parameters{};
  std::vector<LayerSpec> layers{};
  Buffers buffers{};
};

class NeuralNetwork {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<Layer>& layers() const { return layers_; }
  [[nodiscard]] const Buffers& buffers() const { return buffers_; }

 private:
  friend Result<NeuralNetwork> validate(NetworkSpec spec);
  NeuralNetwork() = default;
  std::string name_;
  std::vector<Parameter> parameters_;
  std::vector<Layer> layers_;
  Buffers buffers_;
};

// Resolves names and checks everything: a list may not be empty, parameter names are present and
// unique, shape and elements agree, counts are not negative, all sums fit 63 bits.
// O(parameters + uses).
Result<NeuralNetwork> validate(NetworkSpec spec);

// The usual work of a layer of which only the forward FLOPs and the activations' elements are
// known: backward as in the equations above. `weight_elements` is the sum over its parameters.
LayerWork usual_work(LayerKind kind, Flops forward, std::int64_t input_elements,
                     std::int64_t output_elements, std::int64_t weight_elements);

// Bytes that the forward, dgrad and wgrad kernels of a layer move for `samples` samples computed in
// `compute` precision. dgrad is zero where the layer has none.
Bytes forward_traffic(const Layer& layer, std::int64_t samples, Dtype compute);
Bytes dgrad_traffic(const Layer& layer, std::int64_t samples, Dtype compute);
Bytes wgrad_traffic(const Layer& layer, std::int64_t samples, Dtype compute);

struct GradientOrder {
  struct Arrival {
    std::uint32_t parameter = 0;
    std::uint32_t layer = 0;  // its gradient is complete after this layer's backward
    friend bool operator==(const Arrival&, const Arrival&) = default;
  };
  std::vector<Arrival> arrivals{};      // parameters that require a gradient, in arrival order
  std::vector<std::uint32_t> unused{};  // require a gradient, used by no layer; ascending
};
GradientOrder gradient_order(const NeuralNetwork& network);

// Sums over the whole network. All fit: validate() checked them.
struct DtypeTotal {
  Dtype dtype = Dtype::fp32;
  std::int64_t elements = 0;
  Bytes size{};
};
std::vector<DtypeTotal> parameter_totals(const NeuralNetwork& network);  // table order, no zeros
std::int64_t parameter_count(const NeuralNetwork& network);
Bytes parameter_bytes(const NeuralNetwork& network);
Bytes gradient_bytes(const NeuralNetwork& network);  // dense or not, of what requires a gradient
Flops forward_flops(const NeuralNetwork& network);   // per sample
Flops training_flops(const NeuralNetwork& network);  // per sample: forward + dgrad + wgrad

}  // namespace railyard::models

template <>
struct railyard::sim::EnumTable<railyard::models::LayerKind> {
  using LayerKind = railyard::models::LayerKind;
  static constexpr std::string_view kind = "layer kind";
  static constexpr std::array entries{EnumEntry{LayerKind::gemm, "gemm"},
                                      EnumEntry{LayerKind::conv, "conv"},
                                      EnumEntry{LayerKind::attention, "attention"},
                                      EnumEntry{LayerKind::norm, "norm"},
                                      EnumEntry{LayerKind::elementwise, "elementwise"},
                                      EnumEntry{LayerKind::pooling, "pooling"},
                                      EnumEntry{LayerKind::embedding, "embedding"}};
};
