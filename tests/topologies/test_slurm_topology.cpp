// SLURM's topology.conf: hostlists, trees, blocks, refusals, and the files of the collection.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "tests/paths.h"
#include "tests/skip.h"
#include "topologies/import/slurm_topology.h"
#include "topologies/import/text_file.h"

namespace railyard::topologies {
namespace {

using Names = std::vector<std::string>;

Names expand(std::string_view list, std::size_t most = 100) {
  const auto names = expand_hostlist(list, most);
  return names.ok() ? names.value() : Names{"refused: " + names.error().text()};
}

std::string refusal(std::string_view text) {
  const auto graph = parse_slurm_topology(text, "t");
  return graph.ok() ? "accepted" : graph.error().text();
}

TEST_CASE("slurm: hostlists") {
  CHECK(expand("n1") == Names{"n1"});
  CHECK(expand("n[1-3],m") == Names{"n1", "n2", "n3", "m"});
  CHECK(expand("n[008-010,2]") == Names{"n008", "n009", "n010", "n2"});
  CHECK(expand("r[1-2]c[0-1]x") == Names{"r1c0x", "r1c1x", "r2c0x", "r2c1x"});
  CHECK(expand("switch.1.[9-10]") == Names{"switch.1.9", "switch.1.10"});
  CHECK(expand("n[3-1]") == Names{"refused: '3-1' is no range of numbers"});
  CHECK(expand("n[a]") == Names{"refused: 'a' is no range of numbers"});
  CHECK(expand("n[1") == Names{"refused: '[' without ']'"});
  CHECK(expand("n1]") == Names{"refused: ']' without '['"});
  CHECK(expand("a,,b") == Names{"refused: an empty name in a list"});
  CHECK(expand("n[1-999999999999]") == Names{"refused: more than 100 names"});
  CHECK(expand("n[1-20][1-20]") == Names{"refused: more than 100 names"});
  CHECK(expand("n[1][1][1][1][1][1]") == Names{"refused: more than 5 brackets in a name"});
}

TEST_CASE("slurm: a tree") {
  const auto graph = parse_slurm_topology(
      "# two leaves\nSWITCHNAME=top switches=s[0-1]\n"
      "SwitchName=s0 Nodes=n[0-2] LinkSpeed=4\nSwitchName=s1 \\\n  Nodes=n3,n4 # more\n",
      "t");
  REQUIRE(graph.ok());
  const FabricGraph& g = graph.value();
  CHECK(g.count(GraphNodeKind::fabric_switch) == 3);
  CHECK(g.count(GraphNodeKind::adapter) == 5);
  CHECK(g.cables() == 7);
  CHECK(g.nodes[2].name == "s1");
  REQUIRE(g.nodes[2].ports.size() == 3);  // up, n3, n4
  CHECK(g.nodes[g.nodes[2].ports[0].peer].name == "top");
  CHECK(g.nodes[g.nodes[2].ports[2].peer].name == "n4");
  for (const GraphNode& node : g.nodes)
    for (const GraphPort& port : node.ports) {
      const GraphPort* back = g.nodes[port.peer].port(port.peer_port);
      REQUIRE(back != nullptr);
      CHECK(back->peer_port == port.number);
      CHECK(&g.nodes[back->peer] == &node);
    }
  CHECK(g.notes == Names{"the file tells no rates, no parallel cables and no rails"});
}

TEST_CASE("slurm: refusals name the line") {
  CHECK(refusal("") == "t: no SwitchName= or BlockName= of a topology.conf");
  CHECK(refusal("Switchname=a Node=b\n") ==
        "t:1: 'Node' is no key of topology.conf; did you mean 'Nodes'?");
  CHECK(refusal("\nnonsense\n") == "t:2: 'nonsense' is no key of topology.conf");
  CHECK(refusal("SwitchName=a Nodes=\n") == "t:1: Nodes= has no value");
  CHECK(refusal("Nodes=a\n") == "t:1: SwitchName= or BlockName= is missing");
  CHECK(refusal("SwitchName=a\n") == "t:1: 'a' needs either Nodes= or Switches=");
  CHECK(refusal("SwitchName=a SwitchName=b Nodes=c\n") == "t:1: two names in one line");
  CHECK(refusal("SwitchName=a Nodes=n[1-\n") == "t:1: Nodes=: '[' without ']'");
  CHECK(refusal("SwitchName=a Nodes=n\nBlockName=b Nodes=m\n") ==
        "t:2: a tree (SwitchName) and blocks (BlockName) in one file");
  CHECK(refusal("SwitchName=a Nodes=n\nSwitchName=a Nodes=m\n") == "t:2: 'a' is defined twice");
  CHECK(refusal("SwitchName=a Switches=b\n") == "t:1: the switch 'b' is defined nowhere");
  CHECK(refusal("SwitchName=a Switches=a\n") == "t:1: 'a' is a switch below itself");
  CHECK(refusal("SwitchName=a Switches=b\nSwitchName=b Switches=a\n") ==
        "t:2: 'b' is a switch below itself");
  CHECK(refusal("SwitchName=a Switches=c\nSwitchName=b Switches=c\nSwitchName=c Nodes=n\n") ==
        "t:2: the switch 'c' has two parents");
  CHECK(refusal("SwitchName=a Nodes=n[1-250001]\n") == "t:1: Nodes=: more than 250000 names");
}

struct Expected {
  const char* file;
  std::size_t switches;  // 0: refused
  std::size_t nodes;
  std::size_t notes;
};
// Switches counted with grep, nodes from the ranges: 500 leaves of 20; 2 x 10 leaves of 20; 8
// blocks of 4; 18 + 18 + 18 + 18 + 7 names, of which n051 is under s2 and s4; 12 leaves of 8.
constexpr Expected kExpected[] = {{"001-man_topology.conf.5", 0, 0, 0},
                                  {"002-man_topology.yaml.5", 0, 0, 0},
                                  {"004-slurm_testsuite_133_1_case1.topology.conf", 529, 10'000, 1},
                                  {"005-slurm_testsuite_133_1_case2.topology.conf", 528, 10'000, 1},
                                  {"006-slurm_testsuite_133_1_case3.topology.conf", 23, 400, 1},
                                  {"007-slurm_testsuite_133_1_case4.topology.conf", 22, 400, 2},
                                  {"008-slurm_testsuite_133_1_case5.topology.conf", 22, 400, 2},
                                  {"010-slurm_unit_backfill.topology.conf", 8, 32, 3},
                                  {"011-superpod_leaf_only.topology.conf", 5, 79, 3},
                                  {"013-topograph_expected_oci_tree.conf", 19, 96, 1}};

TEST_CASE("slurm samples: every file") {
  const std::filesystem::path folder =
      std::filesystem::path(RAILYARD_SHARED_DIR) / "samples/ib/slurm";
  if (!std::filesystem::exists(folder)) RAILYARD_SKIP("no samples in " RAILYARD_SHARED_DIR);
  for (const Expected& expected : kExpected) {
    CAPTURE(expected.file);
    const auto text = read_text_file((folder / expected.file).string());
    REQUIRE(text.ok());
    const auto graph = parse_slurm_topology(text.value(), expected.file);
    MESSAGE(std::string(expected.file), ": ",
            (graph.ok() ? summary(graph.value()) : graph.error().text()));
    CHECK(graph.ok() == (expected.switches > 0));
    CHECK(looks_like_slurm_topology(text.value()) == graph.ok());
    if (!graph.ok()) {
      CHECK(graph.error().text() ==
            std::string(expected.file) + ":1: '.TH' is no key of topology.conf");
      continue;
    }
    CHECK(graph.value().count(GraphNodeKind::fabric_switch) == expected.switches);
    CHECK(graph.value().count(GraphNodeKind::adapter) == expected.nodes);
    CHECK(graph.value().notes.size() == expected.notes);
  }
}

}  // namespace
}  // namespace railyard::topologies
