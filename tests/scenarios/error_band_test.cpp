#include "scenarios/error_band.h"

#include <doctest/doctest.h>

#include "scenarios/profile.h"

using namespace railyard;
using namespace railyard::scenarios;

namespace {

Scenario scenario(const std::string& more = "") {
  auto read = scenario_from_text(
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\n"
      "nccl: {algorithm: Ring, protocol: Simple, channels: 2}\n"
      "collectives: [{collective: AllReduce, sizes: [8B, 1MiB]}]\n" +
          more,
      "s.yaml");
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().text()));
  return std::move(read).value();
}

}  // namespace

TEST_CASE("error band: what was found, or that nothing was") {
  Scenario s = scenario();
  s.parameters.name = "mine";
  s.parameters.validated = {{sim::Collective::all_reduce, sim::SizeBand::medium, 12, 0.04, 0.11},
                            {sim::Collective::broadcast, sim::SizeBand::small, 5, 0.5, 0.6}};
  const auto notes = error_notes(s);
  REQUIRE(notes.size() == 2);
  CHECK(notes[0] ==
        "expected error of AllReduce M: median 4 %, p90 11 % (12 measurements of this platform "
        "that nothing was fitted to)");
  CHECK(notes[1] ==
        "profile mine: never validated here for AllReduce S (S < 64KiB, M to 16MiB, L above)");
  s.nccl.front().protocol = sim::Protocol::plain;
  CHECK(error_notes(s).empty());
}

TEST_CASE("error band: numbers of one's own have none") {
  CHECK_FALSE(scenario().parameters.validated.empty());
  CHECK(scenario("parameters: {host: {collective_start: 9us}}\n").parameters.validated.empty());
}

TEST_CASE("error band: written and read again") {
  sim::Parameters parameters = scenario().parameters;
  parameters.validated = {{sim::Collective::all_gather, sim::SizeBand::large, 7, 0.125, 0.25}};
  const auto again = profile_from_text(write_profile(parameters), "again.yaml");
  REQUIRE(again.ok());
  REQUIRE(again.value().validated.size() == 1);
  CHECK(again.value().validated[0].collective == sim::Collective::all_gather);
  CHECK(again.value().validated[0].band == sim::SizeBand::large);
  CHECK(again.value().validated[0].p90 == doctest::Approx(0.25));
}
