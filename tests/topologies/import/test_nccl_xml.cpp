#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>

#include "tests/paths.h"
#include "tests/skip.h"
#include "topologies/hardware_machine.h"
#include "topologies/import/nccl_xml.h"

namespace railyard::topologies {
namespace {

namespace fs = std::filesystem;

std::string error_of(const std::string& text) {
  const auto result = parse_nccl_xml(text, "t.xml");
  return result.ok() ? "no error" : result.error().text();
}

// A document around one <pci>'s inside.
std::string in_pci(const std::string& inside) {
  return "<system version=\"1\">\n<cpu numaid=\"0\">\n<pci busid=\"0000:01:00.0\">\n" + inside +
         "\n</pci></cpu></system>";
}

std::string notes_of(const std::string& text) {
  ImportNotes notes;
  const auto result = parse_nccl_xml(text, "t.xml", &notes);
  REQUIRE_MESSAGE(result.ok(), text);
  std::string all;
  for (const std::string& line : notes.lines()) all += line + "\n";
  return all;
}

constexpr const char* kWhole = R"(<!-- a comment first -->
<system version="1" name="x">
  <cpu numaid="1" host_hash="0xAB" affinity="ff,0000000f" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <nic>
      <net name="eth0" dev="9" speed="-1"/>
    </nic>
    <pci busid="0000:01:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x0" link_speed="32.0 GT/s PCIe" link_width="16">
      <pcilink target="0000:02:00.0"/>
      <pci busid="0000:1B:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="8">
        <gpu dev="3" sm="90" rank="7" gdr="1">
          <nvlink target="0000:aa:00.0" count="5" tclass="0x068000"/>
          <nvlink target="ffff:ff:ff" count="4" tclass="0x068000"/>
          <c2c bw="44712" count="10"/>
        </gpu>
      </pci>
      <pci busid="0000:1c:00.0" class="0x020700">
        <nic>
          <net name='mlx5_0' dev="2" speed="400000" port="1" latency="1.5" guid="0xa0" maxconn="64" gdr="1" coll="1" rail="2" plane="1"/>
          <net name="mlx5_1" dev="4" speed="200000" keep="0"/>
        </nic>
      </pci>
    </pci>
    <pci busid="0000:02:00.0" class="0x060400" link_speed="" link_width=""/>
    <nic><net name="eth1" dev="10" speed="1000"/></nic>
  </cpu>
</system>
)";

TEST_CASE("every attribute of the XML arrives, in the file's order") {
  const auto result = parse_nccl_xml(kWhole, "whole.xml");
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  const sim::Hardware& hardware = result.value();
  REQUIRE(hardware.cpus.size() == 1);
  const sim::HardwareCpu& cpu = hardware.cpus[0];
  CHECK(cpu.numa_id == 1);
  CHECK(cpu.host_hash == 0xab);
  CHECK(cpu.affinity == "ff,0000000f");
  CHECK(cpu.arch == "x86_64");
  CHECK(cpu.vendor == "GenuineIntel");
  CHECK(cpu.family == 6);
  CHECK(cpu.model == 143);
  REQUIRE(cpu.pci.size() == 2);
  REQUIRE(cpu.nics.size() == 2);
  CHECK(cpu.nics[0].pci_before == 0);
  CHECK(cpu.nics[1].pci_before == 2);
  CHECK(cpu.nics[0].nets[0].speed == -1);
  CHECK(cpu.nics[0].nets[0].guid == 9);  // none: shares with itself alone

  const sim::HardwarePci& bridge = cpu.pci[0];
  CHECK(bridge.device_class == 0x060400);
  CHECK(bridge.vendor == 0x1000);
  CHECK(bridge.device == 0xc030);
  CHECK(bridge.subsystem_vendor == 0x1000);
  CHECK(bridge.link_speed == "32.0 GT/s PCIe");
  CHECK(bridge.peers == std::vector<std::string>{"0000:02:00.0"});
  REQUIRE(bridge.children.size() == 2);
  CHECK(cpu.pci[1].link_speed.empty());
  CHECK(cpu.pci[1].link_width == 0);

  CHECK(bridge.children[0].bus_id == "0000:1B:00.0");
  REQUIRE(bridge.children[0].gpu.has_value());
  const sim::HardwareGpu& gpu = *bridge.children[0].gpu;
  CHECK(gpu.dev == 3);
  CHECK(gpu.sm == 90);
  CHECK(gpu.rank == 7);
  CHECK(gpu.gdr);
  REQUIRE(gpu.nvlinks.size() == 2);
  CHECK(gpu.nvlinks[1].target == "ffff:ff:ff");
  CHECK(gpu.nvlinks[1].count == 4);
  CHECK(gpu.nvlinks[1].target_class == sim::kPciClassNvswitch);
  REQUIRE(gpu.c2c.has_value());
  CHECK(gpu.c2c->bandwidth == 44712);
  CHECK(gpu.c2c->count == 10);

  const auto& nets = bridge.children[1].nics.at(0).nets;
  REQUIRE(nets.size() == 2);
  CHECK(nets[0].name == "mlx5_0");
  CHECK(nets[0].dev == 2);
  CHECK(nets[0].speed == 400000);
  CHECK(nets[0].port == 1);
  CHECK(nets[0].latency == 1.5);
  CHECK(nets[0].guid == 0xa0);
  CHECK(nets[0].max_connections == 64);
  CHECK(nets[0].gdr);
  CHECK(nets[0].collnet);
  CHECK(nets[0].rail == 2);
  CHECK(nets[0].plane == 1);
  CHECK(nets[0].keep);
  CHECK_FALSE(nets[1].keep);
  CHECK(nets[1].rail == -1);
}

TEST_CASE("what is written reads back the same") {
  const auto first = parse_nccl_xml(kWhole, "whole.xml");
  REQUIRE(first.ok());
  const std::string text = write_nccl_xml(first.value());
  const auto second = parse_nccl_xml(text, "again.xml");
  REQUIRE_MESSAGE(second.ok(), text);
  CHECK(write_nccl_xml(second.value()) == text);
  CHECK(second.value().cpus[0].nics[1].pci_before == 2);
  CHECK(text.find("<net name=\"mlx5_0\" dev=\"2\" latency=\"1.5\" speed=\"400000\" port=\"1\" "
                  "guid=\"0xa0\" maxconn=\"64\" gdr=\"1\" coll=\"1\" rail=\"2\" plane=\"1\"/>") !=
        std::string::npos);
  // A value with a double quote, which NCCL cannot escape, is written in single ones.
  sim::Hardware odd = first.value();
  odd.cpus[0].vendor = "a\"b";
  CHECK(write_nccl_xml(odd).find("vendor='a\"b'") != std::string::npos);
}

TEST_CASE("other files are refused by what they are") {
  CHECK(error_of("") == "t.xml:1: holds no XML element");
  CHECK(error_of("GPU0 X NV18") == "t.xml:1: expected '<', found 'G'");
  CHECK(error_of("<graphs version=\"1\"/>") ==
        "t.xml:1: not NCCL topology XML but an NCCL graph (<graphs>)");
  CHECK(error_of("<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
                 "<topology version=\"2.0\"/>") ==
        "t.xml:1: not NCCL topology XML but an hwloc topology (<topology>)");
  CHECK(error_of("<!DOCTYPE html>\n<html><body></body></html>") ==
        "t.xml:1: not NCCL topology XML but an HTML page");
  CHECK(error_of("<algo/>") == "t.xml:1: not NCCL topology XML but an MSCCL algorithm (<algo>)");
  CHECK(error_of("<x/>") == "t.xml:1: not NCCL topology XML but XML with the root <x>");
  CHECK(error_of(std::string("<system \0/>", 11)) ==
        "t.xml:1: holds zero bytes: not a text file, or UTF-16");
  CHECK(error_of("<system/>") == "t.xml:1: <system> has no version");
  CHECK(error_of("<system version=\"3\"/>") ==
        "t.xml:1: topology version 3; NCCL's is 1, RCCL's 2");
  CHECK(error_of("<system version=\"1\"/>") == "t.xml:1: <system> is empty: nothing to read");
  CHECK(error_of("<system version=\"2\"><group/></system>") ==
        "t.xml:1: <system> holds no <cpu> but <group>: no topology that NCCL reads");
}

TEST_CASE("broken XML is refused with its line") {
  CHECK(error_of("<system version=\"1\">\n <cpu numaid=\"0\">\n") ==
        "t.xml:3: the file ends inside <cpu>, opened on line 2");
  CHECK(error_of("<system version=\"1\">\n <cpu numaid=\"0\n") ==
        "t.xml:2: the file ends inside a tag (a missing '>' or quote)");
  CHECK(error_of("<system version=\"1\">\n<!-- x") == "t.xml:2: the file ends inside a comment");
  CHECK(error_of("<?xml") == "t.xml:1: the file ends inside a declaration");
  CHECK(error_of("<system version=\"1\"><cpu></system>") ==
        "t.xml:1: </system> closes <cpu>, opened on line 1");
  CHECK(error_of("<system version=\"1\"/></cpu>") == "t.xml:1: </cpu> closes nothing");
  CHECK(error_of("<system version=\"1\"/>\n<system/>") ==
        "t.xml:2: a second root element <system>");
  CHECK(error_of("<system version=\"1\">< ></system>") == "t.xml:1: a tag without a name");
  CHECK(error_of("<system version=\"1\">\n\ntext</system>") == "t.xml:3: expected '<', found 't'");
  CHECK(error_of("<system version=1></system>").starts_with("t.xml:1: "));
  CHECK(error_of("<system version=\"1\"><![CDATA[x]]></system>") ==
        "t.xml:1: DTDs, entities and CDATA are not accepted");
  CHECK(error_of("<system version=\"1\"><!ENTITY a \"b\"></system>") ==
        "t.xml:1: DTDs, entities and CDATA are not accepted");
}

TEST_CASE("bad values are refused with element, attribute and line") {
  CHECK(error_of("<system version=\"1\">\n<cpu/></system>") == "t.xml:2: <cpu> has no numaid");
  CHECK(error_of("<system version=\"1\">\n<cpu numaid=\"-2\"/></system>") ==
        "t.xml:2: <cpu> numaid=\"-2\": must be from -1 to 65535");
  CHECK(error_of("<system version=\"1\">\n<cpu numaid=\"0\" host_hash=\"0xg\"/></system>") ==
        "t.xml:2: <cpu> host_hash=\"0xg\": not a hexadecimal number");
  CHECK(error_of("<system version=\"1\"><cpu numaid=\"0\"><pci/></cpu></system>") ==
        "t.xml:1: <pci> has no busid");
  CHECK(error_of("<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"x\"/></cpu></system>") ==
        "t.xml:1: <pci> busid=\"x\": not a bus id such as 0000:1b:00.0");
  CHECK(error_of(in_pci("<pci busid=\"0:02:00.0\"/>\n<pci busid=\"0000:02:00.0\"/>")) ==
        "t.xml:5: a second <pci> with busid 0000:02:00.0; bus ids are unique in a host");
  CHECK(error_of(in_pci("<gpu dev=\"0\"/><gpu dev=\"1\"/>")) ==
        "t.xml:4: a second <gpu> in 0000:01:00.0; parts of a GPU are not supported");
  CHECK(error_of(in_pci("<gpu dev=\"zero\"/>")) ==
        "t.xml:4: <gpu> dev=\"zero\": not a whole number");
  CHECK(error_of(in_pci("<gpu dev=\"0\" sm=\"99999999999999999999\"/>")) ==
        "t.xml:4: <gpu> sm=\"99999999999999999999\": must be from 0 to 9999");
  CHECK(error_of(in_pci("<gpu dev=\"0\"><nvlink target=\"0:1:0.0\" tclass=\"0x03\"/></gpu>")) ==
        "t.xml:4: <nvlink> has no count");
  CHECK(error_of(in_pci("<gpu dev=\"0\"><nvlink target=\"0:1:0.0\" count=\"2\"/></gpu>")) ==
        "t.xml:4: <nvlink> has no tclass");
  CHECK(error_of(in_pci("<gpu dev=\"0\"><nvlink count=\"2\" tclass=\"0x030200\"/></gpu>")) ==
        "t.xml:4: <nvlink> has no target");
  CHECK(error_of(in_pci("<gpu dev=\"0\"><nvlink count=\"-2\" tclass=\"0x068000\"/></gpu>")) ==
        "t.xml:4: <nvlink> count=\"-2\": must be from 0 to 1000");
  CHECK(error_of(in_pci("<gpu dev=\"0\"><nvlink count=\"2\" tclass=\"0x1068000\"/></gpu>")) ==
        "t.xml:4: <nvlink> tclass: larger than 0xffffff");
  CHECK(error_of(in_pci("<gpu dev=\"0\"><c2c bw=\"nan\" count=\"1\"/></gpu>")) ==
        "t.xml:4: <c2c> bw=\"nan\": must be finite and not negative");
  CHECK(error_of(in_pci("<gpu dev=\"0\"><c2c bw=\"1e999\" count=\"1\"/></gpu>")) ==
        "t.xml:4: <c2c> bw=\"1e999\": must be finite and not negative");
  CHECK(error_of(in_pci("<gpu dev=\"0\"><c2c bw=\"1000001\" count=\"1\"/></gpu>")) ==
        "t.xml:4: <c2c> bw: larger than 1000000 MB/s");
  CHECK(error_of(in_pci("<gpu dev=\"0\"><c2c count=\"1\"/></gpu>")) == "t.xml:4: <c2c> has no bw");
  CHECK(error_of(in_pci("<gpu dev=\"0\"><c2c bw=\"5\"/></gpu>")) == "t.xml:4: <c2c> has no count");
  CHECK(error_of(in_pci("<nic><net dev=\"0\" speed=\"-2\"/></nic>")) ==
        "t.xml:4: <net> speed=\"-2\": must be from -1 to 400000000");
  CHECK(error_of(in_pci("<nic><net dev=\"0\" latency=\"-0.5\"/></nic>")) ==
        "t.xml:4: <net> latency=\"-0.5\": must be finite and not negative");
  CHECK(error_of(in_pci("<nic><net dev=\"0\" latency=\"fast\"/></nic>")) ==
        "t.xml:4: <net> latency=\"fast\": not a number");
  CHECK(error_of(in_pci("<nic><net dev=\"\"/></nic>")) == "t.xml:4: <net> has no dev");
  CHECK(error_of(in_pci("<nic><net dev=\"0\" guid=\"0x11112222333344445\"/></nic>")) ==
        "t.xml:4: <net> guid=\"0x11112222333344445\": does not fit 64 bits");
  CHECK(error_of(in_pci("<pcilink/>")) == "t.xml:4: <pcilink> has no target");
  CHECK(error_of(in_pci("<pci busid=\"0:2:0.0\" class=\"0x1060400\"/>")) ==
        "t.xml:4: <pci> class: larger than 0xffffff");
  CHECK(error_of(in_pci("<pci busid=\"0:2:0.0\" link_width=\"256\"/>")) ==
        "t.xml:4: <pci> link_width=\"256\": must be from 0 to 255");
  CHECK(error_of(in_pci("<pci busid=\"" + std::string(300, '0') + "\"/>")) ==
        "t.xml:4: <pci> busid is longer than NCCL's 254 characters");
}

TEST_CASE("equal bus ids are of two hosts where the hashes differ") {
  const std::string text =
      "<system version=\"1\">"
      "<cpu numaid=\"0\" host_hash=\"0x1\"><pci busid=\"0000:01:00.0\"/></cpu>"
      "<cpu numaid=\"0\" host_hash=\"0x2\"><pci busid=\"0000:01:00.0\"/></cpu></system>";
  const auto result = parse_nccl_xml(text, "t.xml");
  REQUIRE(result.ok());
  CHECK(result.value().cpus.size() == 2);
}

TEST_CASE("what NCCL itself would leave out or refuse is noted") {
  CHECK(notes_of(in_pci("")).empty());
  CHECK(notes_of("\xEF\xBB\xBF" + in_pci("")) ==
        "t.xml:1: a byte order mark; NCCL's own reader refuses it\n");
  CHECK(notes_of("<?xml version=\"1.0\"?>" + in_pci("")) ==
        "t.xml:1: an XML declaration; NCCL's own reader refuses it\n");
  CHECK(notes_of("<system version=\"2\"><cpu numaid=\"0\"/></system>") ==
        "t.xml:1: version 2 (RCCL); NCCL itself reads version 1 only\n");
  CHECK(notes_of("<system\n version=\"1\"><cpu numaid=\"0\"/></system>") ==
        "t.xml:1: a tab or line break inside a tag; NCCL's own reader refuses it\n");
  CHECK(notes_of(in_pci("<fan><pci/></fan>")) == "t.xml:4: element <fan> left out, as NCCL does\n");
  CHECK(notes_of(in_pci("<gpu dev=\"0\" sm=\"90\" colour=\"red\"/>")) ==
        "t.xml:4: unknown attribute colour of <gpu>, ignored\n");
  CHECK(notes_of(in_pci("<gpu/>")) ==
        "t.xml:4: <gpu> has no dev; taken as 0\n"
        "t.xml:4: <gpu> has no sm (compute capability)\n");
  CHECK(notes_of(in_pci("<nic><net name=\"a\"/></nic>")) ==
        "t.xml:4: <net> without dev left out, as NCCL does\n");
  CHECK(notes_of(in_pci("<nic><net dev=\"1\" net=\"0\"/></nic>")) ==
        "t.xml:4: <net> with net=\"0\" left out: it is part of a fused NIC\n");
  CHECK(notes_of(in_pci("<nic><net dev=\"1\" speed=\"-1\"/></nic>")) ==
        "t.xml:4: <net> of unknown speed; NCCL takes 10000 Mbit/s\n");
  CHECK(notes_of(in_pci("<gpu dev=\"0\" sm=\"80\"><nvlink target=\"0000:99:00.0\" count=\"1\" "
                        "tclass=\"0x030200\"/></gpu>")) ==
        "t.xml:4: a link to the GPU 0000:99:00.0, which is not in the file; NCCL makes no link of "
        "it\n");
  CHECK(notes_of(in_pci("<pcilink target=\"0000:99:00.0\"/>")) ==
        "t.xml:4: a link to the switch 0000:99:00.0, which is not in the file; NCCL makes no link "
        "of it\n");
  CHECK(notes_of(
            in_pci("<gpu dev=\"0\" sm=\"80\"><nvlink count=\"0\" tclass=\"0x068000\"/></gpu>")) ==
        "t.xml:4: an NVLink with count 0\n");
  CHECK(notes_of("<system version=\"1\"><cpu numaid=\"0\"/><cpu numaid=\"0\"/></system>") ==
        "t.xml:1: a second <cpu> with numaid 0\n");
}

TEST_CASE("attributes past NCCL's sixteenth are not seen") {
  std::string attributes;
  for (int i = 0; i < 16; ++i) attributes += fmt::format(" a{}=\"\"", i);
  ImportNotes notes;
  const auto result = parse_nccl_xml(in_pci("<gpu" + attributes + " dev=\"5\"/>"), "t.xml", &notes);
  REQUIRE(result.ok());
  CHECK(result.value().cpus[0].pci[0].gpu->dev == 0);
  bool said = false;
  for (const std::string& line : notes.lines())
    said |= line == "t.xml:4: <gpu> has 17 attributes; NCCL sees the first 16 only";
  CHECK(said);
}

TEST_CASE("nesting bombs and files of a million elements are refused at once") {
  const auto start = std::chrono::steady_clock::now();
  std::string deep = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < 100'000; ++i) deep += fmt::format("<pci busid=\"{:x}:0:0.0\">", i);
  CHECK(error_of(deep) == "t.xml:1: elements nested more than 64 deep");
  std::string wide = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < 1'000'000; ++i) wide += "<pci/>\n";
  wide += "</cpu></system>";
  CHECK(error_of(wide) == "t.xml:99999: more than 100000 elements; no machine has so many parts");
  CHECK(error_of(std::string((std::size_t{16} << 20) + 1, ' ')) ==
        "t.xml:1: larger than 16 MiB, the most that is read");
  // Many notes stay few.
  std::string odd = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < 50'000; ++i) odd += "<fan/>\n";
  ImportNotes notes;
  CHECK(parse_nccl_xml(odd + "</cpu></system>", "t.xml", &notes).ok());
  CHECK(notes.lines().size() == ImportNotes::kMaxNotes + 1);
  CHECK(notes.lines().back() == "further notes are not shown");
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("files that cannot be opened say why") {
  const auto missing = read_nccl_xml("/no/such/file.xml");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().text() == "/no/such/file.xml: cannot be opened: No such file or directory");
  const auto directory = read_nccl_xml("/");
  REQUIRE_FALSE(directory.ok());
  CHECK(directory.error().text() == "/: is a directory, not a file");
}

// Counted in the files with Python's XML parser and grep, not with this reader: <cpu>, <pci>, <pci>
// that hold a <gpu> or have a GPU's class, <gpu>, <net>, NVLinks and XGMI links listed.
struct Counts {
  const char* number;
  std::size_t cpus, pcis, gpu_places, gpus, nets, links;
};
constexpr Counts kCounts[] = {
    {"001", 4, 4, 4, 4, 1, 48},     {"003", 2, 9, 8, 0, 0, 0},      {"005", 4, 20, 8, 0, 0, 0},
    {"010", 2, 24, 8, 0, 0, 0},     {"012", 2, 2, 2, 2, 1, 24},     {"014", 2, 3, 1, 1, 1, 0},
    {"018", 2, 9, 5, 5, 1, 0},      {"022", 1, 4, 1, 1, 1, 6},      {"024", 1, 6, 3, 3, 1, 18},
    {"025", 1, 7, 4, 4, 1, 24},     {"031", 2, 13, 8, 8, 1, 48},    {"034", 2, 8, 3, 3, 2, 18},
    {"038", 2, 13, 7, 7, 2, 42},    {"039", 2, 14, 8, 8, 2, 48},    {"047", 2, 13, 8, 8, 1, 0},
    {"053", 1, 20, 8, 0, 0, 0},     {"054", 4, 20, 8, 0, 0, 0},     {"057", 2, 11, 8, 8, 1, 0},
    {"058", 4, 52, 16, 16, 8, 112}, {"059", 4, 24, 16, 16, 8, 112}, {"074", 4, 8, 4, 4, 4, 12},
    {"079", 2, 38, 8, 8, 8, 52},    {"089", 4, 32, 8, 8, 4, 24},    {"093", 2, 16, 8, 8, 8, 56},
    {"103", 7, 17, 8, 8, 1, 16},    {"105", 2, 17, 8, 8, 2, 0},     {"109", 8, 18, 8, 8, 2, 16},
    {"116", 1, 3, 2, 2, 1, 13},     {"117", 1, 3, 2, 2, 1, 24},     {"118", 1, 3, 2, 2, 1, 0},
    {"121", 1, 8, 1, 1, 2, 12},     {"126", 2, 16, 8, 0, 0, 0},     {"127", 2, 9, 0, 0, 0, 0},
    {"131", 2, 40, 0, 0, 0, 0},     {"137", 2, 11, 8, 8, 13, 144},  {"139", 2, 17, 8, 8, 13, 1008},
    {"140", 2, 24, 8, 0, 8, 0},     {"142", 2, 3, 2, 2, 2, 0},      {"143", 2, 6, 4, 4, 10, 0},
    {"144", 2, 24, 8, 8, 8, 64},    {"146", 1, 4, 2, 2, 10, 0}};

void add(const sim::HardwarePci& pci, Counts& counts) {
  ++counts.pcis;
  const std::uint32_t base = pci.device_class >> 16;
  if (pci.gpu || base == 0x03 || base == 0x12) ++counts.gpu_places;
  if (pci.gpu) {
    ++counts.gpus;
    for (const sim::HardwareNvlink& link : pci.gpu->nvlinks) counts.links += link.count;
  }
  for (const sim::HardwareNic& nic : pci.nics) counts.nets += nic.nets.size();
  for (const sim::HardwarePci& child : pci.children) add(child, counts);
}

Counts count(const sim::Hardware& hardware) {
  Counts counts{"", hardware.cpus.size(), 0, 0, 0, 0, 0};
  for (const sim::HardwareCpu& cpu : hardware.cpus) {
    for (const sim::HardwarePci& pci : cpu.pci) add(pci, counts);
    for (const sim::HardwareNic& nic : cpu.nics) counts.nets += nic.nets.size();
  }
  return counts;
}

std::map<std::string, fs::path> samples() {
  std::map<std::string, fs::path> files;
  const fs::path directory = fs::path(RAILYARD_SHARED_DIR) / "samples" / "nccl-xml";
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed))
    if (entry.path().extension() == ".xml") files[entry.path().filename().string()] = entry.path();
  return files;
}

TEST_CASE("public files have the counts that are in them") {
  const auto files = samples();
  if (files.empty()) RAILYARD_SKIP("no samples/nccl-xml");
  for (const Counts& expected : kCounts) {
    const auto file = files.lower_bound(expected.number);
    REQUIRE(file != files.end());
    const std::string name = file->first;
    CAPTURE(name);
    REQUIRE(name.starts_with(expected.number));
    const auto hardware = read_nccl_xml(file->second.string());
    REQUIRE_MESSAGE(hardware.ok(), (hardware.ok() ? "" : hardware.error().text()));
    const Counts counts = count(hardware.value());
    CHECK(counts.cpus == expected.cpus);
    CHECK(counts.pcis == expected.pcis);
    CHECK(counts.gpu_places == expected.gpu_places);
    CHECK(counts.gpus == expected.gpus);
    CHECK(counts.nets == expected.nets);
    CHECK(counts.links == expected.links);
  }
}

// Why a public file is not read, or gives no machine; all others must give one.
const char* stated_reason(const std::string& number) {
  static const std::map<std::string, const char*> kReasons{
      {"073", "a second <pci> with busid"},  // four hosts in one file, without host_hash
      {"134", "<system> holds no <cpu>"},    // Hygon's table of ranks, no topology
      {"127", "no GPUs in the file"},        // AWS names bus ids only
      {"128", "no GPUs in the file"},       {"131", "no GPUs in the file"},
      {"132", "no GPUs in the file"}};
  const auto reason = kReasons.find(number);
  if (reason != kReasons.end()) return reason->second;
  return number >= "058" && number <= "113" ? "AMD GPUs" : nullptr;  // RCCL's files
}

TEST_CASE("every public file is imported or refused for a stated reason") {
  const auto files = samples();
  if (files.empty()) RAILYARD_SKIP("no samples/nccl-xml");
  std::size_t machines = 0;
  for (const auto& [name, path] : files) {
    const std::string file = name;
    CAPTURE(file);
    const auto hardware = read_nccl_xml(path.string());
    std::string verdict;
    if (!hardware.ok()) {
      verdict = "refused: " + hardware.error().message;
    } else if (const auto machine = machine_of(hardware.value()); !machine.ok()) {
      verdict = "no machine: " + machine.error().text();
    } else {
      ++machines;
      verdict =
          fmt::format("{} GPUs, {} NICs, like {}, {} assumptions",
                      machine.value().machine.gpus.size(), machine.value().machine.nics.size(),
                      machine.value().like, machine.value().assumptions.size());
    }
    std::printf("  %-48s %s\n", name.c_str(), verdict.c_str());
    const char* reason = stated_reason(name.substr(0, 3));
    if (reason == nullptr) {
      CHECK(verdict.find(", like ") != std::string::npos);
    } else {
      CHECK(verdict.find(reason) != std::string::npos);
    }
    if (!hardware.ok()) continue;
    const std::string text = write_nccl_xml(hardware.value());
    const auto again = parse_nccl_xml(text, "again");
    REQUIRE(again.ok());
    CHECK(write_nccl_xml(again.value()) == text);
  }
  CHECK(machines >= 40);
}

}  // namespace
}  // namespace railyard::topologies
