// Path types against what nvidia-smi topo -m printed on real machines.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "tests/paths.h"
#include "tests/skip.h"
#include "tests/topologies/support.h"
#include "topologies/show.h"

namespace railyard::topologies {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows ours(const std::string& machine, std::size_t size) {
  const auto topology = test::must_build(test::cluster(machine, 1));
  const PathMatrix matrix = path_matrix(topology, 0);
  Rows rows;
  for (std::size_t i = 0; i < size; ++i) {
    rows.emplace_back();
    for (std::size_t j = 0; j < size; ++j) rows.back().push_back(to_text(matrix.at(i, j)));
  }
  return rows;
}

// The grid's rows, first cells only; labels GPU<n>, NIC<n>, mlx5_<n>. Plain files, no traps.
Rows read_sample(const std::string& prefix, std::size_t size) {
  Rows rows;
  const std::filesystem::path folder =
      std::filesystem::path(RAILYARD_SHARED_DIR) / "samples/smi-topo";
  if (!std::filesystem::exists(folder)) return rows;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().rfind(prefix, 0) != 0) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::istringstream cells(line);
      std::string label;
      std::string cell;
      cells >> label;
      const bool named =
          label.rfind("GPU", 0) == 0 || label.rfind("NIC", 0) == 0 || label.rfind("mlx5_", 0) == 0;
      if (!named || label.back() == ':') continue;
      std::vector<std::string> row;
      while (row.size() < size && cells >> cell) row.push_back(cell);
      const bool grid = row.size() == size && row[0].rfind("GPU", 0) != 0;
      if (grid && rows.size() < size) rows.push_back(row);
    }
  }
  return rows;
}

#define READ_SAMPLE(rows, prefix, count)                                            \
  const Rows rows = read_sample(prefix, count);                                     \
  if (rows.empty()) RAILYARD_SKIP("no nvidia-smi samples in " RAILYARD_SHARED_DIR); \
  REQUIRE(rows.size() == (count))

TEST_CASE("HGX B200, GPU to GPU, as a real machine prints it") {
  READ_SAMPLE(rows, "025-", 8);
  CHECK(rows == ours("hgx-b200", 8));
}

TEST_CASE("a GB200 tray, GPUs and NICs, as a real machine prints it") {
  READ_SAMPLE(rows, "028-", 8);
  CHECK(rows == ours("gb200-nvl72", 8));
}

TEST_CASE("HGX H100: NV18 everywhere and one compute NIC under each GPU's switch") {
  READ_SAMPLE(rows, "033-", 18);  // NIC1 and NIC6 are storage NICs of this machine
  const std::array<std::size_t, 8> compute{0, 2, 3, 4, 5, 7, 8, 9};
  const Rows mine = ours("hgx-h100", 16);
  for (std::size_t gpu = 0; gpu < 8; ++gpu)
    for (std::size_t other = 0; other < 8; ++other) {
      CHECK(rows[gpu][other] == mine[gpu][other]);
      const bool near = rows[gpu][8 + compute[other]] == "PIX";  // this BIOS splits the sockets
      CHECK(near == (mine[gpu][8 + other] == "PIX"));
    }
}

TEST_CASE("A100: NICs are PXB from their pair of GPUs and PIX from each other") {
  READ_SAMPLE(rows, "012-", 12);  // half of an 8-GPU board: GPUs 0-3, NICs 4-7 are near
  const Rows mine = ours("dgx-a100", 12);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      CHECK(rows[i][j] == mine[i][j]);
      CHECK((rows[i][8 + j] == "PXB") == (mine[i][8 + j] == "PXB"));
      CHECK((rows[8 + i][8 + j] == "PIX") == (mine[8 + i][8 + j] == "PIX"));
    }
}

TEST_CASE("four GPUs wired in pairs print NV6") {
  READ_SAMPLE(rows, "032-", 4);
  CHECK(rows == ours("gh200-4", 4));
}

// Is there a numbering of the GPUs under which the two NVLink wirings are the same?
bool same_wiring(const Rows& a, const Rows& b) {
  std::array<std::size_t, 8> order{};
  std::iota(order.begin(), order.end(), 0u);
  const auto wire = [](const std::string& cell) { return cell.rfind("NV", 0) == 0 ? cell : ""; };
  do {
    bool same = true;
    for (std::size_t i = 0; i < 8 && same; ++i)
      for (std::size_t j = 0; j < 8 && same; ++j)
        same = wire(a[i][j]) == wire(b[order[i]][order[j]]);
    if (same) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

TEST_CASE("V100 hybrid cube mesh: the wiring of two real machines, whatever their numbering") {
  for (const char* prefix : {"064-", "065-"}) {
    CAPTURE(prefix);
    READ_SAMPLE(rows, prefix, 8);
    CHECK(same_wiring(rows, ours("dgx-1v", 8)));
  }
}

TEST_CASE("DGX-1: sockets, switches and host bridges") {
  const Rows mine = ours("dgx-1v", 12);
  CHECK(mine[0] == std::vector<std::string>{"X", "NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS",
                                            "PIX", "PHB", "SYS", "SYS"});
  CHECK(mine[6] == std::vector<std::string>{"SYS", "SYS", "NV1", "SYS", "NV1", "NV2", "X", "NV2",
                                            "SYS", "SYS", "PHB", "PIX"});
}

TEST_CASE("PCIe boxes: PIX, NODE and SYS, and NV12 over a bridge") {
  CHECK(ours("pcie-8", 10)[1] == std::vector<std::string>{"PIX", "X", "NODE", "NODE", "SYS", "SYS",
                                                          "SYS", "SYS", "PIX", "SYS"});
  CHECK(ours("pcie-8-nvlink", 4)[2] == std::vector<std::string>{"NODE", "NODE", "X", "NV12"});
}

TEST_CASE("a matrix is symmetric with X on the diagonal, on every machine") {
  for (const std::string_view name : machine_names()) {
    CAPTURE(name);
    const auto topology = test::must_build(test::cluster(std::string(name), 1));
    const PathMatrix matrix = path_matrix(topology, 0);
    const std::size_t size = matrix.gpus + matrix.nics;
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = 0; j < size; ++j) {
        CHECK(to_text(matrix.at(i, j)) == to_text(matrix.at(j, i)));
        CHECK((matrix.at(i, j).type == PathType::self) == (i == j));
      }
  }
}

TEST_CASE("the printed matrix has nvidia-smi's header, rows and legends") {
  const auto topology = test::must_build(test::cluster("gh200-4", 2, FabricKind::one_switch));
  const std::string text = show_matrix(topology, 1);
  CHECK(text.rfind("\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tNIC3\tCPU Affinity\tNUMA Affinity\n"
                   "GPU0\t X \tNV6\tNV6\tNV6\tNODE\tSYS\tSYS\tSYS\t0-71\t0\n",
                   0) == 0);
  CHECK(text.find("\nNIC3\tSYS\tSYS\tSYS\tNODE\tSYS\tSYS\tSYS\t X \n\nLegend:\n") !=
        std::string::npos);
  CHECK(text.find("NIC Legend:\n\n  NIC0: node1/nic0\n") != std::string::npos);
}

}  // namespace
}  // namespace railyard::topologies
