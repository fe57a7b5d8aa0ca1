// The network value: validation, gradient order, sums and traffic.
#include "models/nn/network.h"

#include <doctest/doctest.h>

#include <limits>

#include "models/nn/builder.h"

using namespace railyard;
using namespace railyard::models;

namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

NetworkSpec toy() {
  return {.name = "toy",
          .parameters = {{.name = "embed", .shape = {100, 8}},
                         {.name = "fc.weight", .shape = {8, 8}},
                         {.name = "fc.bias", .shape = {8}}},
          .layers = {{.name = "embed", .kind = LayerKind::embedding, .parameters = {"embed"}},
                     {.name = "fc", .parameters = {"fc.weight", "fc.bias"}},
                     {.name = "head", .parameters = {"embed"}}}};
}

std::string refusal(NetworkSpec spec) { return validate(std::move(spec)).error().message; }

std::string arrival_text(const NeuralNetwork& network) {
  std::string text;
  for (const auto& arrival : gradient_order(network).arrivals)
    text += (text.empty() ? "" : " ") + network.parameters()[arrival.parameter].name;
  return text;
}

}  // namespace

TEST_CASE("network: a valid specification keeps its orders and resolves names") {
  const NeuralNetwork network = validate(toy()).value();
  CHECK(network.name() == "toy");
  CHECK(network.parameters()[0].elements == 800);
  CHECK(network.layers()[1].parameters == std::vector<std::uint32_t>{1, 2});
  CHECK(parameter_count(network) == 872);
  CHECK(parameter_bytes(network) == sim::bytes(3488));
}

TEST_CASE("network: every mistake in a specification has its own message") {
  NetworkSpec spec = toy();
  spec.parameters.clear();
  CHECK(refusal(spec) == "network 'toy' has no parameters");
  spec = toy();
  spec.layers.clear();
  CHECK(refusal(spec) == "network 'toy' has no layers");
  spec = toy();
  spec.parameters[1].name = "";
  CHECK(refusal(spec) == "network 'toy': parameter 1 has no name");
  spec = toy();
  spec.parameters[2].name = "embed";
  CHECK(refusal(spec) ==
        "network 'toy', parameter 'embed': duplicate name (a tied weight is listed once and named "
        "by every layer using it)");
  spec = toy();
  spec.layers[1].parameters[0] = "fc.wieght";
  CHECK(refusal(spec) ==
        "network 'toy', layer 'fc': unknown parameter 'fc.wieght'; did you mean 'fc.weight'?");
  spec = toy();
  spec.buffers.fp32_elements = -1;
  CHECK(refusal(spec) == "network 'toy': buffer elements must not be negative");
}

TEST_CASE("network: sizes must be positive, agree and fit") {
  NetworkSpec spec = toy();
  spec.parameters[0].shape.clear();
  CHECK(refusal(spec) ==
        "network 'toy', parameter 'embed': the number of elements must be positive");
  spec.parameters[0].elements = -4;
  CHECK(refusal(spec) ==
        "network 'toy', parameter 'embed': the number of elements must be positive");
  spec.parameters[0].elements = 4;
  CHECK(validate(spec).ok());
  spec.parameters[0].shape = {5};
  CHECK(refusal(spec) ==
        "network 'toy', parameter 'embed': the number of elements is not the product of the shape");
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{3, 0}, std::vector<std::int64_t>{kHuge, kHuge, kHuge}}) {
    spec.parameters[0].shape = shape;
    CHECK(refusal(spec) ==
          "network 'toy', parameter 'embed': every dimension must be positive and "
          "their product fit 63 bits");
  }
  spec.parameters[0].shape = {kHuge / 2};
  spec.parameters[0].elements = 0;
  CHECK(refusal(spec) ==
        "network 'toy', parameter 'embed': the bytes of all parameters exceed 63 bits");
}

TEST_CASE("network: negative or overflowing work is refused") {
  const auto with = [](LayerWork work) {
    NetworkSpec spec = toy();
    spec.layers[1].work = work;
    return refusal(spec);
  };
  const auto message = [](const char* what) {
    return std::string("network 'toy', layer 'fc': ") + what + " must not be negative";
  };
  CHECK(with({.forward_flops = sim::flops(-1)}) == message("forward FLOPs"));
  CHECK(with({.dgrad_flops = sim::flops(-1)}) == message("dgrad FLOPs"));
  CHECK(with({.wgrad_flops = sim::flops(-1)}) == message("wgrad FLOPs"));
  CHECK(with({.forward_elements = -1}) == message("forward elements"));
  CHECK(with({.dgrad_elements = -1}) == message("dgrad elements"));
  CHECK(with({.wgrad_elements = -1}) == message("wgrad elements"));
  CHECK(with({.weight_elements = -1}) == message("weight elements"));
  CHECK(with({.gradient_elements = -1}) == message("gradient elements"));
  const char* too_much =
      "network 'toy', layer 'fc': the work of all layers up to here exceeds 63 bits";
  CHECK(with({.forward_flops = sim::flops(kHuge), .wgrad_flops = sim::flops(kHuge)}) == too_much);
  CHECK(with({.forward_elements = kHuge / 4}) == too_much);
}

TEST_CASE("network: a tied weight arrives after its last use in backward, gemm bias first") {
  CHECK(arrival_text(validate(toy()).value()) == "fc.bias fc.weight embed");
}

TEST_CASE("network: kinds other than gemm release the weight first") {
  for (const auto& kind : sim::EnumTable<LayerKind>::entries) {
    CAPTURE(kind.name);
    NetworkSpec spec = toy();
    spec.layers[1].kind = kind.value;
    CHECK(arrival_text(validate(spec).value()) ==
          (kind.value == LayerKind::gemm ? "fc.bias fc.weight embed" : "fc.weight fc.bias embed"));
  }
}

TEST_CASE("network: reuse, unused and frozen parameters in the gradient order") {
  NetworkSpec spec = toy();
  spec.parameters.push_back({.name = "spare", .elements = 1});
  spec.parameters.push_back({.name = "frozen", .elements = 1, .requires_grad = false});
  spec.layers.push_back({.name = "again", .parameters = {"fc.weight", "fc.bias", "frozen"}});
  const NeuralNetwork network = validate(spec).value();
  const GradientOrder order = gradient_order(network);
  CHECK(order.arrivals == std::vector<GradientOrder::Arrival>{{2, 1}, {1, 1}, {0, 0}});
  CHECK(order.unused == std::vector<std::uint32_t>{3});
  CHECK(gradient_bytes(network) == parameter_bytes(network) - sim::bytes(4));
}

TEST_CASE("network: totals by element type") {
  NetworkSpec spec = toy();
  spec.parameters[1].dtype = Dtype::bf16;
  const auto totals = parameter_totals(validate(spec).value());
  REQUIRE(totals.size() == 2);
  CHECK(totals[0].dtype == Dtype::fp32);
  CHECK(totals[0].elements == 808);
  CHECK(totals[0].size == sim::bytes(3232));
  CHECK(totals[1].dtype == Dtype::bf16);
  CHECK(totals[1].size == sim::bytes(128));
}

TEST_CASE("network: one Linear, by hand") {
  NetworkBuilder net("mlp", Dtype::fp32);
  net.linear("a", 4, 6);
  net.linear("b", 6, 2);
  net.run_linear("a", 10);  // 10 rows per sample
  net.run_linear("b", 10);
  const NeuralNetwork network = validate(std::move(net).spec()).value();
  const Layer& a = network.layers()[0];
  const Layer& b = network.layers()[1];
  CHECK(a.work.forward_flops == sim::flops(2 * 4 * 6 * 10));
  CHECK_FALSE(a.has_dgrad);
  CHECK(b.has_dgrad);
  // in 60, out 20 elements per sample; 14 weights once per kernel
  CHECK(forward_traffic(b, 3, Dtype::fp16) == sim::bytes(2 * (3 * 80 + 14)));
  CHECK(dgrad_traffic(b, 3, Dtype::fp32) == sim::bytes(4 * (3 * 80 + 14)));
  CHECK(wgrad_traffic(b, 3, Dtype::fp32) == sim::bytes(4 * (3 * 80 + 14)));
  CHECK(dgrad_traffic(a, 3, Dtype::fp32) == sim::bytes(0));
  // forward + wgrad of both, dgrad of b only
  CHECK(training_flops(network) == sim::flops(2 * 480 + 3 * 240));
  CHECK(forward_flops(network) == sim::flops(480 + 240));
}

TEST_CASE("network: memory-bound layers, in elements per activation element") {
  NetworkBuilder net("cnn", Dtype::fp32);
  net.conv("conv", 3, 8, 1);
  net.batch_norm("bn", 8);
  const Image image = net.run_conv("conv", {3, 5, 5}, {1, 1, 0});
  const std::int64_t n = image.elements();
  CHECK(n == 200);
  net.run_batch_norm("bn", n);
  net.run_elementwise("relu", n, n);
  net.run_add("add", n);
  net.run_norm("bn", n);
  const NetworkSpec spec = std::move(net).spec();
  CHECK(spec.layers[1].work.forward_elements == 3 * n);  // BN: x twice, y
  CHECK(spec.layers[1].work.dgrad_elements == 5 * n);    // x twice, dy twice, dx
  CHECK(spec.layers[2].work.forward_elements == 2 * n);  // ReLU
  CHECK(spec.layers[2].work.dgrad_elements == 3 * n);
  CHECK(spec.layers[3].work.forward_elements == 3 * n);  // addition: 2 + 1
  CHECK(spec.layers[4].work.forward_elements == 2 * n);  // LN
  CHECK(spec.buffers.fp32_elements == 16);
  CHECK(spec.buffers.int64_elements == 1);
}

TEST_CASE("network: traffic saturates instead of overflowing") {
  Layer layer;
  layer.work.forward_elements = kHuge / 16;
  CHECK(forward_traffic(layer, kHuge, Dtype::fp64) == sim::bytes(kHuge));
}

TEST_CASE("network: element types and layer kinds print and parse") {
  for (const auto& entry : sim::EnumTable<Dtype>::entries) {
    CHECK(sim::parse_enum<Dtype>(entry.name).value() == entry.value);
    CHECK(element_size(entry.value) > 0);
  }
  CHECK(element_size(Dtype::bf16) == 2);
  CHECK(element_size(Dtype::fp64) == 8);
  CHECK(sim::parse_enum<Dtype>("bf61").error().message.find("did you mean 'bf16'") !=
        std::string::npos);
  CHECK(sim::to_text(LayerKind::attention) == "attention");
}
