// The roofline by hand. On this GPU every number is exact: HBM 1000 GB/s x 0.5 moves 1 byte in
// 2 ps; FP32 peak 1 TFLOP/s, TF32 4, FP16 and BF16 8, GEMMs at 1/2 and convolutions at 1/4 of them.
#include "models/compute/kernels.h"

#include <doctest/doctest.h>

#include <string>

#include "models/ddp/step.h"

namespace railyard::models {
namespace {

using namespace sim::literals;
using sim::KernelBound;

sim::GpuParameters gpu() {
  sim::GpuParameters gpu;
  gpu.peak_fp32 = {1e12};
  gpu.peak_tf32 = {4e12};
  gpu.peak_fp16 = {8e12};
  gpu.hbm_bandwidth = 1'000_GBps;
  gpu.memory_efficiency = 0.5;
  gpu.gemm_efficiency = 0.5;
  gpu.conv_efficiency = 0.25;
  gpu.min_kernel_time = {};
  return gpu;
}

// FLOPs become time through a double, rounded up: a product that is not exact costs a picosecond.
bool takes(sim::Duration time, sim::Duration expected) {
  return time >= expected && time <= expected + 1_ps;
}

// 1000 FLOPs per sample each way; 10 elements in + out per sample; 100 elements of weights.
Layer layer(LayerKind kind) {
  Layer layer;
  layer.kind = kind;
  layer.work = usual_work(kind, sim::flops(1'000), 6, 4, 100);
  return layer;
}

TEST_CASE("a kernel bound by arithmetic: FLOPs over efficiency times peak") {
  // 4 samples: 4000 FLOPs at 0.5 TFLOP/s = 8000 ps; memory (4 x 10 + 100) x 4 B x 2 ps = 1120 ps.
  const KernelModel model(gpu(), Dtype::fp32);
  const KernelTime time = model.forward(layer(LayerKind::gemm), 4);
  CHECK(takes(time.time, 8'000_ps));
  CHECK(time.bound == KernelBound::compute);
  // The convolution's efficiency is half of the GEMM's.
  CHECK(takes(model.forward(layer(LayerKind::conv), 4).time, 16'000_ps));
}

// 8000 ps of arithmetic, 440 of memory: both shorter than 9 ns. Nothing to do takes no time.
TEST_CASE("a kernel takes at least the minimum, if there is one at all") {
  sim::GpuParameters slow = gpu();
  slow.min_kernel_time = 9_ns;
  const KernelModel model(slow, Dtype::fp32);
  CHECK(model.forward(layer(LayerKind::gemm), 4).time == 9_ns);
  CHECK(model.forward(layer(LayerKind::gemm), 4).bound == KernelBound::compute);
  CHECK(model.move(220_B).time == 9_ns);
  CHECK(model.move(220_B).bound == KernelBound::memory);
  CHECK(takes(model.forward(layer(LayerKind::gemm), 8).time, 16'000_ps));
  CHECK(model.move({}).time == 0_ns);
  CHECK(sim::GpuParameters{}.min_kernel_time == 1'400_ns);
}

TEST_CASE("a kernel bound by memory: bytes over the reachable HBM rate") {
  // In FP16: 4000 FLOPs at 4 TFLOP/s = 1000 ps against 140 x 2 B x 2 ps = 560 ps; with one sample
  // 250 ps against (10 + 100) x 2 B x 2 ps = 440 ps.
  const KernelModel model(gpu(), Dtype::fp16);
  CHECK(takes(model.forward(layer(LayerKind::gemm), 4).time, 1'000_ps));
  CHECK(model.forward(layer(LayerKind::gemm), 4).bound == KernelBound::compute);
  const KernelTime one = model.forward(layer(LayerKind::gemm), 1);
  CHECK(one.time == 440_ps);
  CHECK(one.bound == KernelBound::memory);
}

TEST_CASE("without FLOPs only memory counts") {
  const KernelModel model(gpu(), Dtype::fp32);
  Layer norm = layer(LayerKind::norm);
  norm.work.forward_flops = {};
  const KernelTime time = model.forward(norm, 1);
  CHECK(time.time == 880_ps);  // (10 + 100) x 4 B x 2 ps
  CHECK(time.bound == KernelBound::memory);
}

TEST_CASE("dgrad and wgrad have their own work and traffic") {
  const KernelModel model(gpu(), Dtype::fp32);
  Layer one = layer(LayerKind::gemm);
  one.work.dgrad_flops = sim::flops(2'000);
  one.work.wgrad_flops = sim::flops(3'000);
  CHECK(takes(model.dgrad(one, 2).time, 8'000_ps));
  CHECK(takes(model.wgrad(one, 2).time, 12'000_ps));
  one.work.dgrad_flops = one.work.wgrad_flops = {};
  one.work.dgrad_elements = 20;  // + 100 weights read:     120 x 4 B x 2 ps
  one.work.wgrad_elements = 30;  // + 50 gradients written:  80 x 4 B x 2 ps
  one.work.gradient_elements = 50;
  CHECK(model.dgrad(one, 1).time == 960_ps);
  CHECK(model.wgrad(one, 1).time == 640_ps);
}

TEST_CASE("each precision has its peak, TF32 is FP32 where the GPU has none") {
  const auto time = [](Dtype compute, const sim::GpuParameters& on) {
    return KernelModel(on, compute).forward(layer(LayerKind::gemm), 1'000).time;
  };
  // 1e6 FLOPs at half of 1, 4, 8 TFLOP/s; memory is below 100 ns in each.
  CHECK(time(Dtype::fp32, gpu()) == 2'000'000_ps);
  CHECK(time(Dtype::tf32, gpu()) == 500'000_ps);
  CHECK(time(Dtype::fp16, gpu()) == 250'000_ps);
  CHECK(time(Dtype::bf16, gpu()) == 250'000_ps);
  sim::GpuParameters volta = gpu();
  volta.peak_tf32 = {0};
  CHECK(time(Dtype::tf32, volta) == 2'000'000_ps);
}

TEST_CASE("TF32 moves four bytes per element, half precision two") {
  sim::GpuParameters fast = gpu();
  fast.peak_tf32 = fast.peak_fp16 = {1e18};
  const Layer one = layer(LayerKind::gemm);
  CHECK(KernelModel(fast, Dtype::tf32).forward(one, 1).time == 880_ps);
  CHECK(KernelModel(fast, Dtype::bf16).forward(one, 1).time == 440_ps);
}

TEST_CASE("moving bytes takes their time at the reachable rate, rounded up") {
  const KernelModel model(gpu(), Dtype::fp32);
  CHECK(model.move(1'000_B).time == 2'000_ps);
  CHECK(model.move(1'000_B).bound == KernelBound::memory);
  CHECK(model.move({}).time == 0_ps);
  sim::GpuParameters third = gpu();
  third.hbm_bandwidth = 1'500_GBps;  // 4/3 ps a byte
  CHECK(KernelModel(third, Dtype::fp32).move(1_B).time == 2_ps);
  CHECK(KernelModel(third, Dtype::fp32).move(3_B).time == 4_ps);
}

// A network of `count` parameters of 1000 elements in one layer.
NeuralNetwork network(int count) {
  NetworkSpec spec;
  spec.name = "wide";
  LayerSpec all;
  all.name = "all";
  all.kind = LayerKind::norm;
  for (int i = 0; i < count; ++i) {
    spec.parameters.push_back({.name = "p" + std::to_string(i), .elements = 1'000});
    all.parameters.push_back("p" + std::to_string(i));
  }
  spec.layers.push_back(all);
  auto valid = validate(std::move(spec));
  REQUIRE(valid.ok());
  return std::move(valid).value();
}

DdpProgram program(int parameters, const DdpOptions& options) {
  sim::Trace trace(1);
  auto built =
      build_ddp_program(network(parameters), options, KernelModel(gpu(), options.compute), trace);
  REQUIRE(built.ok());
  return std::move(built).value();
}

TEST_CASE("the optimizer moves its bytes per parameter, in launches of 48 tensors") {
  // 12 B a parameter: SGD reads gradient and weight and writes the weight; 20 with momentum, 28
  // for Adam. 48 x 1000 parameters x 2 ps a byte.
  for (const std::int64_t bytes : {12, 20, 28}) {
    DdpOptions options;
    options.optimizer_bytes = bytes;
    const DdpProgram one = program(48, options);
    REQUIRE(one.optimizer.kernels.size() == 1);
    CHECK(one.optimizer.kernels[0].alone == sim::picoseconds(48'000 * 2 * bytes));
    CHECK(one.optimizer.kernels[0].bound == KernelBound::memory);
  }
  DdpOptions options;
  options.optimizer_bytes = 20;
  const DdpProgram two = program(49, options);  // two launches of equal parts
  REQUIRE(two.optimizer.kernels.size() == 2);
  CHECK(two.optimizer.kernels[0].alone == sim::picoseconds(49'000 * 2 * 20 / 2));
  options.optimizer_bytes = 0;
  CHECK(program(49, options).optimizer.kernels.empty());
}

TEST_CASE("DDP's copies read and write a gradient each, bucket views need no copy back") {
  DdpOptions options;
  const DdpProgram usual = program(3, options);
  REQUIRE(usual.copy_in.size() == 3);
  REQUIRE(usual.copy_out.size() == 3);
  CHECK(usual.copy_in[0].alone == 16'000_ps);  // 4000 B read + 4000 B written, 2 ps each
  CHECK(usual.copy_out[2].alone == 16'000_ps);
  options.buckets.gradient_as_bucket_view = true;
  CHECK(program(3, options).copy_in.size() == 3);  // the division stays
  CHECK(program(3, options).copy_out.empty());
}

TEST_CASE("autocast adds one cast of the weights per layer, recompute one forward in backward") {
  DdpOptions options;
  options.compute = Dtype::fp16;
  CHECK(program(3, options).forward.size() == 1);
  options.autocast = true;
  NetworkSpec spec;
  spec.name = "gemm";
  spec.parameters.push_back({.name = "w", .elements = 1'000});
  LayerSpec one;
  one.name = "one";
  one.parameters = {"w"};
  one.work = usual_work(LayerKind::gemm, sim::flops(1'000'000), 6, 4, 1'000);
  one.has_dgrad = false;
  spec.layers = {one, one};
  spec.layers[1].has_dgrad = true;
  auto valid = validate(std::move(spec));
  REQUIRE(valid.ok());
  sim::Trace trace(1);
  options.recompute = true;
  auto built = build_ddp_program(valid.value(), options, KernelModel(gpu(), Dtype::fp16), trace);
  REQUIRE(built.ok());
  const DdpProgram& both = built.value();
  REQUIRE(both.forward.size() == 2);
  REQUIRE(both.forward[0].kernels.size() == 2);           // cast, layer
  CHECK(both.forward[0].kernels[0].alone == 12'000_ps);   // 1000 x (4 read + 2 written) B x 2 ps
  CHECK(both.forward[0].kernels[1].alone == 250'000_ps);  // 1e6 FLOPs at 4 TFLOP/s
  REQUIRE(both.backward.size() == 2);
  CHECK(both.backward[0].kernels.size() == 3);  // recomputed forward, dgrad, wgrad
  CHECK(both.backward[1].kernels.size() == 2);  // the first layer has no dgrad
  CHECK(both.backward[0].kernels[0].alone == 250'000_ps);
  CHECK(both.backward[0].parameters.empty());  // the weight is complete after its first use
  CHECK(both.backward[1].parameters == std::vector<std::uint32_t>{0});
}

}  // namespace
}  // namespace railyard::models
