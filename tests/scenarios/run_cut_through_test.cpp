// LL and LL128 forward before a slice is complete. On a machine whose paths differ in length
// several ends of one slice fall on the same instant; it must still end once.
#include <doctest/doctest.h>

#include <string>

#include "scenarios/run.h"

using namespace railyard;             // NOLINT
using namespace railyard::scenarios;  // NOLINT

TEST_CASE("cut-through: every slice ends once on a hybrid cube mesh") {
  for (const std::string gpus : {"3", "4", "8"})
    for (const std::string nccl :
         {"Ring, protocol: LL", "Ring, protocol: LL128", "Tree, protocol: LL"})
      for (const std::string channels : {"1", "2", "4"}) {
        const std::string text =
            "railyard: 1\ncluster: {machine: dgx-1v, nodes: 1, gpus_per_node: " + gpus +
            "}\nnccl: {algorithm: " + nccl + ", channels: " + channels +
            "}\ncollectives: [{collective: AllReduce, sizes: [16KiB, 1MiB, 4MiB]}]\n";
        CAPTURE(text);
        const sim::Result<Scenario> apart = scenario_from_text(text, "apart");
        const sim::Result<Scenario> in_place =
            scenario_from_text(text, "in place", {.sets = {"engine.replay=false"}});
        REQUIRE(apart.ok());
        REQUIRE(in_place.ok());
        const sim::Result<RunResult> a = run(apart.value(), {});
        const sim::Result<RunResult> b = run(in_place.value(), {});
        REQUIRE(a.ok());
        REQUIRE(b.ok());
        CHECK(a.value().unfinished.empty());
        CHECK(a.value().collectives.size() == 3);
        CHECK(a.value().trace_hash == b.value().trace_hash);
      }
}
