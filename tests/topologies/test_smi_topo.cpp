// The reader of `nvidia-smi topo -m`: traps of pasted text, refusals by their message, checks, and
// the PCI tree. Matrices here are small and written for the test.
#include <doctest/doctest.h>

#include <algorithm>

#include <ctime>

#include "tests/time_limit.h"
#include "tests/topologies/smi_support.h"
#include "topologies/import/smi_topo.h"

namespace railyard::topologies {
namespace {

SmiMatrix must_parse(std::string_view text) {
  auto matrix = parse_smi_topo(text, "t");
  REQUIRE_MESSAGE(matrix.ok(), (matrix.ok() ? "" : matrix.error().text()));
  return std::move(matrix).value();
}

std::string refusal(std::string_view text) {
  const auto matrix = parse_smi_topo(text, "t");
  return matrix.ok() ? "accepted" : matrix.error().text();
}

constexpr std::string_view kNative =
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV12\tPIX\t0-31,64-95\t0\t\tN/A\n"
    "GPU1\tNV12\t X \tSYS\t32-63\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n  X = Self\n\nNIC Legend:\n\n  NIC0: mlx5_3\n";

TEST_CASE("smi: the native form") {
  const SmiMatrix m = must_parse(kNative);
  CHECK(looks_like_smi_topo(kNative));
  CHECK(m.labels == std::vector<std::string>{"GPU0", "GPU1", "NIC0"});
  CHECK(m.gpus == 2);
  CHECK(m.cell(0, 1) == SmiCell{SmiPath::nvlink, 12});
  CHECK(m.cell(2, 0).path == SmiPath::pix);
  CHECK(m.affinity[0].cpus == "0-31,64-95");
  CHECK(m.affinity[1].numa == "1");
  CHECK(m.affinity[1].gpu_numa == "N/A");
  CHECK(m.nic_devices == std::vector<std::string>{"mlx5_3"});
  CHECK(m.notes.empty());
  CHECK(summary(m) == "nvidia-smi topo: 2 GPUs, 1 NIC; GPU pairs NV12 x1");
}

TEST_CASE("smi: damage that pastes do") {
  const std::string_view damaged[] = {
      // Blanks collapsed, a log collector's words before every line.
      "I 07:01 GPU0 GPU1 NIC0 CPU Affinity NUMA Affinity GPU NUMA ID\n"
      "I 07:02 GPU0 X NV12 PIX 0-31,64-95 0 N/A\nI 07:02 GPU1 NV12 X SYS 32-63 1 N/A\n"
      "I 07:02 NIC0 PIX SYS X\nI NIC Legend:\nI NIC0: mlx5_3\n",
      // Fused header and cells, line ends of Windows, a blank line inside.
      "GPU0GPU1NIC0CPU Affinity NUMA Affinity GPU NUMA ID\r\n"
      "GPU0 X NV12PIX0-31,64-95 0 N/A\r\n\r\nGPU1 NV12 X SYS32-63 1 N/A\r\n"
      "NIC0 PIXSYS X\r\nNIC Legend:\r\n  NIC0: mlx5_3\r\n",
      // The codes without their escape character; rows in another order.
      "[4mGPU0 GPU1 NIC0 CPU Affinity NUMA Affinity GPU NUMA ID[0m\n"
      "NIC0 PIX SYS X\nGPU1 NV12 X SYS 32-63 1 N/A\nGPU0 X NV12 PIX 0-31, 64-95 0 N/A\n"
      "NIC Legend:\n NIC0: mlx5_3\n"};
  const SmiMatrix whole = must_parse(kNative);
  for (const std::string_view text : damaged) {
    CAPTURE(text);
    const SmiMatrix m = must_parse(text);
    CHECK(m.labels == whole.labels);
    CHECK(m.cells == whole.cells);
    CHECK(m.nic_devices == whole.nic_devices);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(m.affinity[i].cpus == whole.affinity[i].cpus);
      CHECK(m.affinity[i].numa == whole.affinity[i].numa);
      CHECK(m.affinity[i].gpu_numa == whole.affinity[i].gpu_numa);
    }
  }
}

TEST_CASE("smi: device names as columns, fused ones too, and names of old drivers") {
  const SmiMatrix m = must_parse(
      "GPU0 GPU2 mlx5_bond_0mlx5_10CPU Affinity\n"
      "GPU0 X SOC PSB NV10-7\nGPU2 SOC X PHB PXB 8-15\n"
      "mlx5_bond_0 PSB PHB X N/A\nmlx5_10 NV1 PXB N/A X\n");
  CHECK(m.labels[3] == "mlx5_10");
  CHECK(m.nic_devices == std::vector<std::string>{"mlx5_bond_0", "mlx5_10"});
  CHECK(m.cell(0, 1).path == SmiPath::sys);
  CHECK(m.cell(0, 2).path == SmiPath::pix);
  CHECK(m.cell(0, 3) == SmiCell{SmiPath::nvlink, 1});
  CHECK(m.affinity[0].cpus == "0-7");
  CHECK(m.cell(2, 3).path == SmiPath::unknown);
}

TEST_CASE("smi: columns that are blank") {
  const SmiMatrix m = must_parse(
      "GPU0 GPU1 CPU Affinity NUMA Affinity GPU NUMA ID\n"
      "GPU0 X SYS    N/A\nGPU1 SYS X 0-7   N/A extra words\n");
  CHECK(m.affinity[0].cpus.empty());
  CHECK(m.affinity[0].numa.empty());
  CHECK(m.affinity[0].gpu_numa == "N/A");
  CHECK(m.affinity[1].cpus == "0-7");
  CHECK(m.notes == std::vector<std::string>{"row GPU1: 'words' behind the last column is ignored"});
}

TEST_CASE("smi: what is refused, and where") {
  CHECK(refusal("") ==
        "t: no matrix of `nvidia-smi topo -m`: no line has the columns GPU0, GPU1, ...");
  CHECK(refusal("The GPU0 is hot\n").find("no matrix") != std::string::npos);
  CHECK(refusal("\nGPU0 GPU1\nsomething\n") ==
        "t:2: this header of columns is not followed by a row for any of them");
  CHECK(refusal("GPU0 GPU1 GPU0\nGPU0 X X X\n") == "t:1: the column GPU0 is there twice");
  CHECK(refusal("GPU0 GPU1\nGPU0 X PX\n") ==
        "t:2: row GPU0, column GPU1: 'PX' is no path type (X, NV#, PIX, PXB, PHB, NODE, SYS, N/A)");
  CHECK(refusal("GPU0 GPU1\nGPU0 X OK\nGPU1 OK X\n") ==
        "t:2: row GPU0, column GPU1: 'OK' is a word of `nvidia-smi topo -p2p`; the output of `topo "
        "-m` is expected");
  CHECK(refusal("GPU0 GPU1\nGPU0 X\n") ==
        "t:2: row GPU0, column GPU1: the row ends after 1 of 2 cells");
  CHECK(refusal("GPU0 GPU1\nGPU0 SYS X\n") ==
        "t:2: row GPU0, column GPU0: X is expected on the diagonal");
  CHECK(refusal("GPU0 GPU1\nGPU0 X X\n") ==
        "t:2: row GPU0, column GPU1: X stands off the diagonal");
  CHECK(refusal("GPU0 GPU1\nGPU0 X SYS\nGPU0 X SYS\n") == "t:3: the row GPU0 is there twice");
  CHECK(refusal("GPU0 GPU1\nGPU0 X SYS\n\nLegend:\n") ==
        "t:4: the row GPU1 is missing: the matrix ends after 1 of 2 rows");
  std::string wide;
  for (int i = 0; i < 1025; ++i) wide += "GPU" + std::to_string(i) + " ";
  CHECK(refusal(wide + "\nGPU0 X\n") == "t:1: more than 1024 columns");
}

TEST_CASE("smi: checks") {
  const auto found = [](std::string_view text) { return check(must_parse(text)); };
  CHECK(found(kNative).empty());
  CHECK(found("GPU0 GPU1 GPU2\nGPU0 X NV18 SYS\nGPU1 NV17 X NV18\nGPU2 NV18 NV18 X\n") ==
        std::vector<std::string>{
            "GPU0-GPU2: SYS one way and NV18 back: NVLinks in one direction only",
            "GPU0-GPU1: NV18 one way and NV17 back"});
  CHECK(found("GPU0 GPU1 GPU2\nGPU0 X NV18 NV17\nGPU1 NV18 X NV17\nGPU2 NV17 NV17 X\n") ==
        std::vector<std::string>{"GPU0-GPU2: NV17 beside NV18 elsewhere: 1 link missing",
                                 "GPU1-GPU2: NV17 beside NV18 elsewhere: 1 link missing"});
  CHECK(found("GPU0 GPU1 GPU2\nGPU0 X NV2 SYS\nGPU1 NV2 X NV1\nGPU2 SYS NV1 X\n") ==
        std::vector<std::string>{"GPU0 has 2 NVLinks in all, other GPUs have 3",
                                 "GPU2 has 1 NVLinks in all, other GPUs have 3"});
  CHECK(found("GPU0 GPU1 GPU2\nGPU0 X NV4 SYS\nGPU1 NV4 X SYS\nGPU2 SYS SYS X\n") ==
        std::vector<std::string>{"GPU2 has no NVLink although other GPUs have up to NV4"});
  CHECK(found("GPU0 GPU1 NIC0\nGPU0 X PIX PIX\nGPU1 PIX X SYS\nNIC0 PIX SYS X\n") ==
        std::vector<std::string>{
            "GPU0-GPU1 is PIX, but GPU0-NIC0 is PIX and GPU1-NIC0 is SYS: no PCI tree",
            "GPU0-NIC0 is PIX, but GPU0-GPU1 is PIX and NIC0-GPU1 is SYS: no PCI tree"});
  CHECK(found("GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X PHB 0-7 0\nGPU1 PHB X 8-15 1\n") ==
        std::vector<std::string>{"GPU0-GPU1 is PHB, but their NUMA affinities are 0 and 1"});
}

TEST_CASE("smi: checks of NICs") {
  // Four GPUs, each beside a NIC of its own; `last` is how GPU3 sees NIC3.
  const auto found = [](const std::string& last, const std::string& extra) {
    std::string text = "GPU0 GPU1 GPU2 GPU3 NIC0 NIC1 NIC2 NIC3 NIC4\n";
    for (int row = 0; row < 9; ++row) {
      text += row < 4 ? "GPU" + std::to_string(row) : "NIC" + std::to_string(row - 4);
      for (int column = 0; column < 9; ++column) {
        const int low = std::min(row, column);
        const int high = std::max(row, column);
        std::string cell = low == high ? "X" : "NODE";
        if (low < 3 && high == low + 4) cell = "PIX";
        if (low == 3 && high == 7) cell = last;
        if (low < 4 && high == 8) cell = low == 0 ? "NODE" : extra;
        text += " " + cell;
      }
      text += "\n";
    }
    return check(must_parse(text));
  };
  CHECK(found("PIX", "NODE").empty());
  CHECK(found("NODE", "NODE") ==
        std::vector<std::string>{"GPU3 has no NIC below its PCIe switch, most GPUs have one"});
  const auto fewer = found("PIX", "PXB");
  CHECK(std::count(fewer.begin(), fewer.end(),
                   "GPU0 has 1 NICs below its PCIe switch, most GPUs have 2: a rail is missing") ==
        1);
}

TEST_CASE("smi: a PCI tree by hand") {
  // GPU0 and NIC0 on one switch, GPU1 under the same top switch, NIC1 on another root port of the
  // same bridge, GPU2 across host bridges, GPU3 on the other socket.
  const SmiMatrix m = must_parse(
      "GPU0 GPU1 GPU2 GPU3 NIC0 NIC1 CPU Affinity NUMA Affinity\n"
      "GPU0 X PXB NODE SYS PIX PHB 0-3 2\nGPU1 PXB X NODE SYS PXB PHB 0-3 2\n"
      "GPU2 NODE NODE X SYS NODE NODE 0-3 2\nGPU3 SYS SYS SYS X SYS SYS 4-7,33 5\n"
      "NIC0 PIX PXB NODE SYS X PHB\nNIC1 PHB PHB NODE SYS PHB X\n");
  const SmiHardware built = hardware_of(m);
  const auto& cpus = built.hardware.cpus;
  REQUIRE(cpus.size() == 2);
  CHECK(cpus[0].numa_id == 2);
  CHECK(cpus[0].affinity == "0000000f");
  CHECK(cpus[1].numa_id == 5);
  CHECK(cpus[1].affinity == "00000002,000000f0");
  REQUIRE(cpus[0].pci.size() == 3);  // the top switch, GPU2, NIC1
  const sim::HardwarePci& top = cpus[0].pci[0];
  REQUIRE(top.children.size() == 2);
  CHECK(top.device_class == sim::kPciClassSwitch);
  REQUIRE(top.children[0].children.size() == 2);
  CHECK(top.children[0].children[0].gpu->dev == 0);
  CHECK(top.children[0].children[1].nics[0].nets[0].name == "NIC0");
  REQUIRE(top.children[1].children.size() == 1);
  CHECK(top.children[1].children[0].gpu->dev == 1);
  CHECK(cpus[1].pci[0].gpu->dev == 3);
  CHECK(test::cells_of(built.hardware) == test::pci_cells(m));
}

TEST_CASE("smi: NVLinks become direct links, or switches where they are too many") {
  const auto gpu = [](const SmiHardware& built, std::size_t cpu) {
    return *built.hardware.cpus[cpu].pci[0].gpu;
  };
  const SmiHardware mesh =
      hardware_of(must_parse("GPU0 GPU1 GPU2\nGPU0 X NV6 NV12\nGPU1 NV6 X SYS\nGPU2 NV12 SYS X\n"));
  REQUIRE(mesh.hardware.cpus.size() == 3);
  REQUIRE(gpu(mesh, 0).nvlinks.size() == 2);
  CHECK(gpu(mesh, 0).nvlinks[0].count == 6);
  CHECK(gpu(mesh, 0).nvlinks[0].target == mesh.hardware.cpus[1].pci[0].bus_id);
  CHECK(gpu(mesh, 0).nvlinks[1].count == 12);
  const SmiHardware plane = hardware_of(
      must_parse("GPU0 GPU1 GPU2\nGPU0 X NV17 NV17\nGPU1 NV17 X NV18\nGPU2 NV17 NV18 X\n"));
  REQUIRE(gpu(plane, 0).nvlinks.size() == 1);
  CHECK(gpu(plane, 0).nvlinks[0].count == 17);
  CHECK(gpu(plane, 1).nvlinks[0].count == 18);
  CHECK(gpu(plane, 1).nvlinks[0].target_class == sim::kPciClassNvswitch);
}

TEST_CASE("smi: large and hostile texts end quickly") {
  const std::clock_t start = std::clock();
  std::string lines = "GPU0 GPU1\n";
  for (int i = 0; i < 1'000'000; ++i) lines += "GPU0 GPU1 GPU2\n";
  CHECK(refusal(lines).find("not followed by a row") != std::string::npos);
  CHECK(refusal(std::string(20'000'000, 'G')).find("no matrix") != std::string::npos);
  std::string codes;
  for (int i = 0; i < 4'000'000; ++i) codes += "GPU[;";
  CHECK(refusal(codes).find("no matrix") != std::string::npos);
  std::string wide;
  for (int i = 0; i < 1'000'000; ++i) wide += "NIC" + std::to_string(i) + "\t";
  CHECK(refusal("GPU0 " + wide).find("more than 1024") != std::string::npos);
  // Of this process's own time, for all of them together.
  CHECK((std::clock() - start) / CLOCKS_PER_SEC < 8 * railyard::tests::kSlowdown);
}

}  // namespace
}  // namespace railyard::topologies
