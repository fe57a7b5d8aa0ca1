#include "algorithms/places.h"

#include <doctest/doctest.h>

#include <utility>

#include "tests/algorithms/clusters.h"

namespace railyard::algorithms {
namespace {

using List = std::vector<std::uint32_t>;

Places places_of(const sim::Topology& topology, const sim::Group& group) {
  auto result = find_places(topology, group);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  return result.value();
}

TEST_CASE("places: a node is an NVLink domain") {
  const sim::Topology hosts = test::cluster({.nodes = 4, .gpus = 2, .nics = 2});
  CHECK(places_of(hosts, test::everyone(hosts)).places.size() == 4);
  const sim::Topology rack =
      test::cluster({.nodes = 4, .gpus = 2, .nics = 2, .nodes_per_domain = 2});
  const Places racks = places_of(rack, test::everyone(rack));
  REQUIRE(racks.places.size() == 2);
  CHECK(racks.places[1].ranks == List{4, 5, 6, 7});
  CHECK(racks.places[0].nics.size() == 4);  // rails 2 and 3 are on the second tray
  CHECK(racks.nearest_rails[3] == List{3});
  CHECK(shape_of(racks).nodes == 2);
  CHECK(shape_of(racks).ranks == 8);
}

TEST_CASE("places: nearest NICs") {
  const sim::Topology own = test::cluster({.nodes = 2, .gpus = 4, .nics = 4});
  const Places one_each = places_of(own, test::everyone(own));
  CHECK(one_each.nearest_rails[6] == List{2});
  const sim::Topology shared =
      test::cluster({.nodes = 2, .gpus = 8, .nics = 4, .gpus_per_pcie_switch = 2});
  const Places pairs = places_of(shared, test::everyone(shared));
  CHECK(pairs.nearest_rails[2] == List{1});
  CHECK(pairs.nearest_rails[3] == List{1});
  CHECK(is_nearest(pairs, 3, 1));
  CHECK_FALSE(is_nearest(pairs, 3, 0));
  const sim::Topology two =
      test::cluster({.nodes = 1, .gpus = 1, .nics = 2, .gpus_per_pcie_switch = 1});
  CHECK(places_of(two, test::everyone(two)).nearest_rails[0] == List{0, 1});
}

TEST_CASE("places: a group that uses one GPU of a node has that GPU's rail only") {
  const sim::Topology topology = test::cluster({.nodes = 2, .gpus = 4, .nics = 4});
  const sim::Group all = test::everyone(topology);
  const Places some = places_of(topology, {all[3], all[7]});
  CHECK(some.places[0].rails == List{3});
  CHECK(some.places[1].rails == List{3});
}

TEST_CASE("places: local order, whatever the order of the ranks") {
  const sim::Topology topology = test::cluster({.nodes = 2, .gpus = 2, .nics = 2});
  const sim::Group all = test::everyone(topology);
  const Places mixed = places_of(topology, {all[3], all[0], all[2], all[1]});
  CHECK(mixed.places[0].ranks == List{2, 0});  // the place of rank 0 comes first
  CHECK(mixed.places[1].ranks == List{1, 3});
  CHECK(mixed.place_of == List{0, 1, 0, 1});
}

TEST_CASE("places: kinds of links") {
  const sim::Topology dgx = test::cluster({});
  const Places nvlink = places_of(dgx, test::everyone(dgx));
  CHECK(nvlink.nvlink);
  CHECK(nvlink.nvswitch);
  const sim::Topology pcie = test::cluster({.gpus = 4, .nvswitch = false});
  CHECK_FALSE(places_of(pcie, test::everyone(pcie)).nvlink);
  CHECK(places_of(pcie, test::everyone(pcie)).pcie);
  sim::Topology pairs = pcie;  // bridges 0-1 and 2-3, then also 1-2
  const auto bridge = [&](std::uint32_t a, std::uint32_t b) {
    sim::Link link;
    link.link_class = sim::LinkClass::nvlink;
    link.from = pairs.nodes[0].gpus[a];
    link.to = pairs.nodes[0].gpus[b];
    pairs.links.push_back(link);
    std::swap(link.from, link.to);
    pairs.links.push_back(link);
  };
  bridge(0, 1);
  bridge(2, 3);
  const sim::Group four = test::everyone(pairs);
  CHECK_FALSE(places_of(pairs, four).nvlink);
  CHECK(places_of(pairs, {four[0], four[1]}).nvlink);
  bridge(1, 2);
  CHECK(places_of(pairs, four).nvlink);
  CHECK_FALSE(places_of(pairs, four).nvswitch);
  const sim::Topology flat = test::gpus_on_a_switch(4);
  const Places direct = places_of(flat, test::everyone(flat));
  CHECK_FALSE(direct.pcie);
  CHECK(direct.places[0].rails.empty());
}

TEST_CASE("places: errors") {
  const sim::Topology topology = test::cluster({.gpus = 2, .nics = 1});
  const sim::Group all = test::everyone(topology);
  const auto error = [&](const sim::Group& group) {
    const auto result = find_places(topology, group);
    return result.ok() ? std::string() : result.error().text();
  };
  CHECK(error({}) == "a group without ranks");
  CHECK(error({all[0], all[0]}) == "two ranks of the group are on node0/gpu0");
  sim::Member nic = all[1];
  nic.gpu = topology.nodes[0].nics[0];
  CHECK(error({all[0], nic}) == "rank 1 of the group is on no GPU of the topology");
  nic.gpu = sim::DeviceId(1000);
  CHECK(error({nic}) == "rank 0 of the group is on no GPU of the topology");
}

}  // namespace
}  // namespace railyard::algorithms
