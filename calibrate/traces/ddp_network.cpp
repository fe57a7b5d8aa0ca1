#include "calibrate/traces/ddp_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace railyard::calibrate {
namespace {

constexpr std::array kUsualCapsMb{1.,   2.,   4.,   5.,   8.,   10.,   12.,  15.,  16.,
                                  20.,  25.,  30.,  32.,  35.,  40.,   50.,  60.,  64.,
                                  75.,  80.,  100., 120., 125., 128.,  150., 200., 250.,
                                  256., 300., 400., 500., 512., 1000., 1024.};
constexpr std::int64_t kSteadyIteration = 4;  // buckets are rebuilt before it in every mode

struct TypeName {
  std::string_view torch;
  models::Dtype dtype;
};
constexpr std::array kTypeNames{
    TypeName{"Float", models::Dtype::fp32}, TypeName{"Double", models::Dtype::fp64},
    TypeName{"Half", models::Dtype::fp16},  TypeName{"BFloat16", models::Dtype::bf16},
    TypeName{"Long", models::Dtype::int64}, TypeName{"Int", models::Dtype::int32},
    TypeName{"Char", models::Dtype::int8},  TypeName{"Byte", models::Dtype::int8},
    TypeName{"Bool", models::Dtype::bool8}};

models::MeasuredPass pass_of(const MeasuredRun& run) {
  return {sim::nanoseconds(run.before_ns), sim::nanoseconds(run.kernel_ns),
          sim::nanoseconds(run.after_ns)};
}

std::string parameter_name(const TracedLayer& layer, std::size_t index) {
  return fmt::format("{} p{}", layer.name, index);
}

bool gives(const TracedDdp& traced, const models::NeuralNetwork& network,
           const models::BucketOptions& options) {
  const auto plan = models::plan_buckets(network, options);
  if (!plan.ok()) return false;
  const models::BucketList& buckets = plan.value().of_iteration(kSteadyIteration);
  return std::equal(
      buckets.begin(), buckets.end(), traced.buckets.begin(), traced.buckets.end(),
      [](const models::Bucket& bucket, std::int64_t bytes) { return bucket.size.raw() == bytes; });
}

}  // namespace

std::optional<models::Dtype> dtype_of(std::string_view torch_name) {
  if (torch_name.starts_with("Float8")) return models::Dtype::fp8;
  for (const TypeName& each : kTypeNames)
    if (each.torch == torch_name) return each.dtype;
  return std::nullopt;
}

sim::Result<models::NetworkSpec> network_of(const TracedDdp& traced, const std::string& name) {
  const auto dtype = dtype_of(traced.dtype);
  if (!dtype) return sim::bad_input(fmt::format("gradients of type '{}'", traced.dtype));
  models::NetworkSpec spec;
  spec.name = name;
  spec.buffers = traced.buffers;
  std::vector<std::string> names(traced.gradient_elements.size());
  for (const TracedLayer& layer : traced.layers) {
    models::LayerSpec out;
    out.name = layer.name;
    out.kind = layer.kind;
    out.measured = models::MeasuredLayer{pass_of(layer.forward), pass_of(layer.backward)};
    for (std::size_t i = 0; i < layer.gradients.size(); ++i) {
      names[layer.gradients[i]] = parameter_name(layer, i);
      out.parameters.push_back(names[layer.gradients[i]]);
    }
    // Parameters of a gemm arrive in the reverse of their listing (gradient_order).
    if (layer.kind == models::LayerKind::gemm) std::ranges::reverse(out.parameters);
    spec.layers.push_back(std::move(out));
  }
  for (std::size_t g = names.size(); g-- > 0;)
    spec.parameters.push_back(
        {.name = names[g], .elements = traced.gradient_elements[g], .dtype = *dtype});
  return spec;
}

std::optional<models::BucketOptions> explain_buckets(const TracedDdp& traced,
                                                     const models::NeuralNetwork& network) {
  models::BucketOptions options;
  options.gradient_as_bucket_view = traced.bucket_view;
  if (gives(traced, network, options)) return options;
  for (const double cap : kUsualCapsMb) {
    options.bucket_cap_mb = cap;
    if (gives(traced, network, options)) return options;
  }
  return std::nullopt;
}

}  // namespace railyard::calibrate
