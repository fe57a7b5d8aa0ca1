// Machines of the catalogue as NCCL sees them, and topology files as machines.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "tests/paths.h"
#include "tests/skip.h"
#include "topologies/cluster.h"
#include "topologies/cpu_list.h"
#include "topologies/hardware_devices.h"
#include "topologies/hardware_machine.h"
#include "topologies/import/nccl_xml.h"
#include "topologies/machine_hardware.h"

namespace railyard::topologies {
namespace {

namespace fs = std::filesystem;
using sim::Hardware;
using sim::HardwarePci;

Hardware must_parse(const std::string& text) {
  auto result = parse_nccl_xml(text, "t.xml");
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  return std::move(result).value();
}

ImportedMachine must_import(const Hardware& hardware, const ImportOptions& options = {}) {
  auto result = machine_of(hardware, options);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  return std::move(result).value();
}

std::string refusal(const std::string& text) {
  const auto result = machine_of(must_parse(text));
  return result.ok() ? "no error" : result.error().text();
}

bool assumed(const ImportedMachine& imported, const std::string& text) {
  return std::find(imported.assumptions.begin(), imported.assumptions.end(), text) !=
         imported.assumptions.end();
}

// What NCCL's decisions follow from, by rank order: GPUs with their links, NICs with their speed.
struct Facts {
  std::vector<std::int32_t> sm;
  std::vector<std::uint32_t> nvlinks;
  std::vector<std::string> gpu_speed;
  std::vector<std::int32_t> gpu_width;
  std::vector<std::int32_t> net_speed;
  std::vector<double> c2c;
  std::multiset<std::string> cpu;
  std::vector<std::set<std::int32_t>> nets_below_gpus_switch;  // by GPU
};

void collect(const HardwarePci& pci, const HardwarePci& top, Facts& facts) {
  if (pci.gpu) {
    facts.sm.push_back(pci.gpu->sm);
    std::uint32_t links = 0;
    for (const sim::HardwareNvlink& link : pci.gpu->nvlinks) links += link.count;
    facts.nvlinks.push_back(links);
    facts.gpu_speed.push_back(pci.link_speed);
    facts.gpu_width.push_back(pci.link_width);
    if (pci.gpu->c2c) facts.c2c.push_back(pci.gpu->c2c->bandwidth * pci.gpu->c2c->count);
    std::set<std::int32_t> nets;
    const std::function<void(const HardwarePci&)> below = [&](const HardwarePci& each) {
      for (const sim::HardwareNic& nic : each.nics)
        for (const sim::HardwareNet& net : nic.nets) nets.insert(net.dev);
      for (const HardwarePci& child : each.children) below(child);
    };
    if (&top != &pci) below(top);
    facts.nets_below_gpus_switch.push_back(nets);
  }
  for (const sim::HardwareNic& nic : pci.nics)
    for (const sim::HardwareNet& net : nic.nets) facts.net_speed.push_back(net.speed);
  for (const HardwarePci& child : pci.children) collect(child, top, facts);
}

Facts facts_of(const Hardware& hardware) {
  Facts facts;
  for (const sim::HardwareCpu& cpu : hardware.cpus) {
    facts.cpu.insert(cpu.arch + "/" + cpu.vendor + "/" + std::to_string(cpu.family) + "/" +
                     std::to_string(cpu.model));
    for (const HardwarePci& pci : cpu.pci) collect(pci, pci, facts);
  }
  return facts;
}

TEST_CASE("catalogue machines are NCCL's reference machines") {
  const fs::path directory =
      fs::path(RAILYARD_SHARED_DIR) / "reference" / "nccl-decisions" / "topo";
  if (!fs::exists(directory)) RAILYARD_SKIP("no reference/nccl-decisions");
  const std::map<std::string, std::string> machines{{"dgx-1v", "dgx1v"},
                                                    {"dgx-a100", "dgx_a100"},
                                                    {"dgx-h100", "dgx_h100"},
                                                    {"hgx-b200", "hgx_b200"},
                                                    {"gb200-nvl72", "gb200_nvl72"}};
  for (const auto& [machine, file] : machines) {
    const std::string name = machine;
    CAPTURE(name);
    const auto ours = hardware_of(find_machine(machine).value());
    const auto theirs = read_nccl_xml((directory / (file + ".xml")).string());
    REQUIRE(ours.ok());
    REQUIRE(theirs.ok());
    const Facts a = facts_of(ours.value());
    const Facts b = facts_of(theirs.value());
    CHECK(a.sm == b.sm);
    CHECK(a.nvlinks == b.nvlinks);
    CHECK(a.gpu_speed == b.gpu_speed);
    CHECK(a.gpu_width == b.gpu_width);
    CHECK(a.net_speed == b.net_speed);
    CHECK(a.c2c == b.c2c);
    CHECK(a.nets_below_gpus_switch == b.nets_below_gpus_switch);
    // The catalogue's DGX A100 has four NUMA nodes, the reference two; Arm has no vendor.
    if (name == "dgx-a100") CHECK(*a.cpu.begin() == *b.cpu.begin());
    if (name != "dgx-a100" && name != "gb200-nvl72") CHECK(a.cpu == b.cpu);
  }
}

TEST_CASE("the cube mesh is wired as the reference has it") {
  const fs::path file =
      fs::path(RAILYARD_SHARED_DIR) / "reference" / "nccl-decisions" / "topo" / "dgx1v.xml";
  if (!fs::exists(file)) RAILYARD_SKIP("no reference/nccl-decisions");
  const ImportedMachine theirs = must_import(read_nccl_xml(file.string()).value());
  const MachineSpec ours = find_machine("dgx-1v").value();
  REQUIRE(theirs.machine.pairs.size() == ours.pairs.size());
  for (std::size_t i = 0; i < ours.pairs.size(); ++i) {
    CHECK(theirs.machine.pairs[i].a == ours.pairs[i].a);
    CHECK(theirs.machine.pairs[i].b == ours.pairs[i].b);
    CHECK(theirs.machine.pairs[i].links == ours.pairs[i].links);
  }
}

bool same(Parent a, Parent b) { return a.is_switch == b.is_switch && a.index == b.index; }

TEST_CASE("a machine made of a catalogue machine's file is that machine") {
  for (const std::string_view name : machine_names()) {
    CAPTURE(name);
    const MachineSpec machine = find_machine(name).value();
    if (machine.flat) continue;
    const auto hardware = hardware_of(machine);
    REQUIRE(hardware.ok());
    const auto read = parse_nccl_xml(write_nccl_xml(hardware.value()), "t.xml");
    REQUIRE(read.ok());
    const ImportedMachine imported = must_import(read.value(), {.like = machine.name});
    const MachineSpec& again = imported.machine;
    CHECK(again.compute_capability == machine.compute_capability);
    CHECK(again.nvlinks_per_gpu == machine.nvlinks_per_gpu);
    CHECK(again.nvswitch == machine.nvswitch);
    CHECK(again.gpu_host_class == machine.gpu_host_class);
    CHECK(again.nic_rates.empty());
    CHECK(again.gpu_nvlinks.empty());
    CHECK(sim::to_gigabytes_per_second(again.nic.value) ==
          doctest::Approx(sim::to_gigabytes_per_second(machine.nic.value)));
    // What a file's NICs have is the usual rate of its machine; GB10's have half of the GPU's
    // lanes.
    const double lanes = name == "gb10" ? 0.5 : 1;
    CHECK(sim::to_gigabytes_per_second(again.pcie.value) ==
          doctest::Approx(lanes * sim::to_gigabytes_per_second(machine.pcie.value)).epsilon(1e-4));
    CHECK(sim::to_gigabytes_per_second(again.direct_nic.value) ==
          doctest::Approx(sim::to_gigabytes_per_second(machine.direct_nic.value)).epsilon(1e-4));
    REQUIRE(again.gpus.size() == machine.gpus.size());
    REQUIRE(again.nics.size() == machine.nics.size());
    REQUIRE(again.numa.size() == machine.numa.size());
    REQUIRE(again.pairs.size() == machine.pairs.size());
    for (std::size_t i = 0; i < machine.numa.size(); ++i) {
      CHECK(again.numa[i].id == machine.numa[i].id);
      CHECK(again.numa[i].cpus == machine.numa[i].cpus);
    }
    REQUIRE(again.switches.size() == machine.switches.size());
    for (std::size_t i = 0; i < machine.switches.size(); ++i)
      CHECK(same(again.switches[i].parent, machine.switches[i].parent));
    for (std::size_t i = 0; i < machine.gpus.size(); ++i)
      CHECK(same(again.gpus[i], machine.gpus[i]));
    for (std::size_t i = 0; i < machine.nics.size(); ++i)
      CHECK(same(again.nics[i], machine.nics[i]));
    CHECK((again.hardware != nullptr) != machine.processors_only);
  }
}

TEST_CASE("a file with Direct NICs under other numbers than their GPUs' has none, and says so") {
  const MachineSpec machine = find_machine("gb300-nvl72").value();
  Hardware hardware = hardware_of(machine).value();
  const auto net = [&](std::size_t bridge) -> sim::HardwareNet& {
    return hardware.cpus[0].pci[bridge].children[1].nics[0].nets[0];
  };
  const auto notes = [&](const ImportedMachine& imported) {
    return std::ranges::count_if(imported.assumptions, [](const std::string& line) {
      return line.find("data-direct function") != std::string::npos;
    });
  };
  ImportedMachine imported = must_import(hardware, {.like = machine.name});
  CHECK(imported.machine.direct_nic.value.raw() > 0);
  CHECK(notes(imported) == 0);
  std::swap(net(0).dev, net(1).dev);
  imported = must_import(hardware, {.like = machine.name});
  CHECK(imported.machine.direct_nic.value.raw() == 0);
  CHECK(imported.machine.nics.size() == 4);
  CHECK(notes(imported) == 1);
}

TEST_CASE("partitions of a switch chip carry the ids by which NCCL joins them") {
  const Hardware hardware = hardware_of(find_machine("dgx-a100").value()).value();
  const HardwarePci& top = hardware.cpus[0].pci[0];
  // NCCL: vendor 0x1000, device 0xc010, subsystem 0x1000, 0xa000 to 0xafff, on both levels.
  for (const HardwarePci* pci : {&top, &top.children[0], &top.children[1]}) {
    CHECK(pci->vendor == 0x1000);
    CHECK(pci->device == 0xc010);
    CHECK(pci->subsystem_vendor == 0x1000);
    CHECK((pci->subsystem_device & 0xf000) == 0xa000);
  }
  const Hardware plain = hardware_of(find_machine("hgx-h100").value()).value();
  CHECK(plain.cpus[0].pci[0].vendor == 0);
}

TEST_CASE("machines without an inside have no hardware") {
  const auto flat = hardware_of(find_machine("flat").value());
  REQUIRE_FALSE(flat.ok());
  CHECK(flat.error().message == "machine 'flat' has no inside that NCCL could look at");
}

// Two GPUs and a NIC below a switch; the parts are replaced by the cases.
std::string node(const std::string& cpu, const std::string& inside) {
  return "<system version=\"1\"><cpu numaid=\"0\" affinity=\"ff\" arch=\"x86_64\" "
         "vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\"" +
         cpu + ">" + inside + "</cpu></system>";
}
std::string gpu(int bus, const std::string& attributes, const std::string& links,
                const std::string& speed = "32.0 GT/s PCIe") {
  return "<pci busid=\"0000:" + std::to_string(bus) + ":00.0\" class=\"0x030200\" link_speed=\"" +
         speed + "\" link_width=\"16\"><gpu " + attributes + ">" + links + "</gpu></pci>";
}
std::string nic(int bus, const std::string& nets, const std::string& speed = "32.0 GT/s PCIe") {
  return "<pci busid=\"0000:" + std::to_string(bus) + ":00.0\" class=\"0x020700\" link_speed=\"" +
         speed + "\" link_width=\"16\"><nic>" + nets + "</nic></pci>";
}
const char* const kSwitch18 = "<nvlink count=\"18\" tclass=\"0x068000\"/>";

TEST_CASE("a degraded node keeps its failed links and slow devices") {
  const std::string text =
      node("", gpu(10, "dev=\"1\" sm=\"90\"", "<nvlink count=\"17\" tclass=\"0x068000\"/>") +
                   gpu(11, "dev=\"0\" sm=\"90\"", kSwitch18, "16.0 GT/s PCIe") +
                   gpu(12, "dev=\"2\" sm=\"90\"", kSwitch18) +
                   nic(20, "<net name=\"b\" dev=\"1\" speed=\"400000\"/>") +
                   nic(21, "<net name=\"a\" dev=\"0\" speed=\"200000\"/>"));
  const ImportedMachine imported = must_import(must_parse(text), {.name = "sick"});
  const MachineSpec& machine = imported.machine;
  CHECK(imported.like == "hgx-h100");
  CHECK(machine.name == "sick");
  CHECK(machine.nvswitch);
  CHECK(machine.nvlinks_per_gpu == 18);
  // By CUDA index: dev 0 is the GPU at 16 GT/s, dev 1 the one with 17 links.
  CHECK(machine.gpu_nvlinks == std::vector<std::uint16_t>{18, 17, 18});
  CHECK(sim::to_gigabytes_per_second(machine.gpu_host.value) == doctest::Approx(63.015));
  CHECK(sim::to_gigabytes_per_second(machine.gpus[0].rate) == doctest::Approx(31.508));
  CHECK(machine.gpus[1].rate.raw() == 0);
  REQUIRE(machine.nic_rates.size() == 2);
  CHECK(sim::to_gigabytes_per_second(machine.nic_rates[0]) == doctest::Approx(25));
  CHECK(sim::to_gigabytes_per_second(machine.nic_rates[1]) == doctest::Approx(50));

  ClusterSpec spec;
  spec.custom = machine;
  spec.nodes = 2;
  spec.fabric.kind = FabricKind::one_switch;
  const auto topology = build(spec);
  REQUIRE(topology.ok());
  std::map<std::string, double> rates;
  for (std::size_t i = 0; i < topology.value().links.size(); ++i)
    rates[topology.value().link_name(sim::LinkId(i))] =
        sim::to_gigabytes_per_second(topology.value().links[i].capacity);
  CHECK(rates["node0/gpu0->node0/nvswitch0"] == doctest::Approx(450));
  CHECK(rates["node1/gpu1->node1/nvswitch0"] == doctest::Approx(425));
  CHECK(rates["node1/gpu0->node1/cpu0"] == doctest::Approx(31.508));
  CHECK(rates["node1/gpu2->node1/cpu0"] == doctest::Approx(63.015));
  CHECK(rates["node1/nic0->switch/0"] == doctest::Approx(25));
  CHECK(rates["switch/0->node1/nic1"] == doctest::Approx(50));
}

TEST_CASE("what a file does not say is borrowed and said") {
  const std::string text =
      node("",
           "<pci busid=\"0000:10:00.0\" class=\"0x030200\" link_speed=\"32 GT/s\" "
           "link_width=\"16\"/><pci busid=\"0000:11:00.0\" class=\"0x020700\"/>");
  const ImportedMachine imported = must_import(must_parse(text));
  CHECK(imported.like == "hgx-h100");
  CHECK(imported.machine.nvlinks_per_gpu == 18);
  CHECK(imported.machine.hardware == nullptr);  // NCCL would see no GPU in this file alone
  CHECK(assumed(imported,
                "the file does not name its GPUs; taken as hgx-h100's, a guess by PCIe "
                "speed"));
  CHECK(assumed(imported, "1 NICs without a speed; taken as 50GB/s, as on hgx-h100"));
  CHECK(assumed(imported, "NVLinks are not in the file; 18 a GPU, wired as on hgx-h100"));
  CHECK(imported.borrowed ==
        std::vector<std::string>{"GPU model", "PCIe speeds", "NIC speeds", "NVLinks"});
  const ImportedMachine other = must_import(must_parse(text), {.like = "pcie-8"});
  CHECK(other.machine.nvlinks_per_gpu == 0);
  CHECK(assumed(other, "NVLinks are not in the file; none assumed"));
  CHECK(machine_of(must_parse(text), {.like = "hgx-h10"})
            .error()
            .message.starts_with("unknown machine 'hgx-h10'"));
  CHECK(machine_of(must_parse(text), {.like = "flat"}).error().message ==
        "a flat machine supplies nothing that a node lacks");
}

TEST_CASE("NVLinks that contradict themselves") {
  const auto link = [](int bus, int count) {
    return "<nvlink target=\"0000:" + std::to_string(bus) + ":00.0\" count=\"" +
           std::to_string(count) + "\" tclass=\"0x030200\"/>";
  };
  const ImportedMachine one_way = must_import(must_parse(
      node("", gpu(10, "dev=\"0\" sm=\"80\"", link(11, 12)) + gpu(11, "dev=\"1\" sm=\"80\"", ""))));
  REQUIRE(one_way.machine.pairs.size() == 1);
  CHECK(one_way.machine.pairs[0].links == 12);
  CHECK(one_way.like == "pcie-8-nvlink");
  CHECK(assumed(one_way, "GPU 0 has 12 NVLinks to GPU 1, which has 0 back; 12 taken both ways"));

  const ImportedMachine itself =
      must_import(must_parse(node("", gpu(10, "dev=\"0\" sm=\"80\"", link(10, 12) + link(99, 4)))));
  CHECK(itself.machine.pairs.empty());
  CHECK(assumed(itself,
                "12 NVLinks from a GPU to itself left out; which GPU is at their other end "
                "the file does not say"));
  CHECK(assumed(itself, "4 NVLinks to devices that are not in the file left out"));

  const ImportedMachine many = must_import(must_parse(
      node("", gpu(10, "dev=\"0\" sm=\"100\"", "<nvlink count=\"126\" tclass=\"0x068000\"/>"))));
  CHECK(many.machine.nvlinks_per_gpu == 18);
  CHECK(assumed(many, "GPU 0 has 126 NVLinks in the file; 18 taken, the most of its generation"));
}

TEST_CASE("NICs: several ports, none on PCIe, sockets beside real ones") {
  const std::string one = gpu(10, "dev=\"0\" sm=\"90\"", kSwitch18);
  const ImportedMachine ports = must_import(must_parse(node(
      "", one + nic(20, "<net dev=\"0\" speed=\"400000\"/><net dev=\"1\" speed=\"400000\"/>"))));
  CHECK(ports.machine.nics.size() == 2);
  REQUIRE(ports.machine.switches.size() == 1);
  CHECK(same(ports.machine.nics[1], at_switch(0)));
  CHECK(assumed(ports, "the 2 ports of 0000:20:00.0 share its PCIe link: it is a switch"));
  const ImportedMachine fits = must_import(must_parse(node(
      "", one + nic(20, "<net dev=\"0\" speed=\"100000\"/><net dev=\"1\" speed=\"100000\"/>"))));
  CHECK(fits.machine.nics.size() == 2);
  CHECK(fits.machine.switches.empty());

  const std::string sockets = "<nic><net dev=\"5\" name=\"eth0\" speed=\"10000\"/></nic>";
  const ImportedMachine bare = must_import(must_parse(node("", one + sockets)));
  REQUIRE(bare.machine.nics.size() == 1);
  CHECK(sim::to_gigabytes_per_second(bare.machine.nic.value) == doctest::Approx(1.25));
  const ImportedMachine beside = must_import(
      must_parse(node("", one + sockets + nic(20, "<net dev=\"0\" speed=\"400000\"/>"))));
  CHECK(beside.machine.nics.size() == 1);
  CHECK(assumed(beside, "1 network devices without PCIe left out: there are real NICs"));
}

TEST_CASE("several hosts of one NVLink domain") {
  const auto host = [](int hash, const std::string& inside) {
    return "<cpu numaid=\"0\" host_hash=\"0x" + std::to_string(hash) + "\">" + inside + "</cpu>";
  };
  const std::string inside =
      gpu(10, "dev=\"0\" sm=\"100\"", std::string(kSwitch18) + "<c2c bw=\"45000\" count=\"10\"/>");
  const ImportedMachine domain = must_import(
      must_parse("<system version=\"1\">" + host(1, inside) + host(2, inside) + "</system>"));
  CHECK(domain.hosts == 2);
  CHECK(domain.like == "gb200-nvl72");
  CHECK(domain.machine.nodes_per_nvlink_domain == 2);
  CHECK(domain.machine.gpus.size() == 1);
  CHECK(domain.machine.gpu_host_class == sim::LinkClass::c2c);
  CHECK(sim::to_gigabytes_per_second(domain.machine.gpu_host.value) == doctest::Approx(450));
  CHECK(assumed(domain, "the file holds 2 hosts; the first one stands for all"));
  CHECK(refusal("<system version=\"1\">" + host(1, inside) +
                host(2, inside + gpu(11, "dev=\"1\" sm=\"100\"", kSwitch18)) + "</system>") ==
        "the file's hosts differ: 0x1 has 1 GPUs and 0 NICs, 0x2 has 2 and 0; one machine cannot "
        "stand for both");
  const std::string alone = gpu(10, "dev=\"0\" sm=\"90\"", "");
  CHECK(refusal("<system version=\"1\">" + host(1, alone) + host(2, alone) + "</system>") ==
        "several hosts in the file, but no NVSwitch that they could share");
}

TEST_CASE("files that give no machine say why") {
  CHECK(refusal(node("", "")) == "no GPUs in the file");
  CHECK(refusal(node("", "<pci busid=\"0000:01:00.0\"><pci busid=\"0000:02:00.0\"/></pci>")) ==
        "no GPUs in the file, only 1 PCI devices without a class; NCCL finds out at run time, here "
        "nothing can");
  CHECK(refusal(node("",
                     "<pci busid=\"0000:01:00.0\" class=\"0x038000\"/>"
                     "<pci busid=\"0000:02:00.0\" class=\"0x120000\"/>")) ==
        "2 AMD GPUs; no machine of the catalogue stands near them");
  std::string crowd;
  for (int i = 0; i < 1025; ++i)
    crowd += "<pci busid=\"" + std::to_string(1000 + i) + ":00:00.0\" class=\"0x030200\"/>";
  CHECK(refusal(node("", crowd)) ==
        "a host of 1025 GPUs, NICs and switches; at most 1024 are supported");
  CHECK(machine_of(Hardware{}).error().message == "no CPU, so no machine");
}

TEST_CASE("speeds are read for what they mean") {
  HardwarePci pci;
  const auto rate = [&](const char* speed, int width) {
    pci.link_speed = speed;
    pci.link_width = width;
    return sim::to_gigabytes_per_second(link_rate_of(pci));
  };
  CHECK(rate("8.0 GT/s PCIe", 16) == doctest::Approx(15.754));
  CHECK(rate("16 GT/s", 8) == doctest::Approx(15.754));
  CHECK(rate("32 GT/s PCIe/s", 0) == doctest::Approx(63.015));
  CHECK(rate("2.5 GT/s", 1) == doctest::Approx(0.25));
  CHECK(rate("64.0 GT/s PCIe", 16) == doctest::Approx(118));
  CHECK(rate("", 16) == 0);
  CHECK(rate("fast", 16) == 0);
  CHECK(rate("9 GT/s", 16) == 0);
}

TEST_CASE("sets of CPUs in both spellings") {
  CHECK(cpu_list("ff") == "0-7");
  CHECK(cpu_list("00000001,80000000") == "31-32");
  CHECK(cpu_list("0000,00000000,00555555") == "0,2,4,6,8,10,12,14,16,18,20,22");
  CHECK(cpu_list("").empty());
  CHECK(cpu_list("xyz").empty());
  CHECK(cpu_mask("0-7") == "000000ff");
  CHECK(cpu_mask("0-3,32") == "00000001,0000000f");
  CHECK(cpu_mask("").empty());
  CHECK(cpu_mask("3-1").empty());
  CHECK(cpu_mask("70000").empty());
  CHECK(cpu_list(cpu_mask("0-55,112-167")) == "0-55,112-167");
}

}  // namespace
}  // namespace railyard::topologies
