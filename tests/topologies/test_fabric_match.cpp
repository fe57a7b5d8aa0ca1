// A node's NICs among the adapters of a fabric's hosts.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "topologies/fabric_match.h"

namespace railyard::topologies {
namespace {

using Names = std::vector<std::string>;

FabricSourcePtr source(const std::string& text) {
  auto made = parse_fabric_source({"f", text}, {});
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().text()));
  return made.value();
}

// One switch; "h1 mlx5_0" is an adapter of h1.
FabricSourcePtr star(const Names& adapters) {
  std::string text = "Switch 99 \"S-ff\" # \"sw\"\n";
  for (std::size_t i = 0; i < adapters.size(); ++i)
    text +=
        fmt::format("[{}] \"H-{:x}\"[1] # \"{}\" lid {} 4xNDR\n", i + 1, i + 1, adapters[i], i + 1);
  return source(text);
}

MachineSpec node(const Names& nics) {
  MachineSpec machine = find_machine("hgx-h100").value();
  spread_nics(machine, static_cast<std::uint32_t>(nics.size()));
  machine.nic_names = nics;
  return machine;
}

FabricMatch must_match(const FabricSourcePtr& fabric, const MachineSpec& machine,
                       const AdapterMap& names = {}) {
  auto match = match_fabric(*fabric, machine, names);
  REQUIRE_MESSAGE(match.ok(), (match.ok() ? "" : match.error().text()));
  return std::move(match).value();
}

TEST_CASE("match: the NICs that most hosts have cabled are the node's") {
  const FabricMatch match = must_match(star({"h10 a", "h10 b", "h3 b", "h3 a", "h2 a", "h2 b",
                                             "h2 d", "h1 a", "h1 b", "h1 c", "h1 x"}),
                                       node({"a", "c", "b", "d"}));
  CHECK(match.nics == std::vector<std::uint32_t>{0, 2});  // h3 and h10
  CHECK(match.adapters == Names{"a", "b"});
  CHECK(match.hosts == Names{"h1", "h2", "h3", "h10"});
}

TEST_CASE("match: of equally many hosts the larger set wins") {
  const FabricMatch match = must_match(star({"h1 a", "h2 a", "h2 b"}), node({"a", "b"}));
  CHECK(match.nics.size() == 2);
  CHECK(match.hosts == Names{"h2"});
  CHECK(match.left_out == Names{"h1 has no cabled adapter 'b'"});
}

TEST_CASE("match: what is not matched is listed, hosts in natural order") {
  const FabricMatch match = must_match(
      star({"h10 a", "h9 a", "h9 x_10", "h9 x_9", "h10 x_9", "h8 y"}), node({"a", "eth0"}));
  CHECK(match.hosts == Names{"h9", "h10"});
  CHECK(match.not_cabled == Names{"eth0"});
  CHECK(match.not_of_node == Names{"x_9 (of 2 hosts)", "x_10 (of 1 host)"});
  CHECK(match.left_out == Names{"h8 has no cabled adapter 'a'"});
  CHECK(match.notes.empty());
}

TEST_CASE("match: without a common name the order of names decides, if the number fits") {
  const auto fabric = star({"h1 p1", "h1 p2", "h2 p1"});
  const FabricMatch named = must_match(fabric, node({"a", "b"}));
  CHECK(named.adapters.empty());
  CHECK(named.nics.size() == 2);
  CHECK(named.hosts == Names{"h1"});
  CHECK(named.left_out == Names{"h2 has 1 cabled adapters"});
  CHECK(
      named.notes ==
      Names{"no adapter of the fabric is called as a NIC of the machine (a, b); adapters are taken "
            "in the order of their names"});
  MachineSpec nameless = node({"a", "b"});
  nameless.nic_names.clear();
  CHECK(must_match(fabric, nameless).notes ==
        Names{"the machine's file does not name its NICs; adapters are taken in the order of their "
              "names"});
}

TEST_CASE("match: names by host") {
  const auto fabric = star({"h1 a", "h1 b", "h2 b", "h2 c", "h3 a"});
  AdapterMap names;
  names.by_host["h2"] = {"c", "b"};
  const FabricMatch match = must_match(fabric, node({"a", "b"}), names);
  CHECK(match.hosts == Names{"h1", "h2"});  // each once: {a b}, {a}; the larger
  CHECK(match.not_of_node.empty());
  names.by_host = {{"h1", {"b", "a"}}, {"h2", {"c", "b"}}, {"h3", {"a", "b"}}};
  const FabricMatch all = must_match(fabric, node({"u", "v"}), names);
  CHECK(all.hosts == Names{"h1", "h2"});
  CHECK(all.left_out == Names{"h3 has no cabled adapter 'b'"});
  CHECK(all.notes.empty());
}

TEST_CASE("match: SLURM tells no adapters, all NICs of a node are in its leaf") {
  const auto fabric = source(
      "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n3\n"
      "SwitchName=top Switches=a,b\n");
  const FabricMatch match = must_match(fabric, node({"a", "b", "c"}));
  CHECK(match.nics.size() == 3);
  CHECK(match.hosts == Names{"n1", "n2", "n3"});
  CHECK(match.notes ==
        Names{"the fabric's file tells no adapters: all NICs of a host in its leaf"});
}

TEST_CASE("match: refusals") {
  const auto fabric = star({"h1 a"});
  MachineSpec bare = node({"a"});
  bare.nics.clear();
  bare.nic_names.clear();
  const auto error = [](const sim::Result<FabricMatch>& match) {
    return match.ok() ? "accepted" : match.error().text();
  };
  CHECK(error(match_fabric(*fabric, bare, {})) ==
        "hgx-h100: the machine has no NICs that a fabric could reach");
  CHECK(error(match_fabric(*source("Switch 4 \"S-a\" # \"r\"\n[1] \"S-b\"[1] # \"t\"\n"),
                           node({"a"}), {})) == "f: the fabric has no hosts");
}

TEST_CASE("a node with some of its NICs keeps their places, rates and names") {
  MachineSpec machine = node({"a", "b", "c"});
  machine.nic_rates = {sim::gigabits_per_second(400), sim::gigabits_per_second(100),
                       sim::gigabits_per_second(200)};
  machine.nic.value = machine.nic_rates[0];
  const MachineSpec less = with_nics(machine, {1, 2});
  CHECK(less.nic_names == Names{"b", "c"});
  CHECK(less.nics[0].index == machine.nics[1].index);
  CHECK(less.nic.value == sim::gigabits_per_second(200));
  CHECK(less.nic_rates.size() == 2);
  CHECK(check_machine(less).ok());
}

}  // namespace
}  // namespace railyard::topologies
