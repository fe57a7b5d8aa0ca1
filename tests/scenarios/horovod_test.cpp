// Horovod: fusion by hand, bytes, cycles, order, and what is refused.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/horovod/fusion.h"
#include "models/horovod/horovod.h"
#include "scenarios/training_result.h"
#include "tests/scenarios/run_helpers.h"
#include "tests/scenarios/toy_network.h"

namespace railyard::scenarios {
namespace {

using namespace tests;
using models::Dtype;
using models::FusedTensors;
using models::HorovodTensor;

using Lists = std::vector<std::vector<std::uint32_t>>;

Lists lists(const std::vector<FusedTensors>& buffers) {
  Lists out;
  for (const FusedTensors& buffer : buffers) out.push_back(buffer.tensors);
  return out;
}

std::string job(std::int64_t n, const std::string& more = "") {
  return toy_job("horovod", "  iterations: 2\n" + more, n);
}

std::int64_t count(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::count(names, name);
}

// fp32 of 4, 6, 5, 3, 8 x 16 bytes under a threshold of 10 x 16: 4 + 6 is full (5 does not fit, and
// skipping it would exceed); 5 + 3; 8.
TEST_CASE("horovod fusion: up to the threshold, in order") {
  const std::vector<HorovodTensor> tensors{{16}, {24}, {20}, {12}, {32}};
  const std::vector<std::uint32_t> order{0, 1, 2, 3, 4};
  const auto buffers = models::fuse(tensors, order, 160);
  CHECK(lists(buffers) == Lists{{0, 1}, {2, 3}, {4}});
  CHECK(buffers[0].size.raw() == 160);
  CHECK(buffers[1].size.raw() == 128);
  CHECK(lists(models::fuse(tensors, order, 0)) == Lists{{0}, {1}, {2}, {3}, {4}});
  CHECK(lists(models::fuse(tensors, order, 1'000'000)) == Lists{{0, 1, 2, 3, 4}});
  CHECK(lists(models::fuse(tensors, std::vector<std::uint32_t>{4, 0}, 160)) == Lists{{4}, {0}});
}

// Another type is passed over while what was passed over would fit too: 4 f, 3 h, 2 f under 10
// gives {0, 2}, {1}. With 7 h: 4 + 7 > 10, so the buffer ends there.
TEST_CASE("horovod fusion: looks past another type within the threshold") {
  std::vector<HorovodTensor> tensors{{16}, {24, Dtype::fp16}, {8}};
  const std::vector<std::uint32_t> order{0, 1, 2};
  CHECK(lists(models::fuse(tensors, order, 160)) == Lists{{0, 2}, {1}});
  tensors[1].elements = 56;
  CHECK(lists(models::fuse(tensors, order, 160)) == Lists{{0}, {1}, {2}});
}

// Every tensor of a fused buffer is padded to 16 bytes; a single one is not copied, so not padded.
TEST_CASE("horovod fusion: padding") {
  const std::vector<HorovodTensor> tensors{{1}, {5}, {3, Dtype::fp16}};
  CHECK(models::fuse(tensors, std::vector<std::uint32_t>{0, 1}, 160)[0].size.raw() == 16 + 32);
  CHECK(models::fuse(tensors, std::vector<std::uint32_t>{1}, 160)[0].size.raw() == 20);
  CHECK(models::fuse(tensors, std::vector<std::uint32_t>{2}, 160)[0].size.raw() == 6);
}

TEST_CASE(
    "horovod: negotiation takes a message per doubling, three times as many before the cache") {
  models::HorovodOptions options{.controller_latency = sim::microseconds(20)};
  for (const auto& [ranks, messages] : std::vector<std::pair<std::int64_t, int>>{
           {1, 0}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {8, 3}, {1024, 10}}) {
    options.ranks = ranks;
    CHECK(models::negotiation_time(options, true) == sim::microseconds(20 * messages));
    CHECK(models::negotiation_time(options, false) == sim::microseconds(60 * messages));
  }
}

TEST_CASE("horovod: bytes of a step, however they were fused") {
  for (const std::int64_t n : {2, 4, 8})
    for (const char* cycle : {"0.05", "1", "100"}) {
      CAPTURE(n);
      CAPTURE(cycle);
      const std::vector<std::string> sets{std::string("horovod.HOROVOD_CYCLE_TIME=") + cycle};
      CHECK(bytes_of_iteration(job(n), "horovod", 2, sets) == 2 * (n - 1) * toy_elements() * 4);
      auto half = sets;
      half.emplace_back("horovod.compression=fp16");
      CHECK(bytes_of_iteration(job(n), "horovod", 2, half) == 2 * (n - 1) * toy_elements() * 2);
    }
}

TEST_CASE("horovod: a long cycle fuses all, a threshold of nothing fuses none") {
  const RunResult long_cycle = traced_run(job(4), {"horovod.HOROVOD_CYCLE_TIME=100"});
  const auto names = names_on(long_cycle, 0, "world");
  // The first cycle is at 100 ms, when all four gradients of iteration 1 are long there.
  const std::vector<std::string> fused{"copy into fusion buffer", "AllReduce",
                                       "copy out of fusion buffer"};
  CHECK(std::vector(names.begin(), names.begin() + 3) == fused);
  CHECK(names.size() == 6);
  CHECK(std::ranges::any_of(long_cycle.notes, [](const std::string& note) {
    return note.starts_with("Horovod reduced 4 tensors in 1 buffers, agreed on in 1 cycles");
  }));
  const auto single = names_on(
      traced_run(job(4), {"horovod.HOROVOD_CYCLE_TIME=100", "horovod.HOROVOD_FUSION_THRESHOLD=0"}),
      0, "world");
  CHECK(count(single, "AllReduce") == 8);
  CHECK(count(single, "copy into fusion buffer") == 0);
  CHECK(count(single, "divide gradient") == 8);
}

// Cycle k wakes at k x 100 ms, negotiates for 2 messages of 1 ms, the first time for 6; then comes
// the AllReduce. An iteration takes one cycle, as its gradients always miss the one that ends it.
TEST_CASE("horovod: a tensor waits for the next cycle") {
  const RunResult result =
      traced_run(job(4), {"horovod.HOROVOD_CYCLE_TIME=100", "horovod.controller_latency=1ms"});
  std::vector<sim::Time> copies;
  for (const sim::Span& span : result.spans)
    if (span.rank == 0 && result.span_names[span.name] == "copy into fusion buffer")
      copies.push_back(span.start);
  REQUIRE(copies.size() == 2);
  const auto after = [](sim::Time at, int ms) {
    return at - sim::Time(sim::microseconds(ms * 1000));
  };
  CHECK(after(copies[0], 106).count() >= 0);
  CHECK(after(copies[0], 107).count() < 0);
  CHECK(after(copies[1], 202).count() >= 0);
  CHECK(after(copies[1], 203).count() < 0);
}

TEST_CASE("horovod: all ranks reduce the same buffers in the same order, late ranks delay cycles") {
  const RunResult result = traced_run(job(4) + "faults: {slow_gpus: [{ranks: [2], factor: 3}]}\n",
                                      {"horovod.HOROVOD_CYCLE_TIME=0.1"});
  for (const std::uint32_t rank : {1U, 2U, 3U})
    CHECK(names_on(result, rank, "world") == names_on(result, 0, "world"));
}

TEST_CASE("horovod: only the last of backward_passes_per_step sends") {
  const std::string set = "horovod.backward_passes_per_step=3";
  const RunResult result = traced_run(job(2), {set});
  const auto compute = names_on(result, 0, "compute");
  CHECK(count(compute, "l0") == 2 * 3);
  CHECK(count(compute, "accumulate gradient") == 2 * 2 * 4);
  CHECK(bytes_moved(result) == bytes_moved(traced_run(job(2))));
}

TEST_CASE("horovod: fp16 compression casts every gradient, and back") {
  const auto compute = names_on(traced_run(job(2), {"horovod.compression=fp16"}), 0, "compute");
  CHECK(count(compute, "compress gradient") == 8);
  CHECK(count(compute, "decompress gradient") == 8);
  // The optimizer is behind the last decompression.
  CHECK(compute.back() == "optimizer");
}

TEST_CASE("horovod: what is refused") {
  const auto read = [](const std::string& more) {
    const std::string text = job(2, more);
    const auto scenario = scenario_from_text(text, "s.yaml");
    return scenario.ok() ? error_of_run(full_scenario(text)) : scenario.error().text();
  };
  CHECK(read("") == "no error");
  CHECK(
      read("  HOROVOD_CYCLE_TIME: 0\n").find("s.yaml:7:23: horovod.HOROVOD_CYCLE_TIME: 0 is out") ==
      0);
  CHECK(read("  compression: int8\n").find("compression") != std::string::npos);
  CHECK(read("  HOROVOD_FUSION: 1\n").find("unknown key 'HOROVOD_FUSION'") != std::string::npos);
  CHECK(read("  backward_passes_per_step: 0\n").find("out of range") != std::string::npos);
}

}  // namespace
}  // namespace railyard::scenarios
