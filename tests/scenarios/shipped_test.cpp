// The files that are shipped must be readable, and say what their comments say.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/explore.h"
#include "scenarios/profile.h"
#include "tests/paths.h"
#include "tests/scenarios/helpers.h"

namespace railyard::scenarios {
namespace {

const std::string kDirectory = std::string(RAILYARD_SOURCE_DIR) + "/scenarios/";

Scenario shipped(const std::string& name) {
  auto result = read_scenario(kDirectory + name);
  REQUIRE_MESSAGE(result.ok(), tests::error_of(result));
  return std::move(result).value();
}

std::vector<std::string> shipped_files() {
  std::vector<std::string> files;
  for (const std::string folder : {"", "bench/"})
    for (const auto& entry : std::filesystem::directory_iterator(kDirectory + folder))
      if (entry.path().extension() == ".yaml")
        files.push_back(folder + entry.path().filename().string());
  std::sort(files.begin(), files.end());
  return files;
}

TEST_CASE("every shipped scenario can be read, and its resolved text read again") {
  const std::vector<std::string> files = shipped_files();
  CHECK(files.size() >= 11);
  for (const std::string& file : files) {
    CAPTURE(file);
    const Scenario scenario = shipped(file);
    CHECK(scenario.name == std::filesystem::path(file).stem().string());
    CHECK_FALSE(scenario.description.empty());
    CHECK(scenario.inputs.size() >= 2);  // itself and its profile
    const auto again = scenario_from_text(resolved_yaml(scenario), "resolved.yaml");
    REQUIRE_MESSAGE(again.ok(), tests::error_of(again));
    CHECK(resolved_yaml(again.value()) == resolved_yaml(scenario));
  }
}

TEST_CASE("every shipped cluster can be built and its ranks placed") {
  for (const std::string& file : shipped_files()) {
    CAPTURE(file);
    const Scenario scenario = shipped(file);
    const auto topology = topologies::build(scenario.cluster);
    REQUIRE_MESSAGE(topology.ok(), topology.error().text());
    const auto world = topologies::place_world(topology.value(), scenario.ranks);
    REQUIRE_MESSAGE(world.ok(), world.error().text());
    CHECK(world.value().size() >= 2);
    for (const NamedGroup& group : scenario.groups)
      if (group.division) CHECK(topologies::sub_groups(world.value(), *group.division).ok());
  }
}

TEST_CASE("the variants of the GPT-2 scenario differ in the network only") {
  const Scenario base = shipped("gpt2-xl-ddp-4x8-h100.yaml");
  const Scenario one = shipped("gpt2-xl-ddp-4x8-h100-one-rail.yaml");
  const Scenario thin = shipped("gpt2-xl-ddp-4x8-h100-oversubscribed.yaml");
  CHECK(one.inputs.size() == 4);
  CHECK(one.cluster.overrides.nics_per_node == 1U);
  CHECK(one.ddp->batch_per_gpu == base.ddp->batch_per_gpu);
  CHECK(one.nccl.size() == base.nccl.size());
  CHECK(thin.cluster.fabric.kind == topologies::FabricKind::fat_tree);
  CHECK(thin.cluster.fabric.oversubscription == 4.0);
  CHECK(thin.cluster.nodes == 4);
}

TEST_CASE("the exploration and the sweep have the points they promise") {
  CHECK(explore_points(shipped("explore-bucket-size.yaml")).size() == 10);
  const Scenario sweep = shipped("collective-sweep-h100.yaml");
  CHECK(sweep.collectives.at(0).sizes.size() == 28);  // 2^3 .. 2^30
  CHECK(shipped("bench/alltoall-128.yaml").cluster.nodes == 128);
  CHECK(shipped("nvl72.yaml").cluster.nodes == 18);
}

TEST_CASE("every shipped profile is complete: each number has an origin and a source") {
  const std::vector<std::string> names = shipped_profiles();
  CHECK_FALSE(names.empty());
  for (const std::string& name : names) {
    CAPTURE(name);
    const auto profile = read_profile(data_directory() + "/scenarios/profiles/" + name + ".yaml");
    REQUIRE_MESSAGE(profile.ok(), profile.error().text());
    CHECK(profile.value().parameters.name == name);
    for (const sim::Provenance& entry : profile.value().parameters.provenance)
      CHECK_MESSAGE(entry.source != "not stated", entry.parameter);
    const auto again = profile_from_text(write_profile(profile.value().parameters), "again");
    REQUIRE_MESSAGE(again.ok(), again.error().text());
    CHECK(write_profile(again.value()) == write_profile(profile.value().parameters));
  }
}

}  // namespace
}  // namespace railyard::scenarios
