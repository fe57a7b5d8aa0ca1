#include "topologies/import/nccl_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "topologies/import/bus_id.h"
#include "topologies/import/xml_fields.h"
#include "topologies/import/xml_tree.h"

namespace railyard::topologies {
namespace {

using sim::Hardware;
using sim::HardwareCpu;
using sim::HardwareGpu;
using sim::HardwareNet;
using sim::HardwareNic;
using sim::HardwareNvlink;
using sim::HardwarePci;
using sim::Result;

constexpr std::size_t kNcclChildren = 640;
constexpr std::size_t kNcclText = 254;
constexpr std::int64_t kMaxNvlinkCount = 1000;
constexpr std::int64_t kMaxC2cLinks = 100;
constexpr double kMaxC2cSpeed = 1'000'000;          // MB/s of a link
constexpr std::int64_t kMaxNetSpeed = 400'000'000;  // Mbit/s; a public file says 200,000,000

// What each element may hold; the rest is noted.
struct Vocabulary {
  std::string_view element;
  std::array<std::string_view, 15> attributes{};
};
constexpr std::array<Vocabulary, 9> kVocabulary{{
    {"system", {"version", "name"}},
    {"cpu",
     {"numaid", "host_hash", "affinity", "affinity_offset", "arch", "vendor", "familyid",
      "modelid"}},
    {"pci",
     {"busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed",
      "link_width"}},
    {"gpu", {"dev", "sm", "rank", "gdr", "mlopart", "gcn", "arch"}},
    {"nvlink", {"target", "count", "tclass"}},
    {"xgmi", {"target", "count", "tclass"}},
    {"c2c", {"bw", "count"}},
    {"pcilink", {"target"}},
    {"net",
     {"name", "dev", "speed", "port", "latency", "guid", "maxconn", "gdr", "coll", "rail", "plane",
      "keep", "net", "gin", "rma"}},
}};

std::span<const std::string_view> known_attributes(std::string_view element) {
  for (const Vocabulary& entry : kVocabulary)
    if (entry.element == element) return entry.attributes;
  return {};
}

// A link of the file, to be checked when all devices are known.
struct LinkTarget {
  std::string bus_id;
  std::size_t line = 0;
  bool to_gpu = false;
};

class Reader {
 public:
  explicit Reader(const ImportSource& source) : source_(source) {}

  Result<Hardware> system(const XmlElement& element) {
    RAILYARD_TRY(enter(element));
    const XmlFields fields(element, source_);
    RAILYARD_ASSIGN(const auto version, fields.integer("version", {}));
    if (!version) return fields.missing("version");
    if (*version != 1 && *version != 2)
      return fields.error(fmt::format("topology version {}; NCCL's is 1, RCCL's 2", *version));
    if (*version == 2) fields.note("version 2 (RCCL); NCCL itself reads version 1 only");
    Hardware hardware;
    for (const XmlElement& child : element.children) {
      if (child.name != "cpu") {
        ignore(child);
        continue;
      }
      RAILYARD_ASSIGN(HardwareCpu next, cpu(child));
      hardware.cpus.push_back(std::move(next));
    }
    if (hardware.cpus.empty())
      return fields.error(
          element.children.empty()
              ? "<system> is empty: nothing to read"
              : fmt::format("<system> holds no <cpu> but <{}>: no topology that NCCL reads",
                            printable(element.children.front().name)));
    check_links();
    return hardware;
  }

 private:
  // What NCCL's reader demands of every element.
  Result<void> enter(const XmlElement& element) {
    const auto known = known_attributes(element.name);
    for (const XmlAttribute& attribute : element.attributes) {
      if (attribute.name.size() > kNcclText || attribute.value.size() > kNcclText)
        return source_.error(
            element.line,
            fmt::format("<{}> {} is longer than NCCL's {} characters", printable(element.name),
                        printable(attribute.name), kNcclText));
      if (std::find(known.begin(), known.end(), attribute.name) == known.end())
        source_.note(element.line, fmt::format("unknown attribute {} of <{}>, ignored",
                                               printable(attribute.name), printable(element.name)));
    }
    if (element.children.size() > kNcclChildren)
      source_.note(element.line,
                   fmt::format("<{}> has {} children; NCCL refuses more than {}",
                               printable(element.name), element.children.size(), kNcclChildren));
    return {};
  }

  void ignore(const XmlElement& element) {
    source_.note(element.line,
                 fmt::format("element <{}> left out, as NCCL does", printable(element.name)));
  }

  Result<HardwareCpu> cpu(const XmlElement& element) {
    RAILYARD_TRY(enter(element));
    const XmlFields fields(element, source_);
    HardwareCpu cpu;
    RAILYARD_ASSIGN(const auto numa, fields.integer("numaid", {.low = -1, .high = 0xffff}));
    if (!numa) return fields.missing("numaid");
    RAILYARD_ASSIGN(const auto host, fields.hexadecimal("host_hash"));
    RAILYARD_ASSIGN(const auto family, fields.integer("familyid", {.low = -1}));
    RAILYARD_ASSIGN(const auto model, fields.integer("modelid", {.low = -1}));
    cpu.numa_id = static_cast<std::int32_t>(*numa);
    cpu.host_hash = host.value_or(0);
    cpu.affinity = fields.text("affinity");
    cpu.arch = fields.text("arch");
    cpu.vendor = fields.text("vendor");
    cpu.family = static_cast<std::int32_t>(family.value_or(-1));
    cpu.model = static_cast<std::int32_t>(model.value_or(-1));
    enter_host(cpu.host_hash);
    if (!numa_.insert({cpu.host_hash, cpu.numa_id}).second)
      fields.note(fmt::format("a second <cpu> with numaid {}", cpu.numa_id));
    for (const XmlElement& child : element.children) RAILYARD_TRY(cpu_child(child, cpu));
    return cpu;
  }

  Result<void> cpu_child(const XmlElement& child, HardwareCpu& cpu) {
    if (child.name == "pci") {
      RAILYARD_ASSIGN(HardwarePci next, pci(child));
      cpu.pci.push_back(std::move(next));
    } else if (child.name == "nic") {
      RAILYARD_ASSIGN(HardwareNic next, nic(child));
      next.pci_before = cpu.pci.size();
      cpu.nics.push_back(std::move(next));
    } else {
      ignore(child);
    }
    return {};
  }

  // NCCL numbers hosts in the order in which their hashes appear.
  void enter_host(std::uint64_t hash) {
    host_ = hosts_.try_emplace(hash, hosts_.size()).first->second;
  }

  Result<HardwarePci> pci(const XmlElement& element) {
    RAILYARD_TRY(enter(element));
    const XmlFields fields(element, source_);
    HardwarePci pci;
    pci.bus_id = fields.text("busid");
    if (pci.bus_id.empty()) return fields.missing("busid");
    const auto number = bus_number(pci.bus_id);
    if (!number)
      return fields.error(fmt::format("<pci> busid=\"{}\": not a bus id such as 0000:1b:00.0",
                                      printable(pci.bus_id)));
    if (!devices_.insert({host_, *number}).second)
      return fields.error(fmt::format("a second <pci> with busid {}; bus ids are unique in a host",
                                      printable(pci.bus_id)));
    RAILYARD_TRY(pci_ids(fields, pci));
    pci.link_speed = fields.text("link_speed");
    RAILYARD_ASSIGN(const auto width, fields.integer("link_width", {.high = 255}));
    pci.link_width = static_cast<std::int32_t>(width.value_or(0));
    for (const XmlElement& child : element.children) RAILYARD_TRY(pci_child(child, pci));
    return pci;
  }

  Result<void> pci_ids(const XmlFields& fields, HardwarePci& pci) {
    const auto read = [&](std::string_view name, std::uint64_t limit,
                          std::uint32_t& out) -> Result<void> {
      RAILYARD_ASSIGN(const auto value, fields.hexadecimal(name));
      if (value.value_or(0) > limit)
        return fields.error(fmt::format("<pci> {}: larger than {:#x}", name, limit));
      out = static_cast<std::uint32_t>(value.value_or(0));
      return {};
    };
    RAILYARD_TRY(read("class", 0xffffff, pci.device_class));
    RAILYARD_TRY(read("vendor", 0xffff, pci.vendor));
    RAILYARD_TRY(read("device", 0xffff, pci.device));
    RAILYARD_TRY(read("subsystem_vendor", 0xffff, pci.subsystem_vendor));
    return read("subsystem_device", 0xffff, pci.subsystem_device);
  }

  Result<void> pci_child(const XmlElement& child, HardwarePci& pci) {
    if (child.name == "pci") {
      RAILYARD_ASSIGN(HardwarePci next, this->pci(child));
      pci.children.push_back(std::move(next));
    } else if (child.name == "gpu") {
      if (pci.gpu)
        return source_.error(child.line, fmt::format("a second <gpu> in {}; parts of a GPU are "
                                                     "not supported",
                                                     printable(pci.bus_id)));
      RAILYARD_ASSIGN(HardwareGpu next, gpu(child));
      pci.gpu = std::move(next);
    } else if (child.name == "nic") {
      RAILYARD_ASSIGN(HardwareNic next, nic(child));
      pci.nics.push_back(std::move(next));
    } else if (child.name == "pcilink") {
      RAILYARD_TRY(enter(child));
      pci.peers.push_back(XmlFields(child, source_).text("target"));
      if (pci.peers.back().empty()) return XmlFields(child, source_).missing("target");
      targets_.push_back({host_, {pci.peers.back(), child.line, false}});
    } else {
      ignore(child);
    }
    return {};
  }

  Result<HardwareGpu> gpu(const XmlElement& element) {
    RAILYARD_TRY(enter(element));
    const XmlFields fields(element, source_);
    HardwareGpu gpu;
    RAILYARD_ASSIGN(const auto dev, fields.integer("dev", {.high = 0xffff}));
    RAILYARD_ASSIGN(const auto sm, fields.integer("sm", {.high = 9999}));
    RAILYARD_ASSIGN(const auto rank, fields.integer("rank", {}));
    RAILYARD_ASSIGN(const auto gdr, fields.integer("gdr", {}));
    if (!dev) fields.note(fmt::format("<gpu> has no dev; taken as {}", gpus_));
    if (!sm) fields.note("<gpu> has no sm (compute capability)");
    gpu.dev = static_cast<std::int32_t>(dev.value_or(gpus_));
    gpu.sm = static_cast<std::int32_t>(sm.value_or(0));
    if (rank) gpu.rank = static_cast<std::int32_t>(*rank);
    gpu.gdr = gdr.value_or(0) != 0;
    ++gpus_;
    for (const XmlElement& child : element.children) RAILYARD_TRY(gpu_child(child, gpu));
    return gpu;
  }

  Result<void> gpu_child(const XmlElement& child, HardwareGpu& gpu) {
    if (child.name == "nvlink" || child.name == "xgmi") {
      RAILYARD_ASSIGN(HardwareNvlink next, nvlink(child));
      gpu.nvlinks.push_back(std::move(next));
    } else if (child.name == "c2c") {
      RAILYARD_TRY(enter(child));
      const XmlFields fields(child, source_);
      RAILYARD_ASSIGN(const auto bandwidth, fields.number("bw"));
      RAILYARD_ASSIGN(const auto count, fields.integer("count", {.high = kMaxC2cLinks}));
      if (!bandwidth) return fields.missing("bw");
      if (!count) return fields.missing("count");
      if (*bandwidth > kMaxC2cSpeed)
        return fields.error(fmt::format("<c2c> bw: larger than {} MB/s", kMaxC2cSpeed));
      gpu.c2c = sim::HardwareC2c{*bandwidth, static_cast<std::uint32_t>(*count)};
    } else {
      ignore(child);
    }
    return {};
  }

  Result<HardwareNvlink> nvlink(const XmlElement& element) {
    RAILYARD_TRY(enter(element));
    const XmlFields fields(element, source_);
    HardwareNvlink link;
    link.target = fields.text("target");
    RAILYARD_ASSIGN(const auto count, fields.integer("count", {.high = kMaxNvlinkCount}));
    RAILYARD_ASSIGN(const auto target_class, fields.hexadecimal("tclass"));
    if (!count) return fields.missing("count");
    if (!target_class) return fields.missing("tclass");
    if (*target_class > 0xffffff) return fields.error("<nvlink> tclass: larger than 0xffffff");
    if (*count == 0) fields.note("an NVLink with count 0");
    link.count = static_cast<std::uint32_t>(*count);
    link.target_class = static_cast<std::uint32_t>(*target_class);
    const bool to_gpu = *target_class >> 16 == 0x03 || *target_class >> 16 == 0x12;
    if (to_gpu && link.target.empty()) return fields.missing("target");
    if (to_gpu) targets_.push_back({host_, {link.target, element.line, true}});
    return link;
  }

  Result<HardwareNic> nic(const XmlElement& element) {
    RAILYARD_TRY(enter(element));
    HardwareNic nic;
    for (const XmlElement& child : element.children) {
      if (child.name != "net") {
        ignore(child);
        continue;
      }
      RAILYARD_TRY(enter(child));
      const XmlFields fields(child, source_);
      RAILYARD_ASSIGN(const auto used, fields.integer("net", {}));
      if (!fields.has("dev")) {
        fields.note("<net> without dev left out, as NCCL does");
      } else if (used.value_or(1) == 0) {
        fields.note("<net> with net=\"0\" left out: it is part of a fused NIC");
      } else {
        RAILYARD_ASSIGN(HardwareNet next, net(fields));
        nic.nets.push_back(std::move(next));
      }
    }
    return nic;
  }

  Result<HardwareNet> net(const XmlFields& fields) {
    HardwareNet net;
    RAILYARD_ASSIGN(const auto dev, fields.integer("dev", {.high = 0xffff}));
    RAILYARD_ASSIGN(const auto speed, fields.integer("speed", {.low = -1, .high = kMaxNetSpeed}));
    RAILYARD_ASSIGN(const auto port, fields.integer("port", {}));
    RAILYARD_ASSIGN(const auto latency, fields.number("latency"));
    RAILYARD_ASSIGN(const auto guid, fields.hexadecimal("guid"));
    RAILYARD_ASSIGN(const auto connections, fields.integer("maxconn", {}));
    if (!dev) return fields.missing("dev");
    if (speed.value_or(0) <= 0) fields.note("<net> of unknown speed; NCCL takes 10000 Mbit/s");
    net.name = fields.text("name");
    net.dev = static_cast<std::int32_t>(*dev);
    net.speed = static_cast<std::int32_t>(speed.value_or(0));
    net.port = static_cast<std::int32_t>(port.value_or(0));
    net.latency = latency.value_or(0);
    // Without a guid every device shares with itself alone: NCCL takes its net id.
    constexpr unsigned kHostShift = 56;
    net.guid = guid.value_or(std::uint64_t{host_} << kHostShift | static_cast<std::uint64_t>(*dev));
    net.max_connections = static_cast<std::int32_t>(connections.value_or(0));
    RAILYARD_TRY(net_flags(fields, net));
    return net;
  }

  static Result<void> net_flags(const XmlFields& fields, HardwareNet& net) {
    constexpr IntegerRange kIndex{.low = -1};
    RAILYARD_ASSIGN(const auto gdr, fields.integer("gdr", {}));
    RAILYARD_ASSIGN(const auto collnet, fields.integer("coll", {}));
    RAILYARD_ASSIGN(const auto rail, fields.integer("rail", kIndex));
    RAILYARD_ASSIGN(const auto plane, fields.integer("plane", kIndex));
    RAILYARD_ASSIGN(const auto keep, fields.integer("keep", {}));
    net.gdr = gdr.value_or(0) != 0;
    net.collnet = collnet.value_or(0) != 0;
    net.rail = static_cast<std::int32_t>(rail.value_or(-1));
    net.plane = static_cast<std::int32_t>(plane.value_or(-1));
    net.keep = keep.value_or(1) != 0;
    return {};
  }

  void check_links() {
    for (const auto& [host, target] : targets_) {
      const auto number = bus_number(target.bus_id);
      if (number && devices_.contains({host, *number})) continue;
      source_.note(
          target.line,
          fmt::format("a link to {} {}, which is not in the file; NCCL makes no link of it",
                      target.to_gpu ? "the GPU" : "the switch", printable(target.bus_id)));
    }
  }

  const ImportSource& source_;
  std::map<std::uint64_t, std::size_t> hosts_;
  std::size_t host_ = 0;
  std::int32_t gpus_ = 0;
  std::set<std::pair<std::uint64_t, std::int32_t>> numa_;
  std::set<std::pair<std::size_t, std::uint64_t>> devices_;
  std::vector<std::pair<std::size_t, LinkTarget>> targets_;
};

}  // namespace

bool looks_like_nccl_xml(std::string_view text) { return root_element(text) == "system"; }

Result<Hardware> parse_nccl_xml(std::string_view text, std::string name, ImportNotes* notes) {
  const ImportSource source{std::move(name), notes};
  const std::string_view root = root_element(text);
  if (root != "system" && !root.empty())
    return source.error(1, fmt::format("not NCCL topology XML but {}", describe_root(root)));
  RAILYARD_ASSIGN(const XmlElement element, parse_xml(text, source));
  if (element.name != "system")
    return source.error(1,
                        fmt::format("not NCCL topology XML but {}", describe_root(element.name)));
  return Reader(source).system(element);
}

Result<Hardware> read_nccl_xml(const std::string& path, ImportNotes* notes) {
  RAILYARD_ASSIGN(const std::string text, read_text_file(path));
  return parse_nccl_xml(text, path, notes);
}

}  // namespace railyard::topologies
