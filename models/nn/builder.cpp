#include "models/nn/builder.h"

#include <utility>

namespace railyard::models {
namespace {

std::int64_t slide(std::int64_t size, const Window& window) {
  return (size + 2 * window.padding - window.size) / window.stride + 1;
}

}  // namespace

NetworkBuilder::NetworkBuilder(std::string name, Dtype dtype) : dtype_(dtype) {
  spec_.name = std::move(name);
}

void NetworkBuilder::parameter(const std::string& name, std::vector<std::int64_t> shape,
                               bool sparse) {
  const bool added = index_.emplace(name, spec_.parameters.size()).second;
  RAILYARD_CHECK(added, "a parameter is registered once");
  std::int64_t elements = 1;
  for (const std::int64_t dimension : shape) elements *= dimension;
  spec_.parameters.push_back({.name = name,
                              .shape = std::move(shape),
                              .elements = elements,
                              .dtype = dtype_,
                              .sparse = sparse});
}

void NetworkBuilder::linear(const std::string& name, std::int64_t in, std::int64_t out, bool bias) {
  parameter(name + ".weight", {out, in});
  if (bias) parameter(name + ".bias", {out});
}

void NetworkBuilder::conv(const std::string& name, std::int64_t in, std::int64_t out,
                          std::int64_t kernel, bool bias) {
  parameter(name + ".weight", {out, in, kernel, kernel});
  if (bias) parameter(name + ".bias", {out});
}

void NetworkBuilder::layer_norm(const std::string& name, std::int64_t width) {
  parameter(name + ".weight", {width});
  parameter(name + ".bias", {width});
}

void NetworkBuilder::rms_norm(const std::string& name, std::int64_t width) {
  parameter(name + ".weight", {width});
}

void NetworkBuilder::batch_norm(const std::string& name, std::int64_t channels) {
  layer_norm(name, channels);
  spec_.buffers.fp32_elements += 2 * channels;
  spec_.buffers.int64_elements += 1;
}

void NetworkBuilder::embedding(const std::string& name, std::int64_t rows, std::int64_t width,
                               bool sparse) {
  parameter(name + ".weight", {rows, width}, sparse);
}

const std::vector<std::int64_t>& NetworkBuilder::shape(const std::string& parameter) const {
  const auto found = index_.find(parameter);
  RAILYARD_CHECK(found != index_.end(), "a layer runs after its parameters are registered");
  return spec_.parameters[found->second].shape;
}

std::vector<std::string> NetworkBuilder::affine(const std::string& module) const {
  std::vector<std::string> names{module + ".weight"};
  if (index_.contains(module + ".bias")) names.push_back(module + ".bias");
  return names;
}

std::int64_t NetworkBuilder::elements(const std::vector<std::string>& parameters) const {
  std::int64_t total = 0;
  for (const std::string& name : parameters) {
    std::int64_t product = 1;
    for (const std::int64_t dimension : shape(name)) product *= dimension;
    total += product;
  }
  return total;
}

void NetworkBuilder::run(LayerSpec layer) {
  layer.has_dgrad = !spec_.layers.empty() && layer.kind != LayerKind::embedding;
  spec_.layers.push_back(std::move(layer));
}

void NetworkBuilder::run_gemm(const std::string& name, std::vector<std::string> parameters,
                              std::int64_t rows) {
  const auto& weight = shape(parameters.front());
  const std::int64_t weights = elements(parameters);
  const Flops forward = sim::flops(2 * weight[0] * weight[1] * rows);
  run({.name = name,
       .kind = LayerKind::gemm,
       .parameters = std::move(parameters),
       .work = usual_work(LayerKind::gemm, forward, rows * weight[1], rows * weight[0], weights)});
}

void NetworkBuilder::run_linear(const std::string& name, std::int64_t rows) {
  run_gemm(name, affine(name), rows);
}

void NetworkBuilder::run_tied(const std::string& name, const std::string& weight,
                              std::int64_t rows) {
  run_gemm(name, {weight}, rows);
}

Image NetworkBuilder::run_conv(const std::string& name, const Image& in, const Window& window) {
  std::vector<std::string> parameters = affine(name);
  const auto& weight = shape(parameters.front());
  RAILYARD_CHECK(weight[1] == in.channels, "a convolution reads the channels it was made for");
  const Image out{weight[0], slide(in.height, window), slide(in.width, window)};
  const Flops forward = sim::flops(2 * weight[1] * weight[2] * weight[3] * out.elements());
  const std::int64_t weights = elements(parameters);
  run({.name = name,
       .kind = LayerKind::conv,
       .parameters = std::move(parameters),
       .work = usual_work(LayerKind::conv, forward, in.elements(), out.elements(), weights)});
  return out;
}

void NetworkBuilder::run_norm(const std::string& name, std::int64_t elements_per_sample) {
  std::vector<std::string> parameters = affine(name);
  const LayerWork work = usual_work(LayerKind::norm, {}, elements_per_sample, elements_per_sample,
                                    elements(parameters));
  run({.name = name, .kind = LayerKind::norm, .parameters = std::move(parameters), .work = work});
}

void NetworkBuilder::run_batch_norm(const std::string& name, std::int64_t elements_per_sample) {
  run_norm(name, elements_per_sample);
  // The statistics need a pass over the whole batch before the first output.
  spec_.layers.back().work.forward_elements += elements_per_sample;
}

void NetworkBuilder::run_embedding(const std::string& name, std::int64_t lookups) {
  const Parameter& table = spec_.parameters[index_.at(name + ".weight")];
  const std::int64_t touched = lookups * table.shape[1];
  run({.name = name,
       .kind = LayerKind::embedding,
       .parameters = {table.name},
       .work = usual_work(LayerKind::embedding, {}, touched, touched,
                          table.sparse ? 0 : table.elements)});
}

void NetworkBuilder::run_attention(const std::string& name, const AttentionShape& shape) {
  const std::int64_t products = 4 * shape.tokens * shape.tokens * shape.width;
  const std::int64_t out = shape.tokens * shape.width;
  const std::int64_t in = out + 2 * shape.tokens * shape.key_width;
  run({.name = name,
       .kind = LayerKind::attention,
       .parameters = {},
       .work = usual_work(LayerKind::attention, sim::flops(shape.half ? products / 2 : products),
                          in, out, 0)});
}

void NetworkBuilder::run_elementwise(const std::string& name, std::int64_t in, std::int64_t out) {
  run({.name = name,
       .kind = LayerKind::elementwise,
       .parameters = {},
       .work = usual_work(LayerKind::elementwise, {}, in, out, 0)});
}

void NetworkBuilder::run_add(const std::string& name, std::int64_t elements_per_sample) {
  run({.name = name,
       .kind = LayerKind::elementwise,
       .parameters = {},
       .work = {.forward_elements = 3 * elements_per_sample,
                .dgrad_elements = 3 * elements_per_sample}});
}

Image NetworkBuilder::run_pool(const std::string& name, const Image& in, const Window& window) {
  const Image out{in.channels, slide(in.height, window), slide(in.width, window)};
  run({.name = name,
       .kind = LayerKind::pooling,
       .parameters = {},
       .work = usual_work(LayerKind::pooling, {}, in.elements(), out.elements(), 0)});
  return out;
}

NetworkSpec NetworkBuilder::spec() && { return std::move(spec_); }

}  // namespace railyard::models
