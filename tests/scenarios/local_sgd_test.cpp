// post-local SGD and DiLoCo: which group reduces when, bytes, order, and what is refused.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/local_sgd/local_sgd.h"
#include "scenarios/training_result.h"
#include "tests/scenarios/run_helpers.h"
#include "tests/scenarios/toy_network.h"

namespace railyard::scenarios {
namespace {

using namespace tests;

const std::string kPost =
    "  algorithm: post_localSGD\n  start_localSGD_iter: 3\n  period: 2\n  subgroup: pair\n"
    "  iterations: 3\n";
const std::string kDiloco = "  algorithm: DiLoCo\n  period: 3\n  subgroup: pair\n  iterations: 3\n";

std::int64_t parameters() { return toy_elements() * 4; }
std::int64_t buffers() { return kToyBuffers * 4 + kToyCounters * 8; }

// Over n ranks in pairs, in all: AllReduce over everybody 2 (n-1) p; in n/2 pairs n/2 x 2 p.
TEST_CASE("local_sgd: bytes of every iteration of post-local SGD") {
  for (const std::int64_t n : {4, 8}) {
    const std::string job = toy_job("local_sgd", kPost, n);
    const auto bytes = [&](std::int64_t i) { return bytes_of_iteration(job, "local_sgd", i); };
    const std::int64_t everywhere = 2 * (n - 1) * parameters();
    const std::int64_t pairs = n * parameters();
    const std::int64_t broadcast = (n - 1) * buffers();
    CHECK(bytes(3) == everywhere + broadcast);          // still DDP
    CHECK(bytes(4) == pairs + everywhere + broadcast);  // step 3: warm-up over, averaged at once
    CHECK(bytes(5) == pairs + broadcast);
    CHECK(bytes(6) == pairs + everywhere + broadcast);
    CHECK(bytes(7) == pairs + broadcast);
  }
}

TEST_CASE("local_sgd: without gradient reduction local iterations send buffers only") {
  const std::string job =
      toy_job("local_sgd",
              "  algorithm: post_localSGD\n  start_localSGD_iter: 3\n  period: 4\n  iterations: 3\n"
              "  post_local_gradient_allreduce: false\n",
              4);
  CHECK(bytes_of_iteration(job, "local_sgd", 5) == 3 * buffers());
  CHECK(bytes_of_iteration(job, "local_sgd", 5, {"local_sgd.broadcast_buffers=false"}) == 0);
}

// Workers are pairs; DDP inside, buffers too. The outer gradient goes over all ranks, or over one
// rank of each worker.
TEST_CASE("local_sgd: bytes of DiLoCo's inner and outer steps") {
  for (const std::int64_t n : {4, 8}) {
    const std::string job = toy_job("local_sgd", kDiloco, n);
    const std::int64_t inner = n * parameters() + n / 2 * buffers();
    CHECK(bytes_of_iteration(job, "local_sgd", 4) == inner);
    CHECK(bytes_of_iteration(job, "local_sgd", 5) == inner);
    CHECK(bytes_of_iteration(job, "local_sgd", 6) == inner + 2 * (n - 1) * parameters());
    CHECK(bytes_of_iteration(job, "local_sgd", 6, {"local_sgd.average_group=peers"}) ==
          inner + 2 * 2 * (n / 2 - 1) * parameters());
  }
}

TEST_CASE("local_sgd: the average over H iterations is that of the formula") {
  // One GPU a worker: 2 p (N-1)/N per rank every H steps.
  const std::string job =
      toy_job("local_sgd", "  algorithm: DiLoCo\n  period: 5\n  iterations: 10\n", 4);
  CHECK(bytes_moved(traced_run(job)) == 2 * 2 * 3 * parameters());
}

TEST_CASE("local_sgd: what runs where, and after what") {
  const RunResult result = traced_run(toy_job("local_sgd", kPost, 4), {"local_sgd.iterations=5"});
  const auto world = names_on(result, 1, "world");
  const auto pair = names_on(result, 1, "pair");
  const auto of = [](const std::vector<std::string>& names, std::string_view name) {
    return std::ranges::count(names, name);
  };
  // One bucket, then those of the rebuild: w3 (32 KB) and w2 (16 MB) pass the first MiB, w1 and w0
  // (10 MB) are left.
  CHECK(of(world, "AllReduce bucket") == 1 + 2 + 2);
  CHECK(of(pair, "AllReduce bucket") == 2 * 2);
  CHECK(of(world, "AllReduce parameters") == 1);
  CHECK(of(world, "Broadcast buffers") == 5 * 2);
  CHECK(of(world, "Broadcast bucket layout") == 2);
  const auto compute = names_on(result, 1, "compute");
  CHECK(of(compute, "divide bucket") == 1 + 4 * 2);
  // Averaging is behind the optimizer, and nothing of the next step before it.
  sim::Time optimizer{}, averaged{};
  std::vector<sim::Span> spans = result.spans;
  std::ranges::stable_sort(spans, {}, &sim::Span::start);
  int forwards = 0;
  for (const sim::Span& span : spans) {
    if (span.rank != 1) continue;
    const std::string& name = result.span_names[span.name];
    if (name == "optimizer") optimizer = span.end;
    if (name == "flatten parameters") CHECK(span.start >= optimizer);
    if (name == "AllReduce parameters") averaged = span.end;
    if (name == "l0" && averaged != sim::Time{}) {
      CHECK(span.start >= averaged);
      ++forwards;
    }
  }
  CHECK(forwards == 1);
  CHECK(std::ranges::any_of(result.notes, [](const std::string& note) {
    return note.starts_with(
        "parameters were averaged in 1 of 5 iterations; the last one, which is "
        "shown, is one without averaging");
  }));
}

TEST_CASE("local_sgd: which iterations average") {
  models::LocalSgdOptions options{.start = 3, .period = 4};
  std::vector<std::int64_t> found;
  for (std::int64_t i = 1; i <= 12; ++i)
    if (models::averages(options, i)) found.push_back(i);
  CHECK(found == std::vector<std::int64_t>{4, 8, 12});
  options.algorithm = models::LocalSgd::diloco;
  options.period = 5;
  found.clear();
  for (std::int64_t i = 1; i <= 12; ++i)
    if (models::averages(options, i)) found.push_back(i);
  CHECK(found == std::vector<std::int64_t>{5, 10});
}

TEST_CASE("local_sgd: what is refused") {
  const auto read = [](const std::string& block) {
    const auto scenario = scenario_from_text(toy_job("local_sgd", block, 4), "s.yaml");
    return scenario.ok() ? std::string("no error") : scenario.error().text();
  };
  CHECK(read(kPost) == "no error");
  CHECK(read(kDiloco) == "no error");
  CHECK(read("  algorithm: post_localSGD\n  period: 2\n  subgroup: pair\n")
            .find("start_localSGD_iter is missing") != std::string::npos);
  CHECK(read("  algorithm: post_localSGD\n  period: 2\n  start_localSGD_iter: 1\n")
            .find("subgroup is missing") != std::string::npos);
  CHECK(read("  algorithm: DiLoCo\n  period: 2\n  start_localSGD_iter: 1\n")
            .find("DiLoCo's workers train by themselves") != std::string::npos);
  CHECK(read("  algorithm: DiLoCo\n").find("the key 'period' is missing") != std::string::npos);
  CHECK(read("  algorithm: DiLoCo\n  period: 0\n").find("0 is out of range") != std::string::npos);
  CHECK(read("  algorithm: DiLoCo\n  period: 2\n  subgroup: nodes\n")
            .find("no group 'nodes' in ranks.groups") != std::string::npos);
}

}  // namespace
}  // namespace railyard::scenarios
