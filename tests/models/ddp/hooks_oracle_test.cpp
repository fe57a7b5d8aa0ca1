// PowerSGD's payloads and join()'s calls against PyTorch itself (tests/oracle/ddp_hooks.py).
#include <doctest/doctest.h>

#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "models/ddp/join.h"
#include "models/ddp/step.h"
#include "tests/paths.h"
#include "tests/skip.h"

using namespace railyard;
using namespace railyard::models;

namespace {

// The twin of Toy in the script, in registration order; it runs in that order too.
NeuralNetwork toy() {
  NetworkSpec spec;
  spec.name = "toy";
  spec.buffers = {.fp32_elements = 16, .int64_elements = 1};
  const auto layer = [&](const std::string& name, LayerKind kind,
                         std::vector<std::int64_t> weight) {
    spec.parameters.push_back({.name = name + ".weight", .shape = weight});
    spec.parameters.push_back({.name = name + ".bias", .shape = {weight.front()}});
    spec.layers.push_back(
        {.name = name, .kind = kind, .parameters = {name + ".weight", name + ".bias"}});
  };
  layer("conv", LayerKind::conv, {8, 3, 3, 3});
  layer("bn", LayerKind::norm, {8});
  layer("fc1", LayerKind::gemm, {20, 128});
  layer("fc2", LayerKind::gemm, {20, 20});
  layer("fc3", LayerKind::gemm, {4, 20});
  return validate(std::move(spec)).value();
}

DdpOptions toy_options() {
  DdpOptions options;
  options.iterations = 4;
  options.buckets.version = {1, 13};
  options.buckets.bucket_cap_mb = 0.004;
  options.buckets.first_bucket_bytes = sim::bytes(1024);
  options.hook.power_sgd.start_iter = 2;
  return options;
}

std::vector<std::int64_t> reduced(const DdpOptions& options, std::int64_t iteration) {
  const NeuralNetwork network = toy();
  const BucketPlan plan = plan_buckets(network, options.buckets).value();
  std::vector<std::int64_t> elements;
  for (const auto& bucket : ddp_calls(network, plan, options, iteration).buckets)
    for (const DdpCall& call : bucket) elements.push_back(call.size.raw() / call.element_size);
  std::ranges::sort(elements);
  return elements;
}

// What the script writes, line by line.
std::vector<std::string> torch_says() {
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("railyard_hooks_oracle_{}", getpid());
  const int status =
      std::system(fmt::format("'{}' '{}/tests/oracle/ddp_hooks.py' '{}'", RAILYARD_TORCH_PYTHON,
                              RAILYARD_SOURCE_DIR, path.string())
                      .c_str());
  REQUIRE(status == 0);
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::filesystem::remove(path);
  return lines;
}

// "r1" and "b" as the script writes them: DDP.forward under join(), then the end of the context.
std::string join_calls(const DdpOptions& options) {
  const NeuralNetwork network = toy();
  const BucketPlan plan = plan_buckets(network, options.buckets).value();
  std::string text;
  const auto small = [&](const DdpCalls& calls, JoinCall call) {
    const DdpCall& one = calls.join[static_cast<std::size_t>(call)];
    text += fmt::format(" r{}", one.size.raw() / one.element_size);
  };
  for (std::int64_t i = 1; i <= options.iterations; ++i) {
    const DdpCalls calls = ddp_calls(network, plan, options, i);
    small(calls, JoinCall::not_joined);
    if (!calls.buffers.empty()) small(calls, JoinCall::common_rank);
    if (!calls.buffers.empty()) text += " b";
    small(calls, JoinCall::will_reduce);
    if (i < options.iterations) continue;
    small(calls, JoinCall::not_joined);
    small(calls, JoinCall::common_rank);
    if (!calls.final_model.empty()) text += " b";
  }
  return text;
}

}  // namespace

TEST_CASE("[oracle] hooks: PyTorch's PowerSGD and join() make the calls that we make") {
  if (std::string(RAILYARD_TORCH_PYTHON).empty())
    RAILYARD_SKIP_ORACLE("no python3 with torch was found when the build was configured");
  int payloads = 0;
  int joins = 0;
  for (const std::string& line : torch_says()) {
    CAPTURE(line);
    std::istringstream words(line);
    std::string what;
    words >> what;
    DdpOptions options = toy_options();
    if (what == "join") {
      int rank = 0;
      words >> rank;
      std::string calls;
      std::getline(words, calls);
      options.iterations = 3;
      options.ranks = 2;
      options.join = {3, 2};
      CHECK(calls == join_calls(options));
      ++joins;
      continue;
    }
    std::int64_t iteration = 0;
    PowerSgdOptions& power_sgd = options.hook.power_sgd;
    options.hook.kind = what == "batched" ? CommHook::batched_power_sgd : CommHook::power_sgd;
    words >> power_sgd.matrix_approximation_rank >> power_sgd.min_compression_rate >> iteration;
    std::vector<std::int64_t> theirs;
    for (std::int64_t elements = 0; words >> elements;) theirs.push_back(elements);
    CHECK(theirs == reduced(options, iteration));
    ++payloads;
  }
  CHECK(payloads == 32);
  CHECK(joins == 2);
}
