// DDP steps: one made by hand, whose every figure is known, and ResNet-50's sample against the
// model of the catalogue.
#include "calibrate/traces/ddp_step.h"

#include <numeric>

#include "calibrate/traces/ddp_network.h"
#include "calibrate/traces/gunzip.h"
#include "models/nn/catalogue.h"
#include "tests/calibrate/readers/support.h"
#include "tests/calibrate/traces/made_trace.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::tests::traces;   // NOLINT
using namespace railyard::calibrate;       // NOLINT
namespace models = railyard::models;

namespace {

// Two layers: conv (one gradient of 100 elements) and linear (two of 30 and 10), one bucket each.
MadeTrace made_step() {
  MadeTrace made;
  made.range(0, 1000, "ProfilerStep#3").range(20, 300, "DistributedDataParallel.forward");
  made.kernel(30, 35, 4, "zero");  // start: 30 host
  made.op(100, 50, "aten::conv2d", 10).op(110, 30, "aten::convolution", 10);
  made.kernel(120, 130, 20, "conv_fprop");  // conv: 90 host
  made.op(200, 50, "aten::linear", 11).op(205, 10, "aten::t", 11).op(220, 20, "aten::addmm", 12);
  made.kernel(230, 240, 10, "gemm");  // linear: 110 host
  made.backward(400, 80, "AddmmBackward0", 12);
  made.kernel(410, 420, 10, "gemm").kernel(440, 445, 15, "gemm");  // 180 and 30 host
  made.backward(490, 20, "torch::autograd::AccumulateGrad")
      .op(491, 10, "torch::distributed::reducer::mul_out");
  made.kernel(495, 500, 2, "mul");  // hook: 55 host
  made.backward(520, 60, "torch::autograd::AccumulateGrad")
      .op(521, 10, "torch::distributed::reducer::mul_out");
  made.kernel(525, 530, 2, "mul");  // hook: 30 host
  made.op(540, 20, "c10d::allreduce_").host(541, 1, "cudaStreamWaitEvent");
  made.collective(550, 560, 40, "allreduce", 40);  // 25 host
  made.backward(600, 60, "ConvolutionBackward0", 10);
  made.kernel(610, 620, 30, "wgrad");  // 60 host
  made.backward(670, 60, "torch::autograd::AccumulateGrad")
      .op(671, 10, "torch::distributed::reducer::mul_out");
  made.kernel(675, 680, 2, "mul");  // hook: 65 host
  made.op(690, 20, "c10d::allreduce_");
  made.collective(700, 705, 60, "allreduce", 100);  // 25 host
  const double copies[] = {750, 770, 790};
  const int sizes[] = {120, 40, 400};
  for (int i = 0; i < 3; ++i) {
    made.host(copies[i] - 5, 1, "cudaStreamWaitEvent");
    made.op(copies[i] - 1, 10, "torch.distributed.ddp.reducer::copy_bucket_to_grad");
    made.copy(copies[i], 800 + 5 * i, 2, sizes[i]);  // 50, 20, 20 host
  }
  made.range(850, 60, "Optimizer.step#SGD.step");
  made.kernel(860, 870, 12, "multi_tensor");  // 70 host, then 140
  return made;
}

TracedDdp step_of(const MadeTrace& made) {
  const GpuTrace trace = good(read_gpu_trace, made.text(), "t.json");
  const TraceSteps found = find_steps(trace);
  CHECK(is_ddp(trace, found.steps.front()));
  auto step = ddp_step(trace, found.steps.front());
  REQUIRE_MESSAGE(step.ok(), (step.ok() ? std::string() : step.error().text()));
  return std::move(step).value();
}

std::int64_t total_host(const TracedDdp& ddp) {
  std::int64_t sum = ddp.start.host_ns() + ddp.optimizer.host_ns();
  for (const TracedLayer& layer : ddp.layers)
    sum += layer.forward.host_ns() + layer.backward.host_ns();
  const auto gradients = static_cast<std::int64_t>(ddp.gradient_elements.size());
  return sum + gradients * (ddp.hook_ns + ddp.copy_back_ns) +
         static_cast<std::int64_t>(ddp.buckets.size()) * ddp.collective_ns;
}

}  // namespace

TEST_CASE("a DDP step by its landmarks: layers, gradients, buckets, and the host's time") {
  const TracedDdp ddp = step_of(made_step());
  REQUIRE(ddp.layers.size() == 2);
  CHECK(ddp.layers[0].name == "conv2d 1");
  CHECK(ddp.layers[0].kind == models::LayerKind::conv);
  CHECK(ddp.layers[1].name == "linear 1");
  CHECK(ddp.layers[1].kind == models::LayerKind::gemm);
  CHECK(ddp.start.host_ns() == 30'000);
  CHECK(ddp.layers[0].forward.before_ns == 90'000);
  CHECK(ddp.layers[0].forward.kernel_ns == 20'000);
  CHECK(ddp.layers[1].forward.before_ns == 110'000);
  CHECK(ddp.layers[1].backward.count == 2);
  CHECK(ddp.layers[1].backward.kernel_ns == 25'000);
  CHECK(ddp.layers[1].backward.host_ns() == 210'000);
  CHECK(ddp.layers[0].backward.before_ns == 60'000);
  CHECK(ddp.layers[1].gradients == std::vector<std::size_t>{0, 1});
  CHECK(ddp.layers[0].gradients == std::vector<std::size_t>{2});
  CHECK(ddp.gradient_elements == std::vector<std::int64_t>{30, 10, 100});
  CHECK(ddp.buckets == std::vector<std::int64_t>{160, 400});
  CHECK(ddp.dtype == "Float");
  CHECK(ddp.hook_ns == 50'000);  // (55 + 30 + 65) / 3
  CHECK(ddp.collective_ns == 25'000);
  CHECK(ddp.copy_back_ns == 30'000);  // (50 + 20 + 20) / 3
  CHECK_FALSE(ddp.bucket_view);
  CHECK(ddp.optimizer_name == "SGD");
  CHECK(ddp.optimizer.before_ns == 70'000);
  CHECK(ddp.optimizer.kernel_ns == 12'000);
  CHECK(ddp.optimizer.after_ns == 140'000);
  CHECK(ddp.notes.empty());
  CHECK(total_host(ddp) == 1'000'000);  // no nanosecond is lost
}

TEST_CASE("a host that waited for the GPU: its waiting is no host time") {
  MadeTrace made = made_step();
  made.host(870, 100, "cudaDeviceSynchronize");
  const TracedDdp ddp = step_of(made);
  CHECK(ddp.waited_ns == 100'000);
  CHECK(ddp.optimizer.after_ns == 40'000);
  CHECK(total_host(ddp) == 900'000);
}

TEST_CASE("what is no DDP step says what it lacks") {
  MadeTrace made;
  made.range(0, 100, "ProfilerStep#1").range(1, 50, "DistributedDataParallel.forward");
  made.op(2, 10, "aten::linear", 4).kernel(5, 6, 1, "gemm");
  made.backward(60, 10, "AddmmBackward0", 4).kernel(62, 63, 1, "gemm");
  const GpuTrace trace = good(read_gpu_trace, made.text(), "t.json");
  const auto step = ddp_step(trace, find_steps(trace).steps.front());
  REQUIRE_FALSE(step.ok());
  CHECK(step.error().text() ==
        "t.json: ProfilerStep#1 cannot be read as a DDP step: no gradient was accumulated in this "
        "step");
}

TEST_CASE("ResNet-50's trace gives ResNet-50: gradients, buckets, buffers") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const std::string packed = text_of(sample_path("traces/hta_resnet50"));
  const GpuTrace trace = good(read_gpu_trace, gunzip(packed, "r.gz").value(), "r.json");
  for (const TraceStep& step : find_steps(trace).steps) {
    CHECK(is_ddp(trace, step));
    const auto read = ddp_step(trace, step);
    REQUIRE(read.ok());
    const TracedDdp& ddp = read.value();
    CHECK(ddp.buckets == std::vector<std::int64_t>{8196000, 31502336, 26255360, 26550272, 9724160});
    CHECK(ddp.buffers.fp32_elements == 53'120);
    CHECK(ddp.buffers.int64_elements == 53);
    CHECK(ddp.waited_ns < 100'000);
    // The host was the limit: its times make up the step to the rounding of the means.
    const std::int64_t broadcasts = 2 * ddp.collective_ns;
    CHECK(std::abs(total_host(ddp) + broadcasts + ddp.waited_ns - step.duration_ns()) < 1'000);

    // The catalogue's ResNet-50, parameters in the order in which autograd finishes them.
    const models::NeuralNetwork model = models::build_model("resnet50", {}).value();
    const models::GradientOrder order = models::gradient_order(model);
    REQUIRE(ddp.gradient_elements.size() == order.arrivals.size());
    for (std::size_t g = 0; g < order.arrivals.size(); ++g)
      CHECK(ddp.gradient_elements[g] == model.parameters()[order.arrivals[g].parameter].elements);

    const models::NeuralNetwork network = models::validate(network_of(ddp, "r").value()).value();
    CHECK(models::parameter_count(network) == 25'557'032);
    const auto options = explain_buckets(ddp, network);
    REQUIRE(options);
    CHECK_FALSE(options->bucket_cap_mb);  // the default
  }
}

TEST_CASE("buckets of another cap are explained by it, of none by nothing") {
  TracedDdp ddp;
  ddp.dtype = "Float";
  TracedLayer layer;
  layer.name = "linear 1";
  layer.kind = models::LayerKind::gemm;
  constexpr std::int64_t kMebi = 1 << 20;
  for (std::size_t g = 0; g < 12; ++g) {
    layer.gradients.push_back(g);
    ddp.gradient_elements.push_back(kMebi);  // 4 MiB
  }
  ddp.layers.push_back(layer);
  const models::NeuralNetwork network = models::validate(network_of(ddp, "n").value()).value();
  // Cap 10: three gradients reach it, in the first bucket as well (an explicit cap).
  ddp.buckets.assign(4, 12 * kMebi);
  auto options = explain_buckets(ddp, network);
  REQUIRE(options);
  CHECK(options->bucket_cap_mb == 10);
  ddp.buckets = {20 * kMebi, 28 * kMebi};
  CHECK_FALSE(explain_buckets(ddp, network));
}
