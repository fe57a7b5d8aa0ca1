#include <doctest/doctest.h>

#include <algorithm>

#include "tests/topologies/support.h"
#include "topologies/show.h"

namespace railyard::topologies {
namespace {

using test::cluster;
using test::must_build;

TEST_CASE("the tree of four equal nodes on a fat tree") {
  auto spec = cluster("pcie-8-nvlink", 4, FabricKind::fat_tree);
  spec.overrides.gpus_per_node = 2;
  spec.fabric.hosts_per_leaf = 2;
  spec.fabric.oversubscription = 2;
  CHECK(show_tree(must_build(spec)) == R"(4 node(s), 8 GPUs, 44 devices, 104 links
node0 .. node3: 4 equal nodes, pcie-8-nvlink
  cpu0  (smp to 1 CPUs, 96 GB/s each)
    pcie0  pcie 31.51 GB/s
      gpu0  pcie 31.51 GB/s; nvlink to gpu1: 12 links, 300 GB/s
      gpu1  pcie 31.51 GB/s; nvlink to gpu0: 12 links, 300 GB/s
      nic0  pcie 31.51 GB/s; port on a leaf: 25 GB/s
    pcie1  pcie 31.51 GB/s
  cpu1  (smp to 1 CPUs, 96 GB/s each)
    pcie2  pcie 31.51 GB/s
      nic1  pcie 31.51 GB/s; port on a leaf: 25 GB/s
    pcie3  pcie 31.51 GB/s
fabric (links of one direction, downwards and up)
  leaf x 2  (oversubscription 2:1)
    8 x to host: 25 GB/s
    4 x to spine: 25 GB/s
  spine x 2
    4 x to leaf: 25 GB/s
)");
}

TEST_CASE("a node that differs is shown apart") {
  auto spec = cluster("hgx-h100", 4, FabricKind::one_switch);
  spec.changes = {{.pattern = "node2/gpu1->node2/nvswitch0", .speed = 0.5}};
  const std::string text = show_tree(must_build(spec));
  CHECK(text.find("\nnode0 .. node1, node3: 3 equal nodes, hgx-h100\n") != std::string::npos);
  CHECK(text.find("\nnode2: hgx-h100\n") != std::string::npos);
  CHECK(text.find("gpu1  pcie 63.02 GB/s; nvlink to nvswitch0: 18 links, 225 GB/s") !=
        std::string::npos);
}

TEST_CASE("thousands of equal GPUs are one line, a rack one node") {
  auto flat = cluster("flat", 1, FabricKind::one_switch);
  flat.overrides.gpus_per_node = 4096;
  CHECK(show_tree(must_build(flat)) == R"(1 node(s), 4096 GPUs, 4097 devices, 8192 links
node0: flat
  gpu0 .. gpu4095 (4096 equal); port on a switch: 50 GB/s
fabric (links of one direction, downwards and up)
  switch x 1
    4096 x to host: 50 GB/s
)");
  const std::string rack = show_tree(must_build(cluster("gb200-nvl72", 18)));
  CHECK(rack.find("18 node(s), 72 GPUs, ") == 0);
  CHECK(rack.find(", 1 NVLink domain(s)\nnode0 .. node17: 18 equal nodes, gb200-nvl72\n") !=
        std::string::npos);
}

TEST_CASE("DOT: a box per node, an edge per link pair") {
  auto spec = cluster("gh200-4", 2, FabricKind::fat_tree);
  spec.fabric.hosts_per_leaf = 1;
  spec.fabric.spines = 2;
  const auto topology = must_build(spec);
  const auto dot = to_dot(topology);
  REQUIRE(dot.ok());
  const std::string& text = dot.value();
  const auto count = [&](const std::string& what) {
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      ++found;
    return found;
  };
  CHECK(count(" -> ") == topology.links.size() / 2);
  CHECK(count("dir=none") == topology.links.size() / 2);
  CHECK(count("subgraph cluster_") == 2);
  CHECK(count("[label=") == topology.devices.size());
  CHECK(count("{") == count("}"));
}

TEST_CASE("DOT: a link that is left alone shows its direction") {
  auto spec = cluster("gh200-4", 1, FabricKind::one_switch);
  spec.changes = {{.pattern = "node0/nic0->switch/0", .disable = true},
                  {.pattern = "switch/0->node0/nic1", .disable = true}};
  const std::string text = to_dot(must_build(spec)).value();
  CHECK(text.find("dir=forward") != std::string::npos);  // switch/0 -> nic0
  CHECK(text.find("dir=back") != std::string::npos);     // nic1 -> switch/0, drawn from above
}

TEST_CASE("DOT: too many devices for a picture") {
  const auto dot = to_dot(must_build(cluster("hgx-h100", 64, FabricKind::one_switch)));
  REQUIRE_FALSE(dot.ok());
  CHECK(dot.error().message ==
        "the topology has 1729 devices; a picture of more than 600 is not readable (show fewer "
        "nodes)");
}

}  // namespace
}  // namespace railyard::topologies
