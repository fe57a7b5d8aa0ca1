#include "topologies/fabric_check.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "topologies/import/ibnetdiscover.h"

namespace railyard::topologies {
namespace {

using Lines = std::vector<std::string>;

// Three leaves with one host each of two adapters, two spines; a rate for every cable.
struct Fabric {
  std::vector<std::string> cables;

  Fabric() {
    for (int leaf = 0; leaf < 3; ++leaf) {
      for (int nic = 0; nic < 2; ++nic)
        cables.push_back(
            fmt::format("\"S-a{0}\"[{1}] \"leaf{0}\" \"H-b{0}{1}\"[1] \"h{0} mlx5_{2}\" 4xNDR",
                        leaf, nic + 1, nic));
      for (int spine = 0; spine < 2; ++spine)
        cables.push_back(
            fmt::format("\"S-a{0}\"[{2}] \"leaf{0}\" \"S-c{1}\"[{3}] \"spine{1}\" 4xNDR", leaf,
                        spine, spine + 11, leaf + 1));
    }
  }

  // Of the cable that has both words.
  std::string& cable(const std::string& a, const std::string& b) {
    for (std::string& each : cables)
      if (each.find(a) != std::string::npos && each.find(b) != std::string::npos) return each;
    FAIL("no such cable");
    return cables.front();
  }
  void set_rate(const std::string& a, const std::string& b, const std::string& rate) {
    std::string& text = cable(a, b);
    text.replace(text.rfind(' ') + 1, std::string::npos, rate);
  }
  void cut(const std::string& a, const std::string& b) { cable(a, b).clear(); }

  // Each cable in a block of its switch's.
  [[nodiscard]] Lines findings() const {
    std::map<std::string, std::string> blocks;
    for (const std::string& cable : cables) {
      if (cable.empty()) continue;
      std::vector<std::string> quoted;
      for (std::size_t at = 0; (at = cable.find('"', at)) != std::string::npos;) {
        const std::size_t end = cable.find('"', at + 1);
        quoted.push_back(cable.substr(at, end - at + 1));
        at = end + 1;
      }
      const std::size_t open = cable.find('[');
      const std::string port = cable.substr(open, cable.find(']') - open + 1);
      const std::size_t far = cable.find('[', open + 1);
      const std::string far_port = cable.substr(far, cable.find(']', far) - far + 1);
      blocks["Switch 40 " + quoted[0] + " # " + quoted[1]] +=
          port + " " + quoted[2] + far_port + " # " + quoted[3] + " lid 1 " +
          cable.substr(cable.rfind(' ') + 1) + "\n";
    }
    std::string text;
    for (const auto& [head, ports] : blocks) text += head + "\n" + ports + "\n";
    const auto graph = parse_ibnetdiscover(text, "t");
    REQUIRE_MESSAGE(graph.ok(), (graph.ok() ? "" : graph.error().text()));
    Lines lines;
    for (const Finding& finding : check_fabric(graph.value()))
      lines.push_back(finding.where + ": " + finding.what);
    return lines;
  }
};

TEST_CASE("fabric check: nothing where all are equal") { CHECK(Fabric().findings().empty()); }

TEST_CASE("fabric check: a host's cable trained low or narrow") {
  Fabric fabric;
  fabric.set_rate("leaf1", "h1 mlx5_1", "4xHDR");
  fabric.set_rate("leaf2", "h2 mlx5_0", "2xNDR");
  CHECK(fabric.findings() ==
        Lines{"host h1 mlx5_1: cable at 4x HDR, most of such hosts' carry 50GB/s",
              "host h2 mlx5_0: cable at 2x NDR, most of such hosts' carry 50GB/s"});
}

TEST_CASE("fabric check: a trunk slower than the others of both its ends") {
  Fabric fabric;
  fabric.set_rate("leaf1", "spine0", "4xHDR");
  CHECK(fabric.findings() == Lines{"cable spine0[2]-leaf1[11]: 4x HDR, while both switches have "
                                   "faster ones to others"});
  // A whole spine of an older generation is no fault.
  fabric.set_rate("leaf0", "spine0", "4xHDR");
  fabric.set_rate("leaf2", "spine0", "4xHDR");
  CHECK(fabric.findings().empty());
}

TEST_CASE("fabric check: a missing rail and a leaf with fewer cables up") {
  Fabric fabric;
  fabric.cut("leaf2", "h2 mlx5_1");
  fabric.cut("leaf0", "spine1");
  CHECK(fabric.findings() ==
        Lines{"host h2: no cable at mlx5_1, which 2 hosts have: a rail is missing",
              "switch leaf0: 1 cables to other switches, most leaves have 2"});
}

}  // namespace
}  // namespace railyard::topologies
