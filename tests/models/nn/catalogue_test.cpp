// The catalogue against public parameter counts and FLOP figures.
#include "models/nn/catalogue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

using namespace railyard;
using namespace railyard::models;

namespace {

NeuralNetwork model(std::string_view name, const ModelOptions& options = {}) {
  return build_model(name, options).value();
}

std::string refusal(std::string_view name, const ModelOptions& options = {}) {
  return build_model(name, options).error().message;
}

double training_tera(std::string_view name, std::int64_t tokens) {
  return static_cast<double>(training_flops(model(name, {.sequence_length = tokens})).raw()) / 1e12;
}

double forward_giga(std::string_view name) {
  return static_cast<double>(forward_flops(model(name)).raw()) / 1e9;
}

const Layer& layer_named(const NeuralNetwork& network, std::string_view name) {
  const auto found = std::ranges::find(network.layers(), name, &Layer::name);
  REQUIRE(found != network.layers().end());
  return *found;
}

}  // namespace

TEST_CASE("catalogue: tensors and parameters of every model") {
  struct Row {
    const char* name;
    std::size_t tensors;
    std::int64_t parameters;
  };
  constexpr std::array rows{Row{"resnet50", 161, 25'557'032},
                            Row{"resnet18", 62, 11'689'512},
                            Row{"vgg16", 32, 138'357'544},
                            Row{"bert-base", 199, 109'482'240},
                            Row{"bert-large", 391, 335'141'888},
                            Row{"bert-base-pretraining", 206, 110'106'428},
                            Row{"bert-large-pretraining", 398, 336'226'108},
                            Row{"gpt2", 148, 124'439'808},
                            Row{"gpt2-medium", 292, 354'823'168},
                            Row{"gpt2-large", 436, 774'030'080},
                            Row{"gpt2-xl", 580, 1'557'611'200},
                            Row{"gpt3-175b", 1156, 174'604'259'328},
                            Row{"llama2-7b", 291, 6'738'415'616},
                            Row{"llama2-70b", 723, 68'976'648'192},
                            Row{"llama3-8b", 291, 8'030'261'248},
                            Row{"llama3-70b", 723, 70'553'706'496},
                            Row{"llama3-405b", 1137, 405'853'388'800},
                            Row{"vit-l-16", 296, 304'326'632},
                            Row{"mixtral-8x7b", 995, 46'702'792'704},
                            Row{"dlrm", 42, 24'036'595'969}};
  CHECK(rows.size() == model_names().size());
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const NeuralNetwork network = model(row.name);
    CHECK(network.parameters().size() == row.tensors);
    CHECK(parameter_count(network) == row.parameters);
    CHECK(parameter_bytes(network) == sim::bytes(4 * row.parameters));
  }
}

TEST_CASE("catalogue: every parameter of every model receives exactly one gradient") {
  for (const std::string_view name : model_names()) {
    CAPTURE(name);
    const NeuralNetwork network = model(name);
    const GradientOrder order = gradient_order(network);
    CHECK(order.unused.empty());
    CHECK(order.arrivals.size() == network.parameters().size());
    for (std::size_t i = 1; i < order.arrivals.size(); ++i)
      REQUIRE(order.arrivals[i].layer <= order.arrivals[i - 1].layer);
  }
}

TEST_CASE("catalogue: the first layer has no data gradient, all weights have a weight gradient") {
  for (const std::string_view name : model_names()) {
    CAPTURE(name);
    const NeuralNetwork network = model(name);
    CHECK_FALSE(network.layers().front().has_dgrad);
    for (const Layer& layer : network.layers()) {
      CAPTURE(layer.name);
      const bool product = layer.kind == LayerKind::gemm || layer.kind == LayerKind::conv;
      if (product && !layer.parameters.empty()) {
        std::int64_t elements = 0;
        for (const std::uint32_t p : layer.parameters) elements += network.parameters()[p].elements;
        REQUIRE(layer.work.gradient_elements == elements);
        REQUIRE(layer.work.wgrad_flops == layer.work.forward_flops);
      }
    }
  }
}

TEST_CASE("catalogue: forward FLOPs of the vision models") {
  CHECK(forward_giga("resnet50") == doctest::Approx(8.178).epsilon(0.0001));
  CHECK(forward_giga("vgg16") == doctest::Approx(30.94).epsilon(0.0005));
  CHECK(forward_giga("vit-l-16") == doctest::Approx(122.8 + 0.3).epsilon(0.0005));
  const NeuralNetwork resnet = model("resnet50");
  CHECK(static_cast<double>(training_flops(resnet).raw()) / 1e9 ==
        doctest::Approx(24.3).epsilon(0.002));
  // Training is three times forward, less the first layer's data gradient.
  CHECK(training_flops(resnet) ==
        3 * forward_flops(resnet) - layer_named(resnet, "conv1").work.forward_flops);
}

TEST_CASE("catalogue: training FLOPs per sequence of the language models") {
  struct Row {
    const char* name;
    std::int64_t tokens;
    double tera;
  };
  constexpr std::array rows{Row{"bert-base-pretraining", 128, 0.070},
                            Row{"bert-base-pretraining", 512, 0.301},
                            Row{"bert-large-pretraining", 128, 0.241},
                            Row{"bert-large-pretraining", 512, 1.020},
                            Row{"gpt2", 1024, 0.875},
                            Row{"gpt2-medium", 1024, 2.481},
                            Row{"gpt2-large", 1024, 5.324},
                            Row{"gpt2-xl", 1024, 10.520},
                            Row{"gpt3-175b", 2048, 2204},
                            Row{"llama2-7b", 4096, 188.8},
                            Row{"llama2-70b", 4096, 1820.6},
                            Row{"llama3-8b", 8192, 474.4},
                            Row{"llama3-70b", 8192, 3943.9},
                            Row{"llama3-405b", 8192, 21507},
                            Row{"mixtral-8x7b", 4096, 339.7}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CAPTURE(row.tokens);
    CHECK(training_tera(row.name, row.tokens) == doctest::Approx(row.tera).epsilon(0.002));
  }
}

TEST_CASE("catalogue: causal halving gives the 51.5 GFLOP per token that Megatron-Bridge prints") {
  const NeuralNetwork network = model("llama3-8b", {.causal_half = true});
  CHECK(static_cast<double>(training_flops(network).raw()) / 8192 / 1e9 ==
        doctest::Approx(51.5).epsilon(0.002));
}

TEST_CASE("catalogue: the active parameters of Mixtral") {
  const NeuralNetwork network = model("mixtral-8x7b");
  double active = 0;
  for (const Parameter& parameter : network.parameters()) {
    const bool routed = parameter.name.find(".experts.") != std::string::npos;
    active += static_cast<double>(parameter.elements) * (routed ? 2.0 / 8 : 1.0);
  }
  CHECK(active / 1e9 == doctest::Approx(12.88).epsilon(0.0005));
}

TEST_CASE("catalogue: dense part and sparse tables of DLRM") {
  const NeuralNetwork network = model("dlrm");
  std::int64_t dense = 0;
  std::int64_t rows = 0;
  for (const Parameter& parameter : network.parameters())
    (parameter.sparse ? rows : dense) +=
        parameter.sparse ? parameter.shape.front() : parameter.elements;
  CHECK(dense == 2'368'897);
  CHECK(rows == 187'767'399);
}

TEST_CASE("catalogue: buffers are batch norm's") {
  const Buffers resnet = model("resnet50").buffers();
  CHECK(resnet.fp32_elements == 53'120);
  CHECK(resnet.int64_elements == 53);
  CHECK(model("gpt2").buffers().fp32_elements == 0);
}

TEST_CASE("catalogue: run order differs from registration where the implementations do") {
  const NeuralNetwork llama = model("llama2-7b");
  CHECK(llama.parameters()[8].name == "layers.0.input_layernorm.weight");
  CHECK(llama.layers()[1].name == "layers.0.input_layernorm");
  const auto& arrivals = gradient_order(llama).arrivals;
  CHECK(llama.parameters()[arrivals.front().parameter].name == "lm_head.weight");
  CHECK(llama.parameters()[arrivals[arrivals.size() - 2].parameter].name ==
        "layers.0.input_layernorm.weight");

  const NeuralNetwork resnet = model("resnet50");
  const auto& conv = layer_named(resnet, "layer2.0.conv2");
  CHECK(conv.work.forward_flops == sim::flops(2LL * 128 * 128 * 9 * 28 * 28));  // v1.5 stride
}

TEST_CASE("catalogue: element type and sizes are options") {
  const NeuralNetwork half = model("gpt2", {.parameter_dtype = Dtype::bf16});
  CHECK(parameter_bytes(half) == sim::bytes(2 * 124'439'808LL));
  const NeuralNetwork large = model("vit-l-16", {.image_size = 384});
  CHECK(parameter_count(large) == 304'326'632 + (577 - 197) * 1024);
  CHECK(forward_flops(model("resnet50", {.image_size = 448})) >
        3 * forward_flops(model("resnet50")));
}

TEST_CASE("catalogue: the largest inputs still fit") {
  for (const char* name : {"llama3-405b", "llama2-70b", "mixtral-8x7b"})
    CHECK(build_model(name, {.sequence_length = 524'288}).ok());
  for (const char* name : {"resnet50", "vgg16", "vit-l-16"})
    CHECK(build_model(name, {.image_size = 8'192}).ok());
  for (const char* name : {"resnet50", "resnet18", "vgg16", "vit-l-16"})
    CHECK(build_model(name, {.image_size = 32}).ok());
}

TEST_CASE("catalogue: wrong names and options") {
  CHECK(refusal("resnet51").starts_with("unknown model 'resnet51'; did you mean 'resnet50'?"));
  CHECK(refusal("alexnet").find("(one of: resnet18, resnet50,") != std::string::npos);
  CHECK(build_model("ResNet50").ok());
  CHECK(refusal("resnet50", {.sequence_length = 128}) == "model 'resnet50' has no sequence length");
  CHECK(refusal("gpt2", {.image_size = 224}) == "model 'gpt2' has no image size");
  CHECK(refusal("dlrm", {.sequence_length = 1}) == "model 'dlrm' has no sequence length");
  CHECK(refusal("gpt2", {.sequence_length = 1025}) == "sequence length 1025 is outside 1..1024");
  CHECK(refusal("llama2-7b", {.sequence_length = 0}) == "sequence length 0 is outside 1..524288");
  CHECK(refusal("vgg16", {.image_size = 16}) == "image size 16 is outside 32..8192");
  CHECK(refusal("vit-l-16", {.image_size = 225}) ==
        "image size 225 is not a multiple of the patch size 16");
  CHECK(model_descriptions().size() == model_names().size());
}
