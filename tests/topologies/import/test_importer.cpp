#include "topologies/import/importer.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "tests/paths.h"
#include "tests/skip.h"
#include "topologies/cluster.h"
#include "topologies/import/text_file.h"

namespace railyard::topologies {
namespace {

namespace fs = std::filesystem;

std::string kind_of(const std::string& text) {
  const Importer* importer = detect_importer(text);
  return importer != nullptr ? std::string(importer->name) : "none";
}

constexpr const char* kMatrix =
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV12\tPXB\t0-31\t0\n"
    "GPU1\tNV12\t X \tSYS\t32-63\t1\n"
    "NIC0\tPXB\tSYS\t X \t\t\n";

TEST_CASE("files are told apart by their content") {
  CHECK(kind_of("<!-- x --><system version=\"1\"/>") == "nccl-xml");
  CHECK(kind_of("<graphs version=\"1\"/>") == "nccl-graph");
  CHECK(kind_of(kMatrix) == "smi-topo");
  CHECK(
      kind_of("switchguid=0x1(1)\nSwitch\t36 \"S-0000000000000001\"\t\t# \"leaf\" enhanced port 0 "
              "lid 1 lmc 0\n") == "ibnetdiscover");
  CHECK(kind_of("SwitchName=s0 Nodes=n[0-3]\n") == "slurm");
  CHECK(kind_of("Unicast lids [0x0-0x2c] of switch Lid 2 guid 0x0000000000000001 (leaf):\n"
                "0x0005 034 : (Channel Adapter portguid 0x1: 'a')\n") == "forwarding-tables");
  CHECK(kind_of("hello") == "none");
  CHECK(kind_of("") == "none");
}

TEST_CASE("names and texts of the kinds are all different") {
  std::set<std::string_view> names;
  std::set<std::string_view> whats;
  for (const Importer& importer : importers()) {
    names.insert(importer.name);
    whats.insert(importer.what);
  }
  CHECK(names.size() == importers().size());
  CHECK(whats.size() == importers().size());
}

TEST_CASE("a matrix becomes a machine of its NVLinks' generation") {
  const auto file = import_text(kMatrix, "topo.txt", {.name = "box"});
  REQUIRE_MESSAGE(file.ok(), (file.ok() ? "" : file.error().text()));
  REQUIRE_MESSAGE(file.value().machine.has_value(), file.value().no_machine);
  const ImportedMachine& imported = *file.value().machine;
  CHECK(imported.machine.name == "box");
  CHECK(imported.like == "pcie-8-nvlink");
  CHECK(imported.machine.compute_capability == 80);
  CHECK(imported.machine.gpus.size() == 2);
  CHECK(imported.machine.nics.size() == 1);
  REQUIRE(imported.machine.pairs.size() == 1);
  CHECK(imported.machine.pairs[0].links == 12);
  CHECK(imported.machine.hardware == nullptr);
  CHECK(imported.borrowed.front() == "GPU model");
  CHECK(file.value().findings.has_value());
  const auto like = import_text(kMatrix, "topo.txt", {.like = "hgx-h100"});
  REQUIRE(like.ok());
  REQUIRE(like.value().machine.has_value());
  CHECK(like.value().machine->machine.compute_capability == 90);
}

TEST_CASE("NVLinks of a matrix name the generation") {
  const auto capability = [](const std::string& text) {
    const auto file = import_text(text, "topo.txt", {});
    REQUIRE(file.ok());
    REQUIRE(file.value().machine.has_value());
    return file.value().machine->machine.compute_capability;
  };
  const auto pair = [](const std::string& cell) {
    return "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \t" + cell + "\t0-7\nGPU1\t" + cell +
           "\t X \t0-7\n";
  };
  CHECK(capability(pair("NV18")) == 90);
  CHECK(capability(pair("NV8")) == 90);
  CHECK(capability(pair("NV6")) == 70);
  CHECK(capability(pair("SYS")) == 80);
  // DGX-1's wiring: six links of a GPU, one or two to each of four others.
  CHECK(capability("\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tCPU Affinity\n"
                   "GPU0\t X \tNV1\tNV1\tNV2\tNV2\t0-7\n"
                   "GPU1\tNV1\t X \tSYS\tSYS\tSYS\t0-7\n"
                   "GPU2\tNV1\tSYS\t X \tSYS\tSYS\t0-7\n"
                   "GPU3\tNV2\tSYS\tSYS\t X \tSYS\t0-7\n"
                   "GPU4\tNV2\tSYS\tSYS\tSYS\t X \t0-7\n") == 70);
}

TEST_CASE("fabrics have a summary and no machine") {
  const auto file = import_text("SwitchName=s0 Nodes=n[0-3]\n", "topology.conf", {});
  REQUIRE(file.ok());
  CHECK_FALSE(file.value().summary.empty());
  CHECK_FALSE(file.value().machine.has_value());
  CHECK(file.value().no_machine.empty());
  CHECK_FALSE(file.value().findings.has_value());
}

TEST_CASE("files of no known kind are refused by what they are") {
  const auto text = import_text("hello", "notes.txt", {});
  REQUIRE_FALSE(text.ok());
  CHECK(text.error().text().starts_with(
      "notes.txt: not a kind of file that is known; known: NCCL topology XML, "));
  const auto html = import_text("<html></html>", "page.html", {});
  REQUIRE_FALSE(html.ok());
  CHECK(html.error().text().starts_with(
      "page.html: not a kind of file that is known: an HTML page; known: "));
  const auto missing = import_file("/no/such/file", {});
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().text() == "/no/such/file: cannot be opened: No such file or directory");
}

// Whatever machine comes of a public paste, it is one that a cluster can be built of.
TEST_CASE("public nvidia-smi matrices become machines") {
  const fs::path directory = fs::path(RAILYARD_SHARED_DIR) / "samples" / "smi-topo";
  if (!fs::exists(directory)) RAILYARD_SKIP("no samples/smi-topo");
  std::size_t machines = 0;
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".txt") continue;
    const std::string path = entry.path().string();
    CAPTURE(path);
    ++files;
    const auto file = import_file(path, {});
    if (!file.ok()) {
      CHECK_FALSE(file.error().message.empty());
      continue;
    }
    if (!file.value().machine) {
      CHECK_FALSE(file.value().no_machine.empty());
      continue;
    }
    ++machines;
    ClusterSpec spec;
    spec.custom = file.value().machine->machine;
    spec.fabric.kind = FabricKind::none;
    const auto topology = build(spec);
    CHECK_MESSAGE(topology.ok(), (topology.ok() ? "" : topology.error().text()));
  }
  CHECK(machines * 10 >= files * 8);
}

}  // namespace
}  // namespace railyard::topologies
