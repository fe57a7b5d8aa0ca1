#include <doctest/doctest.h>

#include "tests/topologies/support.h"
#include "topologies/link_changes.h"

namespace railyard::topologies {
namespace {

using test::build_error;
using test::cluster;
using test::must_build;

ClusterSpec with_change(const LinkChange& change) {
  auto spec = cluster("gh200-4", 4, FabricKind::fat_tree);
  spec.fabric.hosts_per_leaf = 2;
  spec.fabric.spines = 3;
  spec.changes = {change};
  return spec;
}

// Names of the links that differ from the plan.
std::vector<std::string> slowed(const sim::Topology& changed) {
  auto spec = with_change({});
  spec.changes.clear();
  const auto plan = must_build(spec);
  REQUIRE(plan.links.size() == changed.links.size());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < plan.links.size(); ++i)
    if (plan.links[i].capacity != changed.links[i].capacity ||
        plan.links[i].extra_latency != changed.links[i].extra_latency)
      names.push_back(changed.link_name(sim::LinkId(i)));
  return names;
}

TEST_CASE("a link is slowed in one direction, both, or at a whole device") {
  using Names = std::vector<std::string>;
  CHECK(slowed(must_build(with_change({.pattern = "node3/nic1->leaf/1", .speed = 0.5}))) ==
        Names{"node3/nic1->leaf/1"});
  CHECK(slowed(must_build(with_change({.pattern = "leaf/1<->node3/nic1", .speed = 0.5}))) ==
        Names{"node3/nic1->leaf/1", "leaf/1->node3/nic1"});
  CHECK(slowed(must_build(with_change({.pattern = "spine/2", .speed = 0.25}))) ==
        Names{"leaf/0->spine/2", "spine/2->leaf/0", "leaf/1->spine/2", "spine/2->leaf/1"});
  CHECK(slowed(must_build(
            with_change({.pattern = "leaf/*->spine/0", .extra_latency = sim::nanoseconds(500)}))) ==
        Names{"leaf/0->spine/0", "leaf/1->spine/0"});
}

TEST_CASE("speed and latency change by what was asked for") {
  const auto topology = must_build(with_change(
      {.pattern = "leaf/0->spine/0", .speed = 0.25, .extra_latency = sim::microseconds(2)}));
  for (std::size_t i = 0; i < topology.links.size(); ++i)
    if (topology.link_name(sim::LinkId(i)) == "leaf/0->spine/0") {
      CHECK(topology.links[i].capacity == sim::gigabytes_per_second(6.25));
      CHECK(topology.links[i].extra_latency == sim::microseconds(2));
    }
}

TEST_CASE("a PCIe link that trained low: at most that rate, and no other class") {
  const sim::Bandwidth gen3_x8 = pcie_rate(8, 8);
  CHECK(gen3_x8 == sim::gigabytes_per_second(7.877));  // 8 GT/s x 8 lanes x 128/130 / 8
  // The NIC's other link, to its leaf, stays.
  const auto changed = must_build(with_change({.pattern = "node3/nic1", .pcie_rate = gen3_x8}));
  CHECK(slowed(changed) ==
        std::vector<std::string>{"node3/nic1->node3/cpu1", "node3/cpu1->node3/nic1"});
  for (const sim::Link& link : changed.links)
    if (changed.devices[link.from.index()].name == "node3/nic1" &&
        link.link_class == sim::LinkClass::pcie)
      CHECK(link.capacity == gen3_x8);
  CHECK(slowed(must_build(with_change({.pattern = "node3/nic1", .pcie_rate = pcie_rate(64, 16)})))
            .empty());
  CHECK(build_error(with_change({.pattern = "spine/0", .pcie_rate = gen3_x8})) ==
        "link change 'spine/0': there is no PCIe link");
}

TEST_CASE("disabled links are gone") {
  const auto topology = must_build(with_change({.pattern = "spine/2", .disable = true}));
  for (std::size_t i = 0; i < topology.links.size(); ++i)
    CHECK(topology.link_name(sim::LinkId(i)).find("spine/2") == std::string::npos);
}

TEST_CASE("a pattern that matches nothing names its nearest relatives") {
  CHECK(build_error(with_change({.pattern = "spine/3", .disable = true})) ==
        "link change 'spine/3': no device is called 'spine/3'; nearest names: 'spine/0', "
        "'spine/1', 'spine/2'");
  CHECK(build_error(with_change({.pattern = "node3/nic1->leaf/7", .disable = true}))
            .find("link change 'node3/nic1->leaf/7': no device is called 'leaf/7'; nearest names: "
                  "'leaf/0'") == 0);
  CHECK(build_error(with_change({.pattern = "node3/nic1->leaf/0", .disable = true})) ==
        "link change 'node3/nic1->leaf/0': no such link; there is 'node3/nic1->node3/cpu1', "
        "'node3/nic1->leaf/1'");
  CHECK(build_error(with_change({.pattern = "backbone", .disable = true}))
            .find("no device is called 'backbone'; names look like 'spine/2', ") !=
        std::string::npos);
}

TEST_CASE("speeds and latencies out of range are refused") {
  CHECK(build_error(with_change({.pattern = "spine/0", .speed = 0})) ==
        "link change 'spine/0': speed is 0; it must be above 0 and at most 1 (use disable for a "
        "dead link)");
  CHECK(build_error(with_change({.pattern = "spine/0", .speed = 1.5}))
            .find("speed is 1.5; it must be") != std::string::npos);
  CHECK(build_error(with_change({.pattern = "spine/0", .extra_latency = sim::picoseconds(-1)})) ==
        "link change 'spine/0': extra_latency is negative");
}

TEST_CASE("globs") {
  CHECK(glob_match("", ""));
  CHECK_FALSE(glob_match("", "a"));
  CHECK(glob_match("*", ""));
  CHECK(glob_match("node*/gpu?", "node1/gpu?"));
  CHECK_FALSE(glob_match("node*/gpu?", "node1/gpu0"));
  CHECK(glob_match("node1*/nic*", "node12/nic3"));
  CHECK_FALSE(glob_match("node1*/nic*", "node2/nic1"));
  CHECK(glob_match("*a*b*c", "xxaxxbxbxc"));
  CHECK_FALSE(glob_match("*a*b*c", "xxaxxbxbxcx"));
}

}  // namespace
}  // namespace railyard::topologies
