// Real traces through `railyard trace`: what they show, the step that comes out of them when it is
// simulated, and what is refused.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/paths.h"
#include "tests/skip.h"
#include "tests/tools/helpers.h"

namespace railyard::tests {
namespace {

using nlohmann::json;

const std::string kTraces = std::string(RAILYARD_SHARED_DIR) + "/samples/traces/";
const std::vector<std::int64_t> kBuckets{8'196'000, 31'502'336, 26'255'360, 26'550'272, 9'724'160};

}  // namespace

// facts of that trace, counted by hand: five buckets; steps of 222.5, 219.8 and 224.9 ms.
TEST_CASE("trace: a DDP step of two A100 becomes a scenario that takes as long" *
          doctest::test_suite("samples")) {
  const std::string file = kTraces + "hta_resnet50_ddp_2xA100_rank0.json.gz";
  if (!std::filesystem::exists(file)) RAILYARD_SKIP("no traces here");
  const TemporaryDirectory directory;
  const Outcome show = run_program(directory, {"trace", "show", file});
  CHECK(show.status == 0);
  for (const char* text : {"ProfilerStep#4      222.503", "31,502,336", "NVIDIA A100"})
    CHECK_MESSAGE(show.out.find(text) != std::string::npos, show.out);
  const Outcome import = run_program(directory, {"trace", "import", file, "-o", "step.yaml"});
  REQUIRE_MESSAGE(import.status == 0, import.err);
  const Outcome run = run_program(directory, {"run", "step.yaml", "--json", "--no-sensitivity"});
  REQUIRE_MESSAGE(run.status == 0, run.err);
  const json result = json::parse(run.out);
  CHECK(result.at("buckets_bytes").get<std::vector<std::int64_t>>() == kBuckets);
  CHECK(result.at("step_time_us").get<double>() == doctest::Approx(222'503).epsilon(0.01));
  // What if: one bucket for all gradients.
  const Outcome other = run_program(directory, {"run", "step.yaml", "--json", "--no-sensitivity",
                                                "--set", "ddp.bucket_cap_mb=1000"});
  REQUIRE_MESSAGE(other.status == 0, other.err);
  CHECK(json::parse(other.out).at("buckets_bytes").size() < kBuckets.size());
}

TEST_CASE("trace: an execution trace names the same collectives" * doctest::test_suite("samples")) {
  const std::string file = kTraces + "param_resnet50_2gpu_et.json.gz";
  if (!std::filesystem::exists(file)) RAILYARD_SKIP("no traces here");
  const TemporaryDirectory directory;
  const Outcome show = run_program(directory, {"trace", "show", file});
  CHECK(show.status == 0);
  for (const char* text : {"8,196,000", "31,502,336", "26,255,360", "26,550,272", "9,724,160"})
    CHECK(show.out.find(text) != std::string::npos);
}

TEST_CASE("trace: what is refused" * doctest::test_suite("samples")) {
  const TemporaryDirectory directory;
  const Outcome none = run_program(directory, {"trace", "show", directory.write("a.txt", "hello")});
  CHECK(none.status == 1);
  CHECK(none.err.find("expected a trace of the PyTorch profiler") != std::string::npos);
  const std::string file = kTraces + "hta_resnet50_ddp_2xA100_rank0.json.gz";
  if (!std::filesystem::exists(file)) RAILYARD_SKIP("no traces here");
  std::ifstream whole(file, std::ios::binary);
  std::string bytes(3000, '\0');
  whole.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const Outcome torn =
      run_program(directory, {"trace", "show", directory.write("t.json.gz", bytes)});
  CHECK(torn.status == 1);
  CHECK(torn.err.find("cut off?") != std::string::npos);
  const Outcome sampled =
      run_program(directory, {"trace", "import", kTraces + "hta_128rank_sampled_rank-0.json.gz"});
  CHECK(sampled.status == 1);
  CHECK(sampled.err.find("the trace is not complete") != std::string::npos);
}

}  // namespace railyard::tests
