#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>

#include "tests/paths.h"
#include "tests/skip.h"
#include "topologies/import/graph_xml.h"

namespace railyard::topologies {
namespace {

namespace fs = std::filesystem;
using sim::GraphKind;
using sim::GraphPattern;
using sim::PathType;

std::string graph(const std::string& attributes, const std::string& inside) {
  return "<graphs version=\"1\">\n<graph id=\"0\" pattern=\"4\" crossnic=\"0\" speedintra=\"12\" "
         "speedinter=\"12\" typeintra=\"SYS\" typeinter=\"PIX\" samechannels=\"0\" " +
         attributes + ">\n" + inside + "\n</graph></graphs>";
}

std::string error_of(const std::string& text) {
  const auto result = parse_graph_xml(text, "g.xml");
  return result.ok() ? "no error" : result.error().text();
}

TEST_CASE("a graph with nets and ranks") {
  const std::string text = R"(<graphs version="1">
  <graph id="1" pattern="1" crossnic="2" nchannels="2" speedintra="40.5" speedinter="20" latencyinter="1.5" typeintra="NVL" typeinter="PXN" samechannels="1">
    <channel>
      <net dev="0x100000000000003"/>
      <gpu dev="0x1" rank="5"/>
      <gpu dev="0x0" rank="4"/>
      <net dev="a"/>
    </channel>
    <channel>
      <net dev="1"/>
      <gpu dev="0" rank="4"/>
      <gpu dev="1" rank="5"/>
      <net dev="1"/>
    </channel>
  </graph>
  <graph id="3" pattern="5" crossnic="0" nchannels="0" speedintra="0" speedinter="0" typeintra="LOC" typeinter="LOC" samechannels="0"/>
</graphs>
)";
  const auto result = parse_graph_xml(text, "g.xml");
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  const GraphFile& file = result.value();
  CHECK(file.has_ranks);
  REQUIRE(file.graphs.size() == 2);
  CHECK(file.find(GraphKind::ring) == nullptr);
  REQUIRE(file.find(GraphKind::nvls) == &file.graphs[1]);
  const sim::ChannelGraph& tree = file.graphs[0];
  CHECK(tree.kind == GraphKind::tree);
  CHECK(tree.pattern == GraphPattern::balanced_tree);
  CHECK(tree.cross_nic == 2);
  CHECK(tree.same_channels);
  CHECK(tree.bw_intra == 40.5);
  CHECK(tree.bw_inter == 20);
  CHECK(tree.latency_inter == 1.5);
  CHECK(tree.type_intra == PathType::nvl);
  CHECK(tree.type_inter == PathType::pxn);
  REQUIRE(tree.channels.size() == 2);
  CHECK(tree.channels[0].gpus == std::vector<std::int32_t>{5, 4});
  CHECK(tree.channels[0].nets == std::array<std::int64_t, 2>{0x100000000000003, 10});

  // Device 0 is rank 4's, device 1 rank 5's.
  const std::int64_t devs[] = {0, 0, 0, 0, 0, 1};
  const std::string written = write_graph_xml(file.graphs, devs);
  CHECK(written.find("<gpu dev=\"0x1\" rank=\"5\"/>") != std::string::npos);
  const auto again = parse_graph_xml(written, "again");
  REQUIRE(again.ok());
  CHECK(again.value().has_ranks);
  CHECK(write_graph_xml(again.value().graphs, devs) == written);
}

TEST_CASE("dev numbers are hexadecimal since NCCL 2.21 and were decimal before") {
  const std::string text = graph("nchannels=\"1\"", "<channel><gpu dev=\"10\"/></channel>");
  ImportNotes notes;
  const auto now = parse_graph_xml(text, "g.xml", {.notes = &notes});
  REQUIRE(now.ok());
  CHECK(now.value().graphs[0].channels[0].gpus == std::vector<std::int32_t>{16});
  CHECK_FALSE(now.value().has_ranks);
  REQUIRE(notes.lines().size() == 1);
  CHECK(notes.lines()[0] ==
        "g.xml:3: dev=\"10\" read as 16: NCCL 2.21 and later take it as hexadecimal, older ones as "
        "decimal");
  const auto before = parse_graph_xml(text, "g.xml", {.numbers = DevNumbers::decimal});
  REQUIRE(before.ok());
  CHECK(before.value().graphs[0].channels[0].gpus == std::vector<std::int32_t>{10});
}

TEST_CASE("graphs that NCCL would misread are refused with their line") {
  const std::string one = "<channel><gpu dev=\"0\"/></channel>";
  CHECK(error_of(graph("nchannels=\"1\"", one)) == "no error");
  CHECK(error_of("<system version=\"1\"/>") ==
        "g.xml:1: not an NCCL graph but an NCCL topology (<system>)");
  CHECK(error_of("") == "g.xml:1: holds no XML element");
  CHECK(error_of("<graphs version=\"1\"><graph>") ==
        "g.xml:1: the file ends inside <graph>, opened on line 1");
  CHECK(error_of("<graphs/>") == "g.xml:1: <graphs> has no version");
  CHECK(error_of("<graphs version=\"2\"/>") == "g.xml:1: graph version 2; only 1 is known");
  CHECK(error_of("<graphs version=\"1\"/>") == "g.xml:1: <graphs> holds no <graph>");
  CHECK(error_of(graph("", one)) == "g.xml:2: <graph> has no nchannels");
  CHECK(error_of(graph("nchannels=\"2\"", one)) ==
        "g.xml:2: nchannels is 2, but 1 channels follow");
  CHECK(error_of(graph("nchannels=\"65\"", one)) ==
        "g.xml:2: <graph> nchannels=\"65\": must be from 0 to 64");
  CHECK(error_of(graph("nchannels=\"1\"", "<channel/>")) == "g.xml:3: a channel without GPUs");
  CHECK(error_of(graph("nchannels=\"1\"", "<channel><gpu dev=\"0\"/><gpu dev=\"0\"/></channel>")) ==
        "g.xml:3: GPU 0 is in the channel twice");
  CHECK(error_of(graph("nchannels=\"1\"", "<channel><net dev=\"0\"/><gpu dev=\"0\"/></channel>")) ==
        "g.xml:3: a channel with one <net>; entry and exit, or neither, are expected");
  CHECK(error_of(graph("nchannels=\"1\"",
                       "<channel><net dev=\"0\"/><net dev=\"0\"/><net "
                       "dev=\"0\"/></channel>")) == "g.xml:3: a third <net> in a channel");
  CHECK(error_of(graph("nchannels=\"1\"", "<channel><gpu/></channel>")) ==
        "g.xml:3: <gpu> has no dev");
  CHECK(error_of(graph("nchannels=\"1\"", "<channel><gpu dev=\"x\"/></channel>")) ==
        "g.xml:3: <gpu> dev=\"x\": not a hexadecimal number");
  CHECK(
      error_of(graph("nchannels=\"1\"", "<channel><gpu dev=\"0xffffffffffffffff\"/></channel>")) ==
      "g.xml:3: dev does not fit 63 bits");
  CHECK(error_of(graph("nchannels=\"1\"", "<channel><gpu dev=\"0x100000000000000\"/></channel>")) ==
        "g.xml:3: dev 0x100000000000000 is of host 1; GPUs of several hosts need a rank");
  CHECK(error_of(graph("nchannels=\"1\"", "<channel><gpu dev=\"0x10000\"/></channel>")) ==
        "g.xml:3: dev 65536 is larger than 65535");
  CHECK(error_of(graph("nchannels=\"1\"", "<channel><nic/></channel>")) ==
        "g.xml:3: <nic> inside <channel>; <net> and <gpu> are expected");
  CHECK(error_of(graph("nchannels=\"1\"", "<gpu dev=\"0\"/>")) ==
        "g.xml:3: <gpu> inside <graph>; <channel> is expected");
  CHECK(error_of(graph("nchannels=\"2\"", one + "\n<channel><gpu dev=\"0\"/><gpu "
                                                "dev=\"1\"/></channel>")) ==
        "g.xml:4: this channel has 2 GPUs, the first one 1");
  CHECK(error_of(graph("nchannels=\"1\"",
                       "<channel><gpu dev=\"0\"/><gpu dev=\"1\" "
                       "rank=\"1\"/></channel>")) ==
        "g.xml:1: 1 of 2 <gpu>s have a rank; all or none must");
}

TEST_CASE("graph attributes that NCCL does not have are refused") {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = graph("nchannels=\"0\"", "");
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return error_of(text.replace(at, from.size(), to));
  };
  CHECK(with("id=\"0\"", "id=\"5\"") == "g.xml:2: graph id 5; NCCL has 0 to 4");
  CHECK(with("id=\"0\"", "") == "g.xml:2: <graph> has no id");
  CHECK(with("pattern=\"4\"", "pattern=\"7\"") == "g.xml:2: pattern 7; NCCL has 1 to 6");
  CHECK(with("crossnic=\"0\"", "crossnic=\"3\"") ==
        "g.xml:2: <graph> crossnic=\"3\": must be from 0 to 2");
  CHECK(with("samechannels=\"0\"", "") == "g.xml:2: <graph> has no samechannels");
  CHECK(with("speedintra=\"12\"", "speedintra=\"nan\"") ==
        "g.xml:2: <graph> speedintra=\"nan\": must be finite and not negative");
  CHECK(with("speedinter=\"12\"", "speedinter=\"-1\"") ==
        "g.xml:2: <graph> speedinter=\"-1\": must be finite and not negative");
  CHECK(with("speedinter=\"12\"", "") == "g.xml:2: <graph> has no speedinter");
  CHECK(with("typeintra=\"SYS\"", "") == "g.xml:2: <graph> has no typeintra");
  CHECK(with("typeintra=\"SYS\"", "typeintra=\"PCI\"")
            .starts_with("g.xml:2: typeintra: unknown path type 'PCI'"));
  CHECK(error_of("<graphs version=\"1\">" +
                 graph("nchannels=\"0\"", "")
                     .substr(std::string("<graphs version=\"1\">").size() + 1,
                             std::string::npos)) == "no error");
  std::string twice = graph("nchannels=\"0\"", "");
  const std::string body =
      twice.substr(twice.find("<graph id"), twice.find("</graph>") + 8 - twice.find("<graph id"));
  CHECK(error_of("<graphs version=\"1\">" + body + "\n" + body + "</graphs>") ==
        "g.xml:4: a second graph with id 0");
}

// Read in the files by eye: graphs, and of the first one channels and GPUs of a channel.
TEST_CASE("public graph files") {
  const fs::path directory = fs::path(RAILYARD_SHARED_DIR) / "samples" / "nccl-graph-xml";
  if (!fs::exists(directory)) RAILYARD_SKIP("no samples/nccl-graph-xml");
  struct Expected {
    std::size_t graphs, channels, gpus;
  };
  const std::map<std::string, Expected> expected{
      {"001", {3, 2, 4}}, {"002", {3, 2, 2}}, {"003", {4, 1, 8}},
      {"004", {3, 6, 8}}, {"005", {3, 2, 4}}, {"006", {2, 8, 8}},
      {"007", {2, 8, 8}}, {"009", {2, 8, 8}}, {"011", {2, 8, 8}}};
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    const auto file = read_graph_xml(entry.path().string());
    REQUIRE_MESSAGE(file.ok(), (file.ok() ? "" : file.error().text()));
    const auto& graphs = file.value().graphs;
    std::printf("  %-48s %zu graphs\n", name.c_str(), graphs.size());
    const std::string text = write_graph_xml(graphs);
    const auto again = parse_graph_xml(text, "again");
    REQUIRE(again.ok());
    CHECK(write_graph_xml(again.value().graphs) == text);
    const auto known = expected.find(name.substr(0, 3));
    if (known == expected.end()) continue;
    CHECK(graphs.size() == known->second.graphs);
    CHECK(graphs[0].channels.size() == known->second.channels);
    CHECK(graphs[0].channels[0].gpus.size() == known->second.gpus);
  }
}

}  // namespace
}  // namespace railyard::topologies
