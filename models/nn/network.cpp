#include "models/nn/network.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

namespace railyard::models {
namespace {

using sim::bad_input;
using sim::Int128;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

using NameIndex = std::unordered_map<std::string_view, std::uint32_t>;

std::string where_parameter(std::string_view network, std::string_view name) {
  return fmt::format("network '{}', parameter '{}'", network, name);
}

// Elements from the shape; nothing when a dimension is not positive or the product is too large.
std::optional<std::int64_t> shape_product(const std::vector<std::int64_t>& shape) {
  Int128 product = 1;
  for (const std::int64_t dimension : shape) {
    if (dimension <= 0) return std::nullopt;
    product *= dimension;
    if (product > kMax) return std::nullopt;
  }
  return static_cast<std::int64_t>(product);
}

// Fills in `elements`; returns what is wrong, or nothing.
std::optional<const char*> complete(Parameter& parameter) {
  if (parameter.elements < 0 || (parameter.elements == 0 && parameter.shape.empty()))
    return "the number of elements must be positive";
  if (parameter.shape.empty()) return std::nullopt;
  const auto product = shape_product(parameter.shape);
  if (!product) return "every dimension must be positive and their product fit 63 bits";
  if (parameter.elements != 0 && parameter.elements != *product)
    return "the number of elements is not the product of the shape";
  parameter.elements = *product;
  return std::nullopt;
}

Result<NameIndex> index_parameters(NetworkSpec& spec) {
  NameIndex index;
  Int128 total = 0;
  for (Parameter& parameter : spec.parameters) {
    const auto fail = [&](const char* why) {
      return bad_input(fmt::format("{}: {}", where_parameter(spec.name, parameter.name), why));
    };
    if (parameter.name.empty())
      return bad_input(
          fmt::format("network '{}': parameter {} has no name", spec.name, index.size()));
    if (const auto wrong = complete(parameter)) return fail(*wrong);
    if (!index.emplace(parameter.name, static_cast<std::uint32_t>(index.size())).second)
      return fail(
          "duplicate name (a tied weight is listed once and named by every layer using it)");
    total += Int128{parameter.elements} * element_size(parameter.dtype);
    if (total > kMax) return fail("the bytes of all parameters exceed 63 bits");
  }
  return index;
}

// The first negative count of a layer, by name.
std::optional<const char*> negative_count(const LayerWork& work) {
  if (work.forward_flops.raw() < 0) return "forward FLOPs";
  if (work.dgrad_flops.raw() < 0) return "dgrad FLOPs";
  if (work.wgrad_flops.raw() < 0) return "wgrad FLOPs";
  if (work.forward_elements < 0) return "forward elements";
  if (work.dgrad_elements < 0) return "dgrad elements";
  if (work.wgrad_elements < 0) return "wgrad elements";
  if (work.weight_elements < 0) return "weight elements";
  if (work.gradient_elements < 0) return "gradient elements";
  return std::nullopt;
}

Result<std::vector<std::uint32_t>> resolve(const LayerSpec& layer, const NameIndex& index,
                                           const NetworkSpec& spec) {
  std::vector<std::uint32_t> parameters;
  for (const std::string& name : layer.parameters) {
    const auto found = index.find(name);
    if (found == index.end()) {
      std::vector<std::string_view> names;
      for (const Parameter& parameter : spec.parameters) names.push_back(parameter.name);
      return bad_input(fmt::format("network '{}', layer '{}': unknown parameter '{}'{}", spec.name,
                                   layer.name, name, sim::did_you_mean(name, names)));
    }
    parameters.push_back(found->second);
  }
  return parameters;
}

// Sums that later arithmetic relies on.
struct Totals {
  Int128 flops = 0;
  Int128 elements = 0;
  void add(const LayerWork& work) {
    flops += Int128{work.forward_flops.raw()} + work.dgrad_flops.raw() + work.wgrad_flops.raw();
    elements += Int128{work.forward_elements} + work.dgrad_elements + work.wgrad_elements +
                work.weight_elements + work.gradient_elements;
  }
  // Eight bytes is the widest element.
  [[nodiscard]] bool overflow() const { return flops > kMax || elements > kMax / 8; }
};

Result<Layer> check_layer(LayerSpec& layer, const NameIndex& index, const NetworkSpec& spec) {
  if (const auto negative = negative_count(layer.work))
    return bad_input(fmt::format("network '{}', layer '{}': {} must not be negative", spec.name,
                                 layer.name, *negative));
  if (layer.measured)
    for (const MeasuredPass* pass : {&layer.measured->forward, &layer.measured->backward})
      if (std::min({pass->before, pass->time, pass->after}).count() < 0)
        return bad_input(
            fmt::format("network '{}', layer '{}': a measured time must not be "
                        "negative",
                        spec.name, layer.name));
  RAILYARD_ASSIGN(auto parameters, resolve(layer, index, spec));
  return Layer{.name = std::move(layer.name),
               .kind = layer.kind,
               .has_dgrad = layer.has_dgrad,
               .parameters = std::move(parameters),
               .work = layer.work,
               .measured = layer.measured};
}

Bytes traffic(std::int64_t per_sample, std::int64_t fixed, std::int64_t samples, Dtype compute) {
  RAILYARD_CHECK(samples >= 0, "a batch is never negative");
  const Int128 size = (Int128{per_sample} * samples + fixed) * element_size(compute);
  return sim::bytes(static_cast<std::int64_t>(std::min(size, Int128{kMax})));
}

template <typename Get>
Flops sum_flops(const NeuralNetwork& network, Get get) {
  Flops total{};
  for (const Layer& layer : network.layers()) total += get(layer);
  return total;
}

Bytes size_of(const Parameter& parameter) {
  return sim::bytes(parameter.elements * element_size(parameter.dtype));
}

}  // namespace

Result<NeuralNetwork> validate(NetworkSpec spec) {
  if (spec.parameters.empty())
    return bad_input(fmt::format("network '{}' has no parameters", spec.name));
  if (spec.layers.empty()) return bad_input(fmt::format("network '{}' has no layers", spec.name));
  if (spec.buffers.fp32_elements < 0 || spec.buffers.int64_elements < 0)
    return bad_input(fmt::format("network '{}': buffer elements must not be negative", spec.name));
  RAILYARD_ASSIGN(const NameIndex index, index_parameters(spec));

  NeuralNetwork network;
  Totals totals;
  network.layers_.reserve(spec.layers.size());
  for (LayerSpec& layer : spec.layers) {
    RAILYARD_ASSIGN(Layer checked, check_layer(layer, index, spec));
    totals.add(checked.work);
    if (totals.overflow())
      return bad_input(
          fmt::format("network '{}', layer '{}': the work of all layers up to here "
                      "exceeds 63 bits",
                      spec.name, checked.name));
    network.layers_.push_back(std::move(checked));
  }
  network.name_ = std::move(spec.name);
  network.parameters_ = std::move(spec.parameters);
  network.buffers_ = spec.buffers;
  return network;
}

LayerWork usual_work(LayerKind kind, Flops forward, std::int64_t input_elements,
                     std::int64_t output_elements, std::int64_t weight_elements) {
  const std::int64_t in_out = input_elements + output_elements;
  LayerWork work{.forward_flops = forward, .forward_elements = in_out};
  switch (kind) {
    case LayerKind::gemm:
    case LayerKind::conv:
      work.dgrad_flops = work.wgrad_flops = forward;
      work.dgrad_elements = work.wgrad_elements = in_out;
      work.weight_elements = work.gradient_elements = weight_elements;
      break;
    case LayerKind::attention:
      work.dgrad_flops = 2 * forward;
      work.dgrad_elements = 2 * in_out;
      break;
    case LayerKind::norm:  // backward reads x and dy twice and writes dx
      work.dgrad_elements = 2 * in_out + input_elements;
      work.weight_elements = work.gradient_elements = weight_elements;
      break;
    case LayerKind::elementwise: work.dgrad_elements = in_out + input_elements; break;
    case LayerKind::pooling:  // dy and the indices of the maxima in, dx out
      work.dgrad_elements = in_out + output_elements;
      break;
    case LayerKind::embedding:  // forward touches rows only; the dense gradient is a whole table
      work.wgrad_elements = 2 * output_elements;
      work.gradient_elements = weight_elements;
      break;
  }
  return work;
}

Bytes forward_traffic(const Layer& layer, std::int64_t samples, Dtype compute) {
  return traffic(layer.work.forward_elements, layer.work.weight_elements, samples, compute);
}

Bytes dgrad_traffic(const Layer& layer, std::int64_t samples, Dtype compute) {
  if (!layer.has_dgrad) return {};
  return traffic(layer.work.dgrad_elements, layer.work.weight_elements, samples, compute);
}

Bytes wgrad_traffic(const Layer& layer, std::int64_t samples, Dtype compute) {
  return traffic(layer.work.wgrad_elements, layer.work.gradient_elements, samples, compute);
}

GradientOrder gradient_order(const NeuralNetwork& network) {
  const auto& layers = network.layers();
  constexpr std::uint32_t kNoLayer = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> first_use(network.parameters().size(), kNoLayer);
  for (std::uint32_t layer = 0; layer < layers.size(); ++layer)
    for (const std::uint32_t parameter : layers[layer].parameters)
      first_use[parameter] = std::min(first_use[parameter], layer);

  GradientOrder order;
  std::vector<bool> arrived(first_use.size(), false);
  const auto arrive = [&](std::uint32_t parameter, std::uint32_t layer) {
    if (first_use[parameter] != layer || arrived[parameter]) return;
    if (!network.parameters()[parameter].requires_grad) return;
    arrived[parameter] = true;
    order.arrivals.push_back({.parameter = parameter, .layer = layer});
  };
  for (auto layer = static_cast<std::uint32_t>(layers.size()); layer-- > 0;) {
    std::vector<std::uint32_t> parameters = layers[layer].parameters;
    if (layers[layer].kind == LayerKind::gemm) std::ranges::reverse(parameters);
    for (const std::uint32_t parameter : parameters) arrive(parameter, layer);
  }
  for (std::uint32_t parameter = 0; parameter < first_use.size(); ++parameter)
    if (first_use[parameter] == kNoLayer && network.parameters()[parameter].requires_grad)
      order.unused.push_back(parameter);
  return order;
}

std::vector<DtypeTotal> parameter_totals(const NeuralNetwork& network) {
  std::vector<DtypeTotal> totals;
  for (const auto& entry : sim::EnumTable<Dtype>::entries) {
    DtypeTotal total{.dtype = entry.value};
    for (const Parameter& parameter : network.parameters())
      if (parameter.dtype == entry.value) total.elements += parameter.elements;
    total.size = sim::bytes(total.elements * element_size(total.dtype));
    if (total.elements > 0) totals.push_back(total);
  }
  return totals;
}

std::int64_t parameter_count(const NeuralNetwork& network) {
  std::int64_t count = 0;
  for (const Parameter& parameter : network.parameters()) count += parameter.elements;
  return count;
}

Bytes parameter_bytes(const NeuralNetwork& network) {
  Bytes total{};
  for (const Parameter& parameter : network.parameters()) total += size_of(parameter);
  return total;
}

Bytes gradient_bytes(const NeuralNetwork& network) {
  Bytes total{};
  for (const Parameter& parameter : network.parameters())
    if (parameter.requires_grad) total += size_of(parameter);
  return total;
}

Flops forward_flops(const NeuralNetwork& network) {
  return sum_flops(network, [](const Layer& layer) { return layer.work.forward_flops; });
}

Flops training_flops(const NeuralNetwork& network) {
  return sum_flops(network, [](const Layer& layer) {
    const LayerWork& work = layer.work;
    return work.forward_flops + work.wgrad_flops + (layer.has_dgrad ? work.dgrad_flops : Flops{});
  });
}

}  // namespace railyard::models
