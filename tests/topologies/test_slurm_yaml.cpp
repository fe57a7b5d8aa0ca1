// SLURM's topology.yaml: trees, blocks, the choice among several, refusals; and hostile texts of
// both forms within two seconds.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "tests/paths.h"
#include "tests/skip.h"
#include "tests/time_limit.h"
#include "topologies/import/importer.h"
#include "topologies/import/slurm_topology.h"
#include "topologies/import/text_file.h"

namespace railyard::topologies {
namespace {

using Names = std::vector<std::string>;

constexpr std::string_view kTree =
    "# of a site\n---\n- topology: main\n  tree:\n    switches:\n"
    "      - {switch: top, children: \"s[0-1]\"}\n"
    "      - switch: s0\n        nodes: n[0-2]   # three\n"
    "      - switch: s1\n        nodes: n3,n4\n";

std::string refusal(std::string_view text) {
  const auto graph = parse_slurm_topology(text, "t");
  return graph.ok() ? "accepted" : graph.error().text();
}

FabricGraph must_parse(std::string_view text) {
  CHECK(looks_like_slurm_topology(text));
  auto graph = parse_slurm_topology(text, "t");
  REQUIRE_MESSAGE(graph.ok(), (graph.ok() ? "" : graph.error().text()));
  return std::move(graph).value();
}

TEST_CASE("slurm yaml: a tree is the one topology.conf would give") {
  const FabricGraph yaml = must_parse(kTree);
  const FabricGraph conf = must_parse(
      "SwitchName=top Switches=s[0-1]\nSwitchName=s0 Nodes=n[0-2]\nSwitchName=s1 Nodes=n3,n4\n");
  REQUIRE(yaml.nodes.size() == conf.nodes.size());
  for (std::size_t i = 0; i < yaml.nodes.size(); ++i) {
    CHECK(yaml.nodes[i].name == conf.nodes[i].name);
    REQUIRE(yaml.nodes[i].ports.size() == conf.nodes[i].ports.size());
    for (std::size_t p = 0; p < yaml.nodes[i].ports.size(); ++p) {
      CHECK(yaml.nodes[i].ports[p].peer == conf.nodes[i].ports[p].peer);
      CHECK(yaml.nodes[i].ports[p].peer_port == conf.nodes[i].ports[p].peer_port);
    }
  }
  CHECK(yaml.nodes[1].line == 7);
  CHECK(yaml.source == "SLURM topology/tree");
  CHECK(yaml.notes == Names{"the file tells no rates, no parallel cables and no rails"});
  const Importer* importer = detect_importer(kTree);
  REQUIRE(importer != nullptr);
  CHECK(importer->name == "slurm");
}

TEST_CASE("slurm yaml: of several topologies the cluster's default is read, if it is a graph") {
  const std::string blocks =
      "- topology: a\n  flat: true\n- topology: b\n  cluster_default: true\n  block:\n"
      "    block_sizes:\n      - 2\n      - 4\n    blocks:\n      - block: b1\n        nodes: "
      "n[1-2]\n"
      "      - block: b2\n        nodes: n[3-4]\n- topology: c\n  tree:\n    switches:\n"
      "      - switch: s\n        nodes: m1\n";
  const FabricGraph graph = must_parse(blocks);
  CHECK(graph.source == "SLURM topology/block");
  CHECK(graph.count(GraphNodeKind::adapter) == 4);
  CHECK(graph.notes == Names{"topology 'b' is read; the others are a (flat), c (tree)",
                             "the file tells no rates, no parallel cables and no rails",
                             "BlockSizes=2, 4 says how blocks are scheduled, not wired",
                             "how the 2 blocks are joined is not told"});
  std::string other = blocks;
  other.replace(other.find("true\n  block"), 4, "false");
  CHECK(must_parse(other).notes[0] == "topology 'b' is read; the others are a (flat), c (tree)");
  other = "- topology: r\n  cluster_default: true\n  ring:\n    rings: []\n" + std::string(blocks);
  CHECK(must_parse(other).count(GraphNodeKind::fabric_switch) == 2);
}

TEST_CASE("slurm yaml: refusals name the line") {
  const auto tree = [](const std::string& switches) {
    return refusal("- topology: t\n  tree:\n    switches:\n" + switches);
  };
  CHECK(refusal("- topology: a\n  tree: [\n").starts_with("t:3: not valid YAML: "));
  CHECK(refusal("- topology: a\n---\n- topology: b\n") ==
        "t:2: a second document; one is expected");
  CHECK(refusal("- topology:\n  flat: true\n") == "t:1: a topology without a name");
  CHECK(refusal("- topology: a\n  trees: {}\n") ==
        "t:2: 'trees' is no key of a topology; did you mean 'tree'?");
  CHECK(refusal("- topology: a\n") ==
        "t:1: topology 'a' must be exactly one of tree, block, flat, ring and torus3d");
  CHECK(refusal("- topology: a\n  cluster_default: yes\n  flat: true\n") ==
        "t:2: cluster_default is true or false, not 'yes'");
  CHECK(refusal("- topology: a\n  flat: true\n") ==
        "t:1: topology 'a' is of kind flat, which names no switches; a tree or block is expected");
  CHECK(refusal("- topology: a\n  tree: {}\n") == "t:2: tree needs a list of switches");
  CHECK(refusal("- topology: a\n  tree: 7\n") == "t:2: tree must be a map");
  CHECK(refusal("- topology: a\n  tree: {blocks: []}\n") == "t:2: 'blocks' is no key of tree");
  CHECK(tree("      - switch: a\n        childen: b\n") ==
        "t:5: 'childen' is no key of a switch; did you mean 'children'?");
  CHECK(tree("      - nodes: b\n") == "t:4: 'switch' is missing");
  CHECK(tree("      - switch: a\n") == "t:4: 'a' needs either nodes or children");
  CHECK(tree("      - switch: a\n        nodes: [b]\n") ==
        "t:5: nodes must be a name or a hostlist");
  CHECK(tree("      - switch: a\n        nodes: n[1-\n") == "t:5: nodes: '[' without ']'");
  CHECK(tree("      - switch: a\n        nodes: n1\n      - switch: a\n        nodes: n2\n") ==
        "t:6: 'a' is defined twice");
  CHECK(tree("      - switch: a\n        children: b\n") ==
        "t:4: the switch 'b' is defined nowhere");
  CHECK(tree("      - switch: a\n        children: b\n      - switch: b\n        children: a\n") ==
        "t:6: 'b' is a switch below itself");
  CHECK(tree("      - &x {switch: a}\n") == "t:4: an anchor ('&'), which is not read here");
  CHECK(tree("      - *x\n").find("not valid YAML: ") != std::string::npos);
  CHECK(tree("      - switch: !!str a\n") == "t:4: tags ('!...') mean nothing here");
  CHECK(tree("      - switch: a\n        switch: b\n") == "t:5: the key 'switch' is there twice");
  CHECK(tree("      - {[a]: b}\n") == "t:4: a key must be a name; is a bracket left open?");
  CHECK(refusal("- topology: a\n  block:\n    blocks:\n      - block: b\n") ==
        "t:4: 'b' needs nodes");
}

// CPU seconds until the text is refused or read.
double seconds(const std::string& text, std::string_view expected) {
  const std::clock_t start = std::clock();
  looks_like_slurm_topology(text);
  const auto graph = parse_slurm_topology(text, "t");
  const std::string said = graph.ok() ? "accepted" : graph.error().text();
  CHECK(said == expected);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::string repeat(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST_CASE("slurm: hostile texts are refused or read within two seconds") {
  constexpr double kLimit = 2.0 * tests::kSlowdown;
  std::string chain;  // a hundred thousand switches, each below the one before
  for (int i = 0; i < 100'000; ++i) chain += fmt::format("SwitchName=s{} Switches=s{}\n", i, i + 1);
  CHECK(seconds(chain + "SwitchName=s100000 Nodes=n\n", "accepted") < kLimit);
  CHECK(seconds(chain + "SwitchName=s100000 Switches=s0\n",
                "t:100001: 's100000' is a switch below itself") < kLimit);
  CHECK(seconds("SwitchName=s Nodes=n[1-250000]\n", "accepted") < kLimit);
  CHECK(seconds("SwitchName=s Nodes=" + repeat("n,", 249'999) + "n\n", "accepted") < kLimit);
  CHECK(seconds("SwitchName=s Nodes=n[0-9][0-99][0-999][0-9]\n",
                "t:1: Nodes=: more than 250000 names") < kLimit);
  CHECK(seconds("SwitchName=s Nodes=" + std::string(2'000'000, 'n') + "\n",
                "t:1: Nodes=: a name of more than 128 characters") < kLimit);
  CHECK(seconds(repeat("# nothing\n", 1'000'000),
                "t: no SwitchName= or BlockName= of a topology.conf") < kLimit);
  CHECK(seconds("SwitchName=s \\\n" + repeat(" \\\n", 1'000'000) + "Nodes=n\n", "accepted") <
        kLimit);

  const std::string head = "- topology: t\n  tree:\n    switches:\n";
  CHECK(seconds(head + "      - " + std::string(900'000, '['),
                "t:4: a key must be a name; is a bracket left open?") < kLimit);
  CHECK(seconds(head + "      - " + repeat("- ", 400'000), "t:4: nested more than 16 levels deep") <
        kLimit);
  CHECK(seconds(head + repeat("      - {}\n", 600'000), "t:499996: more than 500000 values") <
        kLimit);
  CHECK(seconds(head + std::string(2'000'000, ' ') + "x\n", "t:4: a line of more than 1 MiB") <
        kLimit);
  CHECK(seconds(head + std::string(std::size_t{17} << 20, '\n'),
                "t: larger than 16 MiB, the most that is read as YAML") < kLimit);
  std::string keys = "- topology: t\n";
  for (int i = 0; i < 200'000; ++i) keys += fmt::format("  k{}: 1\n", i);
  CHECK(seconds(keys, "t:65: more than 64 keys in a map") < kLimit);
}

TEST_CASE("slurm yaml: the example of the manual page") {
  const std::filesystem::path file =
      std::filesystem::path(RAILYARD_SHARED_DIR) / "samples/ib/slurm/002-man_topology.yaml.5";
  if (!std::filesystem::exists(file)) RAILYARD_SKIP("no samples in " RAILYARD_SHARED_DIR);
  const std::string page = read_text_file(file.string()).value();
  const std::size_t start = page.find("\n---\n- topology: topo1") + 1;
  const std::size_t end = page.find("\n.fi\n", start);
  REQUIRE(end != std::string::npos);
  const FabricGraph graph = must_parse(page.substr(start, end - start));
  CHECK(summary(graph).starts_with(
      "SLURM topology/tree: 3 switches, 4 adapters of 4 hosts, 6 cables"));
  CHECK(
      graph.notes[0] ==
      "topology 'topo1' is read; the others are topo2 (block), topo3 (flat), topo3a (flat), topo4 "
      "(ring), topo5 (torus3d)");
}

}  // namespace
}  // namespace railyard::topologies
