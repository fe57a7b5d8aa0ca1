// The keys that all training schemes share, and the networks that a scenario states itself.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <unordered_map>

#include "models/nn/catalogue.h"
#include "scenarios/sections.h"

namespace railyard::scenarios {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 53;
constexpr double kMaxFlops = 9e18;
constexpr std::int64_t kMaxBatch = 1'000'000;

constexpr std::array<std::string_view, 8> kWorkKeys{
    "forward_flops",   "dgrad_flops",      "wgrad_flops",    "input_elements",
    "output_elements", "forward_elements", "dgrad_elements", "wgrad_elements"};
constexpr std::int64_t kLongestPassHours = 1;

using ElementCounts = std::unordered_map<std::string, std::int64_t>;  // by parameter name

// FLOPs are counts, but 8.2e9 is how people write them.
bool read_flops(MapReader& reader, std::string_view key, sim::Flops& out) {
  double value = 0;
  if (!reader.optional(key, value, 0.0, kMaxFlops)) return false;
  out = sim::flops(static_cast<std::int64_t>(value));
  return true;
}

// Measured times say what work would be estimated from.
void read_measured(MapReader& reader, models::LayerSpec& out) {
  models::MeasuredLayer measured;
  const bool forward = reader.optional("forward", measured.forward);
  const bool backward = reader.optional("backward", measured.backward);
  if (!forward && !backward) return;
  out.measured = measured;
  for (const std::string_view key : kWorkKeys)
    if (const auto work = reader.find(key))
      reader.take(
          work->error("a layer with measured times (forward, backward) has no work besides"));
}

Result<void> decode_layer(const Place& place, const ElementCounts& counts, models::LayerSpec& out) {
  MapReader reader(place);
  sim::Flops forward;
  std::int64_t input = 0;
  std::int64_t output = 0;
  reader.required("name", out.name);
  reader.required("kind", out.kind);
  reader.optional("parameters", out.parameters);
  read_flops(reader, "forward_flops", forward);
  reader.optional("input_elements", input, 0, kMaxElements);
  reader.optional("output_elements", output, 0, kMaxElements);
  reader.optional("has_dgrad", out.has_dgrad);
  std::int64_t weights = 0;
  for (const std::string& name : out.parameters)
    if (const auto found = counts.find(name); found != counts.end())
      weights += weights > kMaxElements ? 0 : found->second;
  out.work = models::usual_work(out.kind, forward, input, output, weights);
  // What the usual equations get wrong for a layer may be stated instead.
  read_flops(reader, "dgrad_flops", out.work.dgrad_flops);
  read_flops(reader, "wgrad_flops", out.work.wgrad_flops);
  reader.optional("forward_elements", out.work.forward_elements, 0, kMaxElements);
  reader.optional("dgrad_elements", out.work.dgrad_elements, 0, kMaxElements);
  reader.optional("wgrad_elements", out.work.wgrad_elements, 0, kMaxElements);
  read_measured(reader, out);
  return reader.finish();
}

// The network is built once here, so that whatever is wrong with it has a line in the file.
Result<void> check_network(const Place& place, const TrainingSpec& spec) {
  if (spec.network) {
    const auto valid = models::validate(*spec.network);
    return valid.ok() ? Result<void>() : at(place, valid.error());
  }
  const models::ModelOptions options{.sequence_length = spec.sequence_length,
                                     .image_size = spec.image_size,
                                     .parameter_dtype = parameter_dtype(spec.precision)};
  const auto built = models::build_model(spec.model, options);
  return built.ok() ? Result<void>() : at(place, built.error());
}

Result<void> decode_model(const Place& place, TrainingSpec& out) {
  if (place.node->kind == Node::Kind::map) return decode(place, out.network.emplace());
  if (place.node->kind == Node::Kind::scalar) return decode(place, out.model);
  return place.error("a model's name or {parameters: ..., layers: ...} is expected");
}

}  // namespace

Result<void> decode(const Place& place, models::MeasuredPass& out) {
  if (place.node->kind == Node::Kind::scalar) {
    RAILYARD_TRY(decode(place, out.time));
  } else {
    MapReader reader(place);
    reader.optional("before", out.before);
    reader.optional("time", out.time);
    reader.optional("after", out.after);
    RAILYARD_TRY(reader.finish());
  }
  if (std::max({out.before, out.time, out.after}) > std::chrono::hours(kLongestPassHours))
    return place.error("a measured time is at most an hour");
  return {};
}

Result<void> decode(const Place& place, models::Parameter& out) {
  MapReader reader(place);
  std::vector<std::int64_t> shape;
  reader.required("name", out.name);
  const bool counted = reader.optional("elements", out.elements, 1, kMaxElements);
  const bool shaped = reader.optional("shape", shape);
  reader.optional("dtype", out.dtype);
  reader.optional("sparse", out.sparse);
  reader.optional("requires_grad", out.requires_grad);
  RAILYARD_TRY(reader.finish());
  if (counted == shaped) return place.error("one of 'elements' and 'shape' is expected");
  if (!shaped) return {};
  out.elements = 1;
  for (const std::int64_t side : shape) {
    if (side <= 0 || side > kMaxElements / out.elements)
      return place.error("the sides of 'shape' must be positive, their product at most 2^53");
    out.elements *= side;
  }
  out.shape = shape;
  return {};
}

Result<void> decode(const Place& place, models::NetworkSpec& out) {
  MapReader reader(place);
  out.name = "custom";
  reader.optional("name", out.name);
  if (const auto list = reader.find_required("parameters"))
    reader.take(decode(*list, out.parameters));
  ElementCounts counts;
  for (const models::Parameter& parameter : out.parameters)
    counts.emplace(parameter.name, parameter.elements);
  const auto layers = reader.find_required("layers");
  if (layers && reader.take(expect(*layers, Node::Kind::list))) {
    for (std::size_t i = 0; i < layers->node->items.size(); ++i)
      if (!reader.take(decode_layer(layers->item(i), counts, out.layers.emplace_back()))) break;
  }
  if (const auto place_of_buffers = reader.find("buffers")) {
    MapReader buffers(*place_of_buffers);
    buffers.optional("fp32_elements", out.buffers.fp32_elements, 0, kMaxElements);
    buffers.optional("int64_elements", out.buffers.int64_elements, 0, kMaxElements);
    reader.take(buffers.finish());
  }
  return reader.finish();
}

void read_training(MapReader& reader, TrainingSpec& out) {
  read_training(reader, out, "batch_per_gpu");
}

void read_training(MapReader& reader, TrainingSpec& out, std::string_view batch) {
  if (const auto model = reader.find_required("model")) reader.take(decode_model(*model, out));
  reader.required(batch, out.batch_per_gpu, 1, kMaxBatch);
  std::int64_t size = 0;
  if (reader.optional("sequence_length", size, 1, kMaxBatch)) out.sequence_length = size;
  if (reader.optional("image_size", size, 1, kMaxBatch)) out.image_size = size;
  reader.required("precision", out.precision);
  reader.required("optimizer", out.optimizer);
  reader.optional("recompute", out.recompute);
  reader.optional("iterations", out.iterations, 1, kMaxBatch);
}

Result<void> finish_training(MapReader& reader, const TrainingSpec& spec) {
  RAILYARD_TRY(reader.finish());
  const Place model = *reader.find("model");
  if (spec.network && (spec.sequence_length || spec.image_size))
    return model.error("sequence_length and image_size belong to models known by name");
  return check_network(model, spec);
}

Result<models::NeuralNetwork> network_of(const TrainingSpec& spec) {
  if (spec.network) return models::validate(*spec.network);
  models::ModelOptions options;
  options.sequence_length = spec.sequence_length;
  options.image_size = spec.image_size;
  options.parameter_dtype = parameter_dtype(spec.precision);
  return models::build_model(spec.model, options);
}

models::Dtype sent_dtype(Precision precision) {
  const models::Dtype compute = compute_dtype(precision);
  return compute == models::Dtype::tf32 ? models::Dtype::fp32 : compute;
}

OptimizerCost cost_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::none: return {0, 0};
    case Optimizer::sgd: return {12, 0};
    case Optimizer::sgd_momentum: return {20, 1};
    case Optimizer::adam:
    case Optimizer::adamw: return {28, 2};
  }
  return {};
}

models::Dtype parameter_dtype(Precision precision) {
  if (precision == Precision::fp16) return models::Dtype::fp16;
  return precision == Precision::bf16 ? models::Dtype::bf16 : models::Dtype::fp32;
}

models::Dtype compute_dtype(Precision precision) {
  switch (precision) {
    case Precision::fp32: return models::Dtype::fp32;
    case Precision::tf32: return models::Dtype::tf32;
    case Precision::fp16:
    case Precision::amp_fp16: return models::Dtype::fp16;
    case Precision::bf16:
    case Precision::amp_bf16: return models::Dtype::bf16;
  }
  return models::Dtype::fp32;
}

}  // namespace railyard::scenarios
