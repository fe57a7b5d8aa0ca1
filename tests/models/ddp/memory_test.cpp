#include "models/ddp/memory.h"

#include <doctest/doctest.h>

namespace railyard::models {
namespace {

// 1000 FP32 and 500 FP16 elements that are trained, 100 FP32 that are not; buffers of 10 x 4 and
// 2 x 8 bytes. Trained: 4,000 + 1,000 B.
NeuralNetwork network() {
  NetworkSpec spec;
  spec.name = "small";
  spec.parameters = {{.name = "a", .elements = 1'000},
                     {.name = "b", .elements = 500, .dtype = Dtype::fp16},
                     {.name = "c", .elements = 100, .requires_grad = false}};
  spec.layers = {{.name = "l", .parameters = {"a", "b", "c"}}};
  spec.buffers = {.fp32_elements = 10, .int64_elements = 2};
  return validate(spec).value();
}

TEST_CASE("memory: parameters, gradients, buckets and optimizer state") {
  DdpOptions options;
  options.optimizer_states = 2;
  const DdpMemory memory = ddp_memory(network(), options);
  CHECK(memory.parameters == 5'400 + 40 + 16);
  CHECK(memory.gradients == 5'000);
  CHECK(memory.buckets == 5'000);
  CHECK(memory.optimizer == 10'000);
  CHECK(memory.total() == 25'456);
}

TEST_CASE("memory: gradients that are views of the buckets are there once") {
  DdpOptions options;
  options.optimizer_states = 0;
  options.buckets.gradient_as_bucket_view = true;
  const DdpMemory memory = ddp_memory(network(), options);
  CHECK(memory.gradients == 0);
  CHECK(memory.total() == 5'456 + 5'000);
}

}  // namespace
}  // namespace railyard::models
