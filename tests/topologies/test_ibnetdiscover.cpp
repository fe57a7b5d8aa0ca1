// Readers of ibnetdiscover's two forms: small fabrics written for the test, refusals and notes by
// their message, and the real files of the collection.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "tests/paths.h"
#include "tests/skip.h"
#include "tests/time_limit.h"
#include "topologies/import/host_names.h"
#include "topologies/import/ibnetdiscover.h"
#include "topologies/import/text_file.h"

namespace railyard::topologies {
namespace {

FabricGraph must_parse(std::string_view text) {
  auto graph = parse_ibnetdiscover(text, "t");
  REQUIRE_MESSAGE(graph.ok(), (graph.ok() ? "" : graph.error().text()));
  return std::move(graph).value();
}

std::string refusal(std::string_view text) {
  const auto graph = parse_ibnetdiscover(text, "t");
  return graph.ok() ? "accepted" : graph.error().text();
}

const GraphNode& find(const FabricGraph& graph, std::string_view name) {
  for (const GraphNode& node : graph.nodes)
    if (node.name == name) return node;
  FAIL("no node " << std::string(name));
  return graph.nodes.front();
}

constexpr std::string_view kSmall =
    "#\n# Topology file: generated on a day\n\n"
    "vendid=0x2c9\nsysimgguid=0xa0\nswitchguid=0xa0(a0)\n"
    "Switch\t41 \"S-00000000000000a0\"\t\t# \"leaf, the first\" base port 0 lid 12 lmc 0\n"
    "[1]\t\"H-00000000000000b0\"[1](b1) \t\t# \"host1 mlx5_0\" lid 3 4xNDR\n"
    "[40][ext 7]\t\"S-00000000000000c0\"[2][ext 1]\t\t# \"sp\" lid 9 2xHDR s=4 w=2 v=4 e=4\n\n"
    "sysimgguid=0xc0\nSwitch\t41 \"S-00000000000000c0\"\t\t# \"sp\" enhanced port 0 lid 9 lmc 0\n"
    "[2]\t\"S-00000000000000a0\"[40]\t\t# \"leaf, the first\" lid 12 2xHDR\n\n"
    "sysimgguid=0xb8\ncaguid=0xb0\nCa\t1 \"H-00000000000000b0\"\t\t# \"host1 mlx5_0\"\n"
    "[1](b1)\t\"S-00000000000000a0\"[1]\t\t# lid 3 lmc 0 \"leaf, the first\" lid 12 4xNDR\n";

TEST_CASE("ibnetdiscover: nodes, LIDs, GUIDs, cables and rates") {
  const FabricGraph graph = must_parse(kSmall);
  CHECK(looks_like_ibnetdiscover(kSmall));
  REQUIRE(graph.nodes.size() == 3);
  CHECK(graph.notes.empty());
  const GraphNode& leaf = find(graph, "leaf, the first");
  CHECK(leaf.lid == 12);
  CHECK(leaf.key == 0xa0);
  REQUIRE(leaf.ports.size() == 2);
  CHECK(leaf.port(40)->peer_port == 2);
  CHECK(graph.nodes[leaf.port(40)->peer].name == "sp");
  CHECK(leaf.port(40)->lanes == 2);
  CHECK(leaf.port(40)->rate() == sim::bytes_per_second(12'500'000'000));  // 2 x 50 Gb/s
  CHECK(leaf.port(1)->rate() == sim::bytes_per_second(50'000'000'000));
  CHECK(leaf.port(2) == nullptr);
  const GraphNode& host = find(graph, "host1 mlx5_0");
  CHECK(host.kind == GraphNodeKind::adapter);
  CHECK(host.system_guid == 0xb8);
  CHECK(host.ports[0].lid == 3);
  CHECK(host.ports[0].guid == 0xb1);
  CHECK(summary(graph) ==
        "ibnetdiscover: 2 switches, 1 adapters of 1 hosts, 2 cables: 1 x 2x HDR, 1 x 4x NDR");
}

TEST_CASE("ibnetdiscover: several LIDs a port") {
  const auto fabric = [](std::string_view first, std::string_view second) {
    return "Switch 4 \"S-a\" # \"sw\" base port 0 lid 3 lmc 0\n[1] \"H-1\"[1] # \"x mlx5_0\" lid 8 "
           "4xNDR\n[2] \"H-2\"[1] # \"y mlx5_0\" lid 16 4xNDR\n\n"
           "Ca 1 \"H-1\" # \"x mlx5_0\"\n[1] \"S-a\"[1] # " +
           std::string(first) +
           " \"sw\" lid 3 4xNDR\n\nCa 1 \"H-2\" # \"y mlx5_0\"\n[1] \"S-a\"[2] # " +
           std::string(second) + " \"sw\" lid 3 4xNDR\n";
  };
  const FabricGraph equal = must_parse(fabric("lid 8 lmc 2", "lid 16 lmc 2"));
  CHECK(find(equal, "x mlx5_0").ports[0].lid == 8);
  CHECK(find(equal, "x mlx5_0").ports[0].lmc == 2);
  CHECK(summary(equal) ==
        "ibnetdiscover: 1 switches, 2 adapters of 2 hosts, 2 cables: 2 x 4x NDR; LMC 2: ports of "
        "adapters have 4 LIDs, routes go by the first");
  CHECK(
      summary(must_parse(fabric("lid 8 lmc 1", "lid 16 lmc 3")))
          .ends_with("; LMC 1 to 3: ports of adapters have up to 8 LIDs, routes go by the first"));
  CHECK(summary(must_parse(fabric("lid 8 lmc 0", "lid 16 lmc 0"))).ends_with("2 x 4x NDR"));
  CHECK(refusal(fabric("lid 8 lmc 8", "lid 16 lmc 0")) == "t:6: LMC 8 (0 to 7 is expected)");
  CHECK(refusal(fabric("lid 6 lmc 2", "lid 16 lmc 0")) ==
        "t:6: LID 6 is no base LID under LMC 2: a multiple of 4 is expected");
}

TEST_CASE("ibnetdiscover: what is odd is said") {
  const FabricGraph graph = must_parse(
      "Switch 4 \"S-a\" # \"one\" base port 0 lid 1 lmc 0\n"
      "[1] \"S-b\"[3] # \"two\" lid 2 4xHDR\n"
      "[2] \"H-c\"[1](c1) # \"h mlx5_0\" lid 7 4xQUX\n"
      "[2] \"H-c\"[1](c1) # \"h mlx5_0\" lid 7 4xQUX\n"
      "ibwarn: [1] something\n\n"
      "Switch 4 \"S-b\" # \"two\" base port 0 lid 2 lmc 0\n"
      "[3] \"S-a\"[1] # \"one\" lid 1 4xEDR\n"
      "[4] \"S-a\"[4] # \"one\" lid 1 4xEDR\n");
  CHECK(graph.notes ==
        std::vector<std::string>{
            "line 5: 'ibwarn: [1] something' is ignored", "line 4: port 'one'[2] is there twice",
            "named by neighbours only, without a block of their own: 'h mlx5_0'",
            "2 cables are listed at one end only: 'one'[2]-'h mlx5_0'[1], 'two'[4]-'one'[4]",
            "1 cables have two rates; the slower is taken", "1 cables have no known rate"});
  const GraphNode& one = find(graph, "one");
  CHECK(one.port(1)->speed == LaneSpeed::edr);
  CHECK(one.port(4)->peer_port == 4);
  CHECK(find(graph, "h mlx5_0").ports[0].lid == 7);
}

TEST_CASE("ibnetdiscover: refusals name the line") {
  CHECK(refusal("") == "t: no node of an ibnetdiscover output");
  CHECK(refusal("[1] \"S-a\"[1]\n") == "t:1: a port outside the block of a node");
  CHECK(refusal("Switch 4 \"leaf\" # \"x\"\n") ==
        "t:1: a node name like \"S-0008f105001084fa\" is expected, not '\"leaf\"'");
  CHECK(refusal("Switch 4 \"H-a\" # \"x\"\n").find("names another kind of node") !=
        std::string::npos);
  CHECK(refusal("Ca 1 \"H-a\"\n[x] \"S-a\"[1]\n") == "t:2: no port number in '[x] \"S-a\"[1]'");
  CHECK(refusal("Ca 1 \"H-a\"\n[1] nothing\n") ==
        "t:2: port 1: a peer like \"S-0008f105001084fa\"[1] is expected, not 'nothing'");
  CHECK(refusal("Ca 1 \"H-a\"\n[1] \"S-a\"[1]\n") ==
        "t:2: GUID 0x000000000000000a is a node of two kinds");
  CHECK(refusal("Switch 4 \"S-a\"\n[1] \"S-b\"[1]\n[1] \"S-c\"[1]\n") ==
        "t:3: port '000000000000000a'[1] is there twice, in line 2 with another cable");
  CHECK(refusal("Switch 4 \"S-a\"\n[1] \"S-b\"[1]\n\nSwitch 4 \"S-b\"\n[1] \"S-c\"[9]\n") ==
        "t:2: '000000000000000a'[1] leads to '000000000000000b'[1], but line 5 has that port lead "
        "elsewhere");
  CHECK(refusal("Switch 4 \"S-a\"\n[1] \"S-c\"[1]\n\nSwitch 4 \"S-b\"\n[1] \"S-c\"[1]\n") ==
        "t:5: '000000000000000b'[1] leads to ''[1], but another cable ends in that port");
}

TEST_CASE("ibnetdiscover -p: a line for every port") {
  const std::string_view text =
      "DR path slid 0; dlid 0; 0 -> new Switch {a} portnum 0 lid 0-0 \"\"\n"
      "CA   13  1 0x00000000000000b1 4x QDR - SW   2 36 0x00000000000000a0 ( 'h1 HCA-1' - 'sw' )\n"
      "CA   14  2 0x00000000000000b2 4x 5.0 - SW   2 35 0x00000000000000a0 ( 'h1 HCA-1' - 'sw' )\n"
      "SW   2 36 0x00000000000000a0 4x QDR - CA   13  1 0x00000000000000b1 ( 'sw' - 'h1 HCA-1' )\n"
      "SW   2 35 0x00000000000000a0 4x ??? - CA   14  2 0x00000000000000b2 ( 'sw' - 'h1 HCA-1' )\n"
      "SW   2 34 0x00000000000000a0 4x ???                                    'sw'\n";
  const FabricGraph graph = must_parse(text);
  REQUIRE(graph.nodes.size() == 3);
  const GraphNode& sw = find(graph, "sw");
  CHECK(sw.lid == 2);
  CHECK(sw.ports.size() == 2);
  CHECK(sw.port(36)->rate() == sim::bytes_per_second(4'000'000'000));
  CHECK(graph.notes == std::vector<std::string>{"1 cables have no known rate"});
  CHECK(refusal("CA 13 1 0xb1 4x QDR - SW 2 x 0xa0 ( 'h' - 's' )\n") ==
        "t:1: the far end is expected behind '-', not '( 'h' - 's' )'");
  CHECK(refusal("CA 1 1 0xb1 4x QDR - SW 2 1 0xa0 ( 'h' - 's' )\nCA none\n") ==
        "t:2: type, LID, port and GUID are expected, as in `CA 139 1 0x0002...`, not 'CA none'");
}

TEST_CASE("hosts by their adapters' descriptions") {
  GraphNode node;
  const auto split = [&](const char* name) {
    node.name = name;
    const HostAndDevice who = split_description(node);
    return who.host + "|" + who.device;
  };
  CHECK(split("host028 mlx5_0") == "host028|mlx5_0");
  CHECK(split("host471 HCA-1") == "host471|HCA-1");
  CHECK(split("alone") == "alone|");
  node.system_guid = 0x1c34;
  CHECK(split("MT4129 ConnectX7   Mellanox Technologies") == "unnamed-0000000000001c34|");
  node.name = "Mellanox Technologies Aggregation Node";
  CHECK(is_aggregation_node(node));
  CHECK(natural_less("mlx5_9", "mlx5_10"));
  CHECK(natural_less("a2b10", "a10b2"));
  CHECK(natural_less("n007", "n12"));
  CHECK(!natural_less("n12", "n12"));
}

namespace fs = std::filesystem;
const fs::path kSamples = fs::path(RAILYARD_SHARED_DIR) / "samples/ib";

FabricGraph sample(const fs::path& path) {
  const auto text = read_text_file((kSamples / path).string());
  REQUIRE(text.ok());
  return must_parse(text.value());
}

// Numbers counted in the files with grep: 8 `Switch` and 10 `Ca` blocks here; in the -p file 12
// GUIDs behind SW and 125 behind CA, 250 - 8 ports of switches and 125 of adapters with a cable.
TEST_CASE("ibnetdiscover samples: a part of an MCS8500 fabric") {
  if (!fs::exists(kSamples)) RAILYARD_SKIP("no samples in " RAILYARD_SHARED_DIR);
  const FabricGraph graph = sample("ibnetdiscover/006-superbench_faked_mcs8500_hdr.txt");
  MESSAGE("006-superbench_faked_mcs8500_hdr.txt: ", summary(graph));
  CHECK(graph.count(GraphNodeKind::fabric_switch) == 8);
  const GraphNode& spine = find(graph, "MF0;rmd70-0101-0908-01ib1-A:MCS8500/S01/U1");
  CHECK(spine.lid == 387);
  CHECK(spine.ports.size() == 3);
  CHECK(graph.nodes[spine.port(2)->peer].name == "MF0;rmd70-0101-0908-01ib1-A:MCS8500/L02/U1");
  CHECK(spine.port(2)->peer_port == 21);
  CHECK(spine.port(1)->rate() == sim::bytes_per_second(25'000'000'000));
  CHECK(is_aggregation_node(graph.nodes[spine.port(41)->peer]));
  const GraphNode& host = find(graph, "RMD701091906037 ibp11s0f0");
  CHECK(host.ports[0].lid == 150);
  CHECK(host.key == 0x043f720300e61112);
}

TEST_CASE("ibnetdiscover samples: the ports of PlaFRIM") {
  if (!fs::exists(kSamples)) RAILYARD_SKIP("no samples in " RAILYARD_SHARED_DIR);
  const FabricGraph graph = sample("lft/plafrim/ib-subnet-fe80:0000:0000:0000.txt");
  MESSAGE("ib-subnet-fe80:0000:0000:0000.txt: ", summary(graph));
  CHECK(graph.count(GraphNodeKind::fabric_switch) == 9);
  const GraphNode& sw = find(graph, "Voltaire 4036 # 4036-8C9E");
  CHECK(sw.lid == 142);
  CHECK(graph.nodes[sw.port(36)->peer].name == "host378 HCA-1");
  CHECK(graph.nodes[sw.port(36)->peer].ports[0].lid == 139);
  CHECK(sw.port(36)->speed == LaneSpeed::qdr);
  CHECK(sw.port(35) == nullptr);
}

TEST_CASE("ibnetdiscover: large and hostile texts end quickly") {
  const std::clock_t start = std::clock();
  std::string ports = "Switch 4 \"S-a\" # \"x\"\n";
  for (int i = 0; i < 500'000; ++i)
    ports += "[" + std::to_string(i % 60'000) + "] \"S-b\"[" + std::to_string(i % 60'000) + "]\n";
  CHECK(parse_ibnetdiscover(ports, "t").ok());
  std::string nodes;
  for (int i = 0; i < 500'000; ++i) nodes += "Ca 1 \"H-" + fmt::format("{:x}", i) + "\"\n";
  CHECK(parse_ibnetdiscover(nodes, "t").ok());
  CHECK(refusal("Ca 1 \"H-1\"\n[" + std::string(10'000'000, '1')).starts_with("t:2: no port"));
  CHECK(parse_ibnetdiscover(
            "Ca 1 \"H-1\"\n" + std::string(3'000'000, '\n') + std::string(3'000'000, 'x'), "t")
            .ok());
  // Of this process's own time, for all of them together.
  CHECK((std::clock() - start) / CLOCKS_PER_SEC < 8 * railyard::tests::kSlowdown);
}

}  // namespace
}  // namespace railyard::topologies
