#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "topologies/import/nccl_xml.h"

namespace railyard::topologies {
namespace {

using sim::HardwareCpu;
using sim::HardwareGpu;
using sim::HardwareNet;
using sim::HardwareNic;
using sim::HardwarePci;

// NCCL knows no escapes: a value is quoted with the quote it does not hold. One that holds both
// (no file can) loses its double quotes.
std::string quoted(std::string_view value) {
  if (value.find('"') == std::string_view::npos) return fmt::format("\"{}\"", value);
  std::string kept(value);
  if (value.find('\'') != std::string_view::npos)
    kept.erase(std::remove(kept.begin(), kept.end(), '"'), kept.end());
  const char quote = kept.find('\'') == std::string::npos ? '\'' : '"';
  return fmt::format("{0}{1}{0}", quote, kept);
}

// One element being written: attributes, then children between open() and close().
class Tag {
 public:
  Tag(std::string& out, int depth, std::string_view name) : out_(out), depth_(depth), name_(name) {
    append("{:{}}<{}", "", 2 * depth_, name_);
  }

  Tag& text(std::string_view name, std::string_view value) {
    append(" {}={}", name, quoted(value));
    return *this;
  }
  Tag& number(std::string_view name, std::int64_t value) {
    append(" {}=\"{}\"", name, value);
    return *this;
  }
  Tag& hexadecimal(std::string_view name, std::uint64_t value, int digits = 0) {
    append(" {}=\"0x{:0{}x}\"", name, value, digits);
    return *this;
  }
  Tag& real(std::string_view name, double value) {
    append(" {}=\"{}\"", name, value);
    return *this;
  }
  void open() { out_ += ">\n"; }
  void close() { append("{:{}}</{}>\n", "", 2 * depth_, name_); }
  void end() { out_ += "/>\n"; }
  [[nodiscard]] int depth() const { return depth_; }

 private:
  template <typename... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  std::string& out_;
  int depth_;
  std::string_view name_;
};

void write_net(std::string& out, int depth, const HardwareNet& net) {
  Tag tag(out, depth, "net");
  tag.text("name", net.name).number("dev", net.dev).real("latency", net.latency);
  tag.number("speed", net.speed).number("port", net.port).hexadecimal("guid", net.guid);
  tag.number("maxconn", net.max_connections).number("gdr", net.gdr ? 1 : 0);
  if (net.collnet) tag.number("coll", 1);
  if (net.rail != -1) tag.number("rail", net.rail);
  if (net.plane != -1) tag.number("plane", net.plane);
  if (!net.keep) tag.number("keep", 0);
  tag.end();
}

void write_nic(std::string& out, int depth, const HardwareNic& nic) {
  Tag tag(out, depth, "nic");
  if (nic.nets.empty()) return tag.end();
  tag.open();
  for (const HardwareNet& net : nic.nets) write_net(out, depth + 1, net);
  tag.close();
}

void write_gpu(std::string& out, int depth, const HardwareGpu& gpu) {
  Tag tag(out, depth, "gpu");
  tag.number("dev", gpu.dev).number("sm", gpu.sm);
  if (gpu.rank) tag.number("rank", *gpu.rank);
  tag.number("gdr", gpu.gdr ? 1 : 0);
  if (gpu.nvlinks.empty() && !gpu.c2c) return tag.end();
  tag.open();
  for (const sim::HardwareNvlink& link : gpu.nvlinks)
    Tag(out, depth + 1, "nvlink")
        .text("target", link.target)
        .number("count", link.count)
        .hexadecimal("tclass", link.target_class, 6)
        .end();
  if (gpu.c2c)
    Tag(out, depth + 1, "c2c").real("bw", gpu.c2c->bandwidth).number("count", gpu.c2c->count).end();
  tag.close();
}

void pci_attributes(Tag& tag, const HardwarePci& pci) {
  tag.text("busid", pci.bus_id);
  if (pci.device_class != 0) tag.hexadecimal("class", pci.device_class, 6);
  if (pci.vendor != 0 || pci.device != 0) {
    tag.hexadecimal("vendor", pci.vendor, 4).hexadecimal("device", pci.device, 4);
    tag.hexadecimal("subsystem_vendor", pci.subsystem_vendor, 4);
    tag.hexadecimal("subsystem_device", pci.subsystem_device, 4);
  }
  tag.text("link_speed", pci.link_speed).number("link_width", pci.link_width);
}

void write_pci(std::string& out, int depth, const HardwarePci& pci) {
  Tag tag(out, depth, "pci");
  pci_attributes(tag, pci);
  if (!pci.gpu && pci.nics.empty() && pci.peers.empty() && pci.children.empty()) return tag.end();
  tag.open();
  if (pci.gpu) write_gpu(out, depth + 1, *pci.gpu);
  for (const HardwareNic& nic : pci.nics) write_nic(out, depth + 1, nic);
  for (const std::string& peer : pci.peers)
    Tag(out, depth + 1, "pcilink").text("target", peer).end();
  for (const HardwarePci& child : pci.children) write_pci(out, depth + 1, child);
  tag.close();
}

void cpu_attributes(Tag& tag, const HardwareCpu& cpu) {
  if (cpu.host_hash != 0) tag.hexadecimal("host_hash", cpu.host_hash);
  tag.number("numaid", cpu.numa_id);
  if (!cpu.affinity.empty()) tag.text("affinity", cpu.affinity);
  if (!cpu.arch.empty()) tag.text("arch", cpu.arch);
  if (!cpu.vendor.empty()) tag.text("vendor", cpu.vendor);
  if (cpu.family != -1) tag.number("familyid", cpu.family);
  if (cpu.model != -1) tag.number("modelid", cpu.model);
}

void write_cpu(std::string& out, const HardwareCpu& cpu) {
  Tag tag(out, 1, "cpu");
  cpu_attributes(tag, cpu);
  if (cpu.pci.empty() && cpu.nics.empty()) return tag.end();
  tag.open();
  auto nic = cpu.nics.begin();
  for (std::size_t i = 0; i < cpu.pci.size(); ++i) {
    for (; nic != cpu.nics.end() && nic->pci_before <= i; ++nic) write_nic(out, 2, *nic);
    write_pci(out, 2, cpu.pci[i]);
  }
  for (; nic != cpu.nics.end(); ++nic) write_nic(out, 2, *nic);
  tag.close();
}

}  // namespace

std::string write_nccl_xml(const sim::Hardware& hardware) {
  std::string out = "<system version=\"1\">\n";
  for (const HardwareCpu& cpu : hardware.cpus) write_cpu(out, cpu);
  out += "</system>\n";
  return out;
}

}  // namespace railyard::topologies
