// Scenarios read from files: what lies beside them, what is shipped, and what is recorded.
#include <doctest/doctest.h>
#include <stdlib.h>  // setenv

#include <algorithm>
#include <optional>
#include <string>

#include "scenarios/profile.h"
#include "tests/scenarios/helpers.h"

namespace railyard::scenarios {
namespace {

constexpr std::string_view kProfile =
    "railyard_profile: 1\nname: mine\n"
    "gpu: {sms: 10, peak_fp32: 1TFLOP/s, peak_fp16: 2TFLOP/s, hbm_bandwidth: 1TB/s,\n"
    "      hbm_capacity: 1GiB}\n";

// $RAILYARD_DATA_DIR for one test.
class DataDirectory {
 public:
  explicit DataDirectory(const std::string& path) {
    if (const char* old = getenv("RAILYARD_DATA_DIR"); old != nullptr) old_ = old;
    setenv("RAILYARD_DATA_DIR", path.c_str(), 1);
  }
  ~DataDirectory() {
    if (old_) setenv("RAILYARD_DATA_DIR", old_->c_str(), 1);
    if (!old_) unsetenv("RAILYARD_DATA_DIR");
  }
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

 private:
  std::optional<std::string> old_;
};

std::string scenario(std::string_view more) {
  return "railyard: 1\ncluster: {machine: flat, nodes: 2}\n"
         "traffic: {pattern: all-to-all, size: 1MiB}\n" +
         std::string(more);
}

TEST_CASE("a profile is found beside the file that names it, and every input is recorded") {
  const tests::TemporaryDirectory dir;
  dir.write("base/p.yaml", kProfile);
  dir.write("base/base.yaml", scenario("profile: ./p.yaml\n"));
  const std::string top = dir.write("top.yaml",
                                    "include: base/base.yaml\n"
                                    "parameters: {gpu: {sms: 11}}\n");
  const auto read = read_scenario(top, {.sets = {"seed=4"}});
  REQUIRE_MESSAGE(read.ok(), tests::error_of(read));
  const Scenario& s = read.value();
  CHECK(s.parameters.name == "mine");
  CHECK(s.parameters.gpu.sms == 11);
  CHECK(s.parameters.provenance.front().source == top + ":2:25");
  CHECK(s.seed == 4);
  REQUIRE(s.inputs.size() == 3);
  CHECK(s.inputs[0].path == top);
  CHECK(s.inputs[2].path == dir.path("base/./p.yaml"));
  CHECK(s.inputs[2].hash == fnv1a(kProfile));

  // The resolved text stands alone, wherever it lies.
  const std::string saved = dir.write("elsewhere/resolved.yaml", resolved_yaml(s));
  const auto again = read_scenario(saved);
  REQUIRE_MESSAGE(again.ok(), tests::error_of(again));
  CHECK(again.value().parameters.gpu.sms == 11);
  CHECK(again.value().inputs.size() == 2);
}

TEST_CASE("what is wrong with a profile is said at the profile") {
  const tests::TemporaryDirectory dir;
  const std::string profile = dir.write("p.yaml", "railyard_profile: 1\nname: x\ngpu: {sm: 1}\n");
  const std::string top = dir.write("s.yaml", scenario("profile: ./p.yaml\n"));
  CHECK(tests::error_of(read_scenario(top))
            .starts_with(dir.path("./p.yaml") + ":3:7: gpu: unknown key 'sm'"));
  const std::string other = dir.write("t.yaml", scenario("profile: ./q.yaml\n"));
  CHECK(tests::error_of(read_scenario(other)) ==
        other + ":4:10: profile: " + dir.path("./q.yaml") + ": no such file");
}

TEST_CASE("$RAILYARD_DATA_DIR holds the shipped files") {
  const tests::TemporaryDirectory dir;
  dir.write("scenarios/profiles/mine.yaml", kProfile);
  dir.write("scenarios/base.yaml", scenario(""));
  const DataDirectory set(dir.path("."));
  CHECK(data_directory() == dir.path("."));
  CHECK(shipped_profiles() == std::vector<std::string>{"mine"});
  const std::string top = dir.write("user/s.yaml", "include: base.yaml\nprofile: mine\n");
  const auto read = read_scenario(top);
  REQUIRE_MESSAGE(read.ok(), tests::error_of(read));
  CHECK(read.value().parameters.gpu.sms == 10);
  CHECK(tests::error_of(read_scenario(top, {.sets = {"profile=mien"}})) ==
        "--set profile=mien: profile: no shipped profile 'mien'; did you mean 'mine'? (shipped: "
        "mine; a path contains '/')");
}

TEST_CASE("without files nothing is read, and the program's own defaults stand") {
  const Scenario s = tests::scenario_of(scenario("parameters: {gpu: {sms: 3}}\n"));
  CHECK(s.parameters.gpu.sms == 3);
  CHECK(s.inputs.empty());
  CHECK(s.profile == "h100-hgx");
}

TEST_CASE("an included key is removed with null, so that another workload can take its place") {
  const tests::TemporaryDirectory dir;
  dir.write("base.yaml", scenario("engine: {trace: none}\n"));
  const std::string top = dir.write("top.yaml",
                                    "include: base.yaml\ntraffic: ~\nengine: ~\n"
                                    "nccl: {algorithm: Ring, protocol: plain, channels: 1}\n"
                                    "collectives: [{collective: AllReduce, sizes: [1MiB]}]\n");
  const auto read = read_scenario(top);
  REQUIRE_MESSAGE(read.ok(), tests::error_of(read));
  CHECK(read.value().traffic.empty());
  CHECK(read.value().engine.trace == TraceDetail::automatic);
}

}  // namespace
}  // namespace railyard::scenarios
