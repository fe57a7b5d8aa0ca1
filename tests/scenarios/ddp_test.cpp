#include <doctest/doctest.h>

#include <string>

#include "scenarios/scenario.h"
#include "tests/scenarios/helpers.h"

namespace railyard::scenarios {
namespace {

using tests::error_of;
using tests::scenario_of;

// The ddp block is line 5; `keys` starts at column 7.
std::string ddp(std::string_view keys) {
  return tests::with("nccl: {algorithm: Ring, protocol: Simple, channels: 8}\nddp: {" +
                     std::string(keys) + "}\n");
}
const std::string kUsual = "batch_per_gpu: 8, precision: amp-bf16, optimizer: adamw";

TEST_CASE("ddp: PyTorch's own names, and what is not given stays not given") {
  const Scenario s = scenario_of(ddp("model: resnet50, " + kUsual));
  CHECK(s.ddp->model == "resnet50");
  CHECK(s.ddp->batch_per_gpu == 8);
  CHECK(s.ddp->precision == Precision::amp_bf16);
  CHECK(s.ddp->optimizer == Optimizer::adamw);
  CHECK_FALSE(s.ddp->buckets.bucket_cap_mb);
  CHECK_FALSE(s.ddp->buckets.first_bucket_bytes);
  CHECK(s.ddp->broadcast_buffers);
  CHECK(s.ddp->iterations == 3);

  const Scenario t = scenario_of(
      ddp("model: gpt2, sequence_length: 512, bucket_cap_mb: 12.5, first_bucket_bytes: 1MiB, "
          "find_unused_parameters: true, static_graph: true, gradient_as_bucket_view: true, "
          "broadcast_buffers: false, torch: 1.13.1, iterations: 5, recompute: true, "
          "DDP_SET_LAST_BUCKET_CAP: true, bucket_cap_mb_list: [1, 25], " +
          kUsual));
  CHECK(t.ddp->sequence_length == 512);
  CHECK(t.ddp->buckets.bucket_cap_mb == 12.5);
  CHECK(t.ddp->buckets.first_bucket_bytes == sim::bytes(1 << 20));
  CHECK(t.ddp->buckets.find_unused_parameters);
  CHECK(t.ddp->buckets.static_graph);
  CHECK(t.ddp->buckets.gradient_as_bucket_view);
  CHECK(t.ddp->buckets.ddp_set_last_bucket_cap);
  CHECK(t.ddp->buckets.bucket_cap_mb_list->size() == 2);
  CHECK(t.ddp->buckets.version == models::TorchVersion{1, 13});
  CHECK_FALSE(t.ddp->broadcast_buffers);
  CHECK(t.ddp->recompute);
}

TEST_CASE("ddp: what each precision stores and computes in") {
  CHECK(parameter_dtype(Precision::amp_fp16) == models::Dtype::fp32);
  CHECK(parameter_dtype(Precision::tf32) == models::Dtype::fp32);
  CHECK(parameter_dtype(Precision::fp16) == models::Dtype::fp16);
  CHECK(parameter_dtype(Precision::bf16) == models::Dtype::bf16);
  CHECK(compute_dtype(Precision::fp32) == models::Dtype::fp32);
  CHECK(compute_dtype(Precision::tf32) == models::Dtype::tf32);
  CHECK(compute_dtype(Precision::amp_fp16) == models::Dtype::fp16);
  CHECK(compute_dtype(Precision::amp_bf16) == models::Dtype::bf16);
}

TEST_CASE("ddp: errors") {
  const auto error = [](std::string_view keys) { return error_of(ddp(keys)); };
  CHECK(error(kUsual) == "s.yaml:5:6: ddp: the key 'model' is missing");
  CHECK(error("model: resnet50") == "s.yaml:5:6: ddp: the key 'batch_per_gpu' is missing");
  CHECK(error("model: resnet5, " + kUsual).starts_with("s.yaml:5:14: ddp.model: "));
  CHECK(error("model: resnet5, " + kUsual).find("resnet50") != std::string::npos);
  CHECK(error("model: resnet50, sequence_length: 128, " + kUsual)
            .starts_with("s.yaml:5:14: ddp.model: "));
  CHECK(error("model: [a], " + kUsual) ==
        "s.yaml:5:14: ddp.model: a model's name or {parameters: ..., layers: ...} is expected");
  CHECK(error("bucket_cap_mb: -1, model: resnet50, " + kUsual) ==
        "s.yaml:5:22: ddp.bucket_cap_mb: -1 is out of range (0 to 1000000)");
  CHECK(error("bucket_cap_mb: 25MiB, model: resnet50, " + kUsual) ==
        "s.yaml:5:22: ddp.bucket_cap_mb: a number is expected, not '25MiB'");
  CHECK(error("bucket_cap_mb_list: [1, -2], model: resnet50, " + kUsual) ==
        "s.yaml:5:31: ddp.bucket_cap_mb_list[1]: -2 is out of range (0 to 1000000)");
  CHECK(error("bucket_cap_mb_list: [], model: resnet50, " + kUsual) ==
        "s.yaml:5:27: ddp.bucket_cap_mb_list: the list is empty");
  CHECK(
      error("first_bucket_bytes: 1048576, model: resnet50, " + kUsual)
          .starts_with("s.yaml:5:27: ddp.first_bucket_bytes: '1048576' is not a size: the unit is "
                       "missing"));
  CHECK(error("torch: two, model: resnet50, " + kUsual) ==
        "s.yaml:5:14: ddp.torch: a PyTorch version like 2.4 is expected, not 'two'");
  for (const char* bad : {"2", "2.", "2.x", "-1.2", "2.-4", "2.4b"})
    CHECK(error("torch: " + std::string(bad) + ", model: resnet50, " + kUsual)
              .find("a PyTorch version like 2.4 is expected") != std::string::npos);
  CHECK(
      error("bucket_cap: 25, model: resnet50, " + kUsual)
          .starts_with("s.yaml:5:7: ddp: unknown key 'bucket_cap'; did you mean 'bucket_cap_mb'?"));
}

constexpr std::string_view kNetwork = R"(model: {
    name: two layers, parameters: [
      {name: w1, shape: [1000, 100]}, {name: b1, elements: 100, dtype: fp16},
      {name: w2, shape: [100]}],
    layers: [
      {name: one, kind: gemm, parameters: [w1, b1], forward_flops: 2e5, input_elements: 1000,
       output_elements: 100, has_dgrad: false},
      {name: two, kind: norm, parameters: [w2], wgrad_flops: 7, forward_elements: 300}],
    buffers: {fp32_elements: 4}}, )";

TEST_CASE("ddp: a network stated in the scenario") {
  const Scenario s = scenario_of(ddp(std::string(kNetwork) + kUsual));
  const models::NetworkSpec& network = *s.ddp->network;
  CHECK(network.name == "two layers");
  REQUIRE(network.parameters.size() == 3);
  CHECK(network.parameters[0].elements == 100'000);
  CHECK(network.parameters[1].dtype == models::Dtype::fp16);
  REQUIRE(network.layers.size() == 2);
  CHECK_FALSE(network.layers[0].has_dgrad);
  CHECK(network.layers[0].work.forward_flops == sim::flops(200'000));
  CHECK(network.layers[0].work.wgrad_flops == sim::flops(200'000));
  CHECK(network.layers[0].work.weight_elements == 100'100);
  CHECK(network.layers[1].work.wgrad_flops == sim::flops(7));
  CHECK(network.layers[1].work.forward_elements == 300);
  CHECK(network.buffers.fp32_elements == 4);
  CHECK(s.ddp->model.empty());
}

TEST_CASE("ddp: a network's errors have a place") {
  const auto error = [](std::string_view from, std::string_view to) {
    std::string text(kNetwork);
    text.replace(text.find(from), from.size(), to);
    return error_of(ddp(text + kUsual));
  };
  CHECK(error("shape: [100]", "shape: [100], elements: 3") ==
        "s.yaml:8:7: ddp.model.parameters[2]: one of 'elements' and 'shape' is expected");
  CHECK(error("shape: [100]", "shape: [100, 0]") ==
        "s.yaml:8:7: ddp.model.parameters[2]: the sides of 'shape' must be positive, their product "
        "at most 2^53");
  CHECK(error("shape: [100]", "shape: [9000000000000, 9000000000000]").find("at most 2^53") !=
        std::string::npos);
  CHECK(error("parameters: [w2]", "parameters: [w3]").starts_with("s.yaml:5:14: ddp.model: "));
  CHECK(error("parameters: [w2]", "parameters: [w3]").find("w3") != std::string::npos);
  CHECK(error("kind: norm", "kind: nrm")
            .starts_with("s.yaml:12:25: ddp.model.layers[1].kind: unknown layer kind 'nrm'; did "
                         "you mean 'norm'?"));
  CHECK(error("forward_flops: 2e5", "forward_flops: 2e50")
            .starts_with("s.yaml:10:68: ddp.model.layers[0].forward_flops: 2e+50 is out of range"));
  CHECK(error("buffers:", "bufers:").starts_with("s.yaml:13:5: ddp.model: unknown key 'bufers'"));
  CHECK(error_of(ddp(std::string(kNetwork) + "image_size: 3, " + kUsual)) ==
        "s.yaml:5:14: ddp.model: sequence_length and image_size belong to models known by name");
}

}  // namespace
}  // namespace railyard::scenarios
