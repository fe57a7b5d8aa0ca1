// Every `nvidia-smi topo -m` of the collection: read or refused for the right reason, its PCI tree
// gives the printed cells again, and numbers read off the files by eye.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/paths.h"
#include "tests/skip.h"
#include "tests/topologies/smi_support.h"

namespace railyard::topologies {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> samples() {
  std::vector<fs::path> files;
  const fs::path folder = fs::path(RAILYARD_SHARED_DIR) / "samples/smi-topo";
  if (fs::exists(folder))
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string text_of(SmiCell cell) {
  std::string text(sim::to_text(cell.path));
  return cell.path == SmiPath::nvlink ? text + std::to_string(cell.nvlinks) : text;
}

#define SAMPLES(files)                           \
  const std::vector<fs::path> files = samples(); \
  if (files.empty()) RAILYARD_SKIP("no nvidia-smi samples in " RAILYARD_SHARED_DIR)

TEST_CASE("smi samples: one is cut in mid-row, the others are read") {
  SAMPLES(files);
  std::size_t refused = 0;
  for (const fs::path& path : files) {
    const std::string text = contents(path);
    const auto matrix = parse_smi_topo(text, path.filename().string());
    MESSAGE(path.filename().string(), ": ",
            (matrix.ok() ? summary(matrix.value()) : matrix.error().text()));
    CHECK(looks_like_smi_topo(text));
    if (matrix.ok()) {
      CHECK(check(matrix.value()).size() < 16);
      continue;
    }
    ++refused;
    CHECK(matrix.error().text() ==
          "027-first-col-lost-11122.txt:8: row GPU6, column GPU7: 'PX' is no path type (X, NV#, "
          "PIX, PXB, PHB, NODE, SYS, N/A)");
  }
  CHECK(refused == 1);
}

TEST_CASE("smi samples: the PCI tree and the NVLinks give the matrix again") {
  SAMPLES(files);
  std::size_t compared = 0;
  for (const fs::path& path : files) {
    CAPTURE(path.string());
    const auto matrix = parse_smi_topo(contents(path), "t");
    if (!matrix.ok()) continue;
    const SmiMatrix& m = matrix.value();
    const SmiHardware built = hardware_of(m);
    const auto again = test::cells_of(built.hardware);
    const auto printed = test::pci_cells(m);
    CHECK(again.size() == m.labels.size() * (m.labels.size() - 1));
    std::size_t different = 0;
    for (const auto& [pair, cell] : printed) different += again.at(pair) == cell ? 0 : 1;
    CHECK(different == 0);
    compared += printed.size();
    const auto links = test::nvlinks_of(built.hardware);
    for (std::size_t a = 0; a < m.gpus; ++a)
      for (std::size_t b = 0; b < m.gpus; ++b) {
        const auto found = links.find({"g" + m.labels[a].substr(3), "g" + m.labels[b].substr(3)});
        const int count = found == links.end() ? 0 : found->second;
        // 038: pairs of GPUs in one plane, which the matrix shows as lone pairs.
        if (a != b && m.cell(a, b).nvlinks != 0) CHECK(count == m.cell(a, b).nvlinks);
        if (a != b && m.cell(a, b).nvlinks == 0) CHECK(count == 0);
      }
  }
  CHECK(compared > 5000);
}

struct Cell {
  std::size_t row;
  std::size_t column;
  const char* text;
};
struct Expected {
  const char* prefix;
  std::uint32_t gpus;
  std::size_t nics;
  Cell cells[3];
  const char* cpus;  // of the first GPU
  const char* numa;
};

// Read off the files by eye: the first NIC's column is the number of GPUs.
constexpr Expected kExpected[] = {
    {"001-", 4, 0, {{0, 1, "PHB"}, {0, 2, "SYS"}, {3, 2, "PHB"}}, "0,2,4,6,8,10", "0"},
    {"003-", 8, 0, {{0, 1, "NV2"}, {2, 1, "NODE"}, {7, 0, "SYS"}}, "0-11,24-35", "0"},
    {"005-", 3, 0, {{0, 1, "NODE"}, {0, 2, "SYS"}, {2, 1, "SYS"}}, "0-11,24-35", "0"},
    {"006-", 8, 2, {{0, 1, "PIX"}, {4, 5, "PXB"}, {8, 9, "PIX"}}, "0-31,64-95", "0"},
    {"007-", 4, 0, {{0, 1, "NV4"}, {0, 2, "SYS"}, {2, 3, "NV4"}}, "0-127", "N/A"},
    {"009-", 8, 0, {{0, 1, "NV18"}, {7, 6, "NV18"}, {3, 5, "NV18"}}, "0-51,104-155", "0"},
    {"011-", 1, 4, {{0, 4, "PXB"}, {0, 3, "NODE"}, {1, 0, "SYS"}}, "32-63,96-127", "1"},
    {"012-", 4, 8, {{0, 1, "NV12"}, {0, 8, "PXB"}, {4, 5, "PIX"}}, "48-95,144-191", "1"},
    {"015-", 8, 9, {{0, 1, "PXB"}, {0, 16, "SYS"}, {11, 10, "PIX"}}, "0-35,72-107", "0"},
    {"018-", 8, 0, {{0, 7, "PHB"}, {7, 0, "PHB"}, {3, 4, "PHB"}}, "0-191", "0-1"},
    {"022-", 8, 2, {{0, 2, "NV8"}, {5, 6, "NV4"}, {0, 8, "NODE"}}, "0-15,64-79", "0"},
    {"026-", 1, 0, {{0, 0, "X"}, {0, 0, "X"}, {0, 0, "X"}}, "0-7", "0"},
    {"028-", 4, 4, {{0, 3, "NV18"}, {0, 4, "NODE"}, {4, 6, "SYS"}}, "0-71", "0"},
    {"029-", 4, 8, {{0, 1, "NV8"}, {0, 4, "PXB"}, {11, 10, "PIX"}}, "0-63,128-191", "0"},
    {"032-", 4, 2, {{0, 3, "NV6"}, {1, 4, "PIX"}, {2, 4, "SYS"}}, "0,2,4,6,8,10", "0"},
    {"033-", 8, 10, {{7, 17, "PIX"}, {0, 8, "PIX"}, {4, 13, "PIX"}}, "0-11", "0"},
    {"037-", 8, 8, {{0, 1, "NV18"}, {0, 15, "PHB"}, {15, 8, "PHB"}}, "0-129", "0-1"},
    {"038-", 8, 0, {{2, 3, "NV17"}, {0, 1, "NV18"}, {0, 2, "NODE"}}, "0-127,256-383", "0"},
    {"039-", 2, 1, {{0, 1, "NV12"}, {0, 2, "NODE"}, {1, 2, "SYS"}}, "0-39", "0"},
    {"041-", 8, 26, {{0, 26, "PIX"}, {1, 28, "PHB"}, {4, 8, "NODE"}}, "0-95,192-287", "0"},
    {"043-", 8, 42, {{7, 46, "PIX"}, {7, 49, "PHB"}, {49, 6, "PIX"}}, "0-95,192-287", "0"},
    {"047-", 8, 9, {{0, 1, "NV8"}, {0, 8, "PIX"}, {1, 10, "PIX"}}, "0,8,16,24,34", "0"},
    {"048-", 8, 10, {{0, 8, "PIX"}, {1, 8, "NODE"}, {0, 17, "SYS"}}, "0,2,4,6,8,10", "0"},
    {"049-", 2, 62, {{0, 1, "SYS"}, {0, 2, "NODE"}, {2, 3, "PIX"}}, "", ""},
    {"050-", 8, 1, {{3, 8, "PIX"}, {2, 8, "PXB"}, {8, 4, "SYS"}}, "0-31,64-95", "0"},
    {"052-", 8, 0, {{0, 1, "NV18"}, {7, 0, "NV18"}, {5, 4, "NV18"}}, "0-51,104-155", "0"},
    {"054-", 10, 0, {{0, 1, "PIX"}, {0, 4, "NODE"}, {9, 8, "PIX"}}, "0-15,32-47", "0"},
    {"056-", 4, 0, {{0, 1, "SYS"}, {3, 2, "SYS"}, {3, 3, "X"}}, "", ""},
    {"057-", 8, 1, {{2, 3, "PIX"}, {0, 4, "NODE"}, {0, 8, "SYS"}}, "0-31,64-95", "0"},
    {"062-", 8, 18, {{0, 7, "NV2"}, {2, 25, "PIX"}, {25, 0, "NODE"}}, "0-23,48-71", "0"},
    {"064-", 8, 4, {{0, 1, "NV1"}, {2, 8, "PIX"}, {11, 6, "NODE"}}, "0-23,48-71", "0"},
    {"065-", 8, 0, {{0, 4, "NV1"}, {1, 5, "NV2"}, {0, 7, "NODE"}}, "20-39", "1"}};

TEST_CASE("smi samples: numbers read off 32 files by eye") {
  SAMPLES(files);
  for (const Expected& expected : kExpected) {
    CAPTURE(expected.prefix);
    const auto path = std::find_if(files.begin(), files.end(), [&](const fs::path& p) {
      return p.filename().string().starts_with(expected.prefix);
    });
    REQUIRE(path != files.end());
    const auto matrix = parse_smi_topo(contents(*path), "t");
    REQUIRE(matrix.ok());
    const SmiMatrix& m = matrix.value();
    CHECK(m.gpus == expected.gpus);
    CHECK(m.nics() == expected.nics);
    for (const Cell& cell : expected.cells)
      CHECK(text_of(m.cell(cell.row, cell.column)) == cell.text);
    CHECK(m.affinity[0].cpus == expected.cpus);
    CHECK(m.affinity[0].numa == expected.numa);
  }
}

SmiMatrix sample(const std::vector<fs::path>& files, const char* prefix) {
  for (const fs::path& path : files)
    if (path.filename().string().starts_with(prefix))
      return parse_smi_topo(contents(path), "t").value();
  FAIL("no sample " << prefix);
  return {};
}

TEST_CASE("smi samples: NICs by the legend, GPU NUMA ids, checks") {
  SAMPLES(files);
  CHECK(sample(files, "028-").nic_devices ==
        std::vector<std::string>{"mlx5_0", "mlx5_1", "mlx5_4", "mlx5_5"});
  CHECK(sample(files, "028-").affinity[3].gpu_numa == "26");
  CHECK(sample(files, "043-").nic_devices[41] == "mlx5_bond_8");
  CHECK(sample(files, "012-").nic_devices[7] == "mlx5_7");
  CHECK(sample(files, "053-").nic_devices.empty());
  CHECK(check(sample(files, "038-")) ==
        std::vector<std::string>{"GPU2-GPU3: NV17 beside NV18 elsewhere: 1 link missing"});
  CHECK(check(sample(files, "022-")) ==
        std::vector<std::string>{"GPU4-GPU7: NV6 beside NV8 elsewhere: 2 links missing",
                                 "GPU5-GPU6: NV4 beside NV8 elsewhere: 4 links missing"});
  for (const char* healthy : {"003-", "025-", "028-", "033-", "062-", "064-", "065-"})
    CHECK(check(sample(files, healthy)).empty());
}

}  // namespace
}  // namespace railyard::topologies
