#include "scenarios/machine_yaml.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace railyard::scenarios {
namespace {

using topologies::MachineSpec;
using topologies::Parent;

class Writer {
 public:
  explicit Writer(const MachineSpec& machine) : machine_(machine) {}

  std::string text(const std::string& like) {
    line("name: {}", machine_.name);
    line("like: {}", like);
    line("sm: {}", machine_.compute_capability);
    cpu();
    numa();
    devices();
    nvlinks();
    rates();
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_ += "    ";
    append(format, std::forward<Args>(args)...);
    out_ += "\n";
  }

  // In the files NCCL reads these are free text; only what a processor is called is kept.
  static std::string quoted(const std::string& text) {
    std::string kept = "\"";
    for (const char c : text)
      if (c >= ' ' && c <= '~' && c != '"' && c != '\\') kept += c;
    return kept + "\"";
  }

  void cpu() {
    const topologies::HostCpu& cpu = machine_.cpu;
    const std::string arch = quoted(cpu.arch);
    const std::string vendor = quoted(cpu.vendor);
    if (arch.size() == 2) return;  // nothing between the quotes
    out_ += "    cpu: {arch: " + arch;
    if (vendor.size() > 2) out_ += ", vendor: " + vendor;
    if (cpu.family >= 0) append(", family: {}", cpu.family);
    if (cpu.model >= 0) append(", model: {}", cpu.model);
    out_ += "}\n";
  }

  void numa() {
    line("numa:");
    for (const topologies::NumaNode& node : machine_.numa) {
      if (node.cpus.empty()) {
        line("  - {{id: {}}}", node.id);
      } else {
        line("  - {{id: {}, cpus: {}}}", node.id, quoted(node.cpus));
      }
    }
  }

  void hang(const Parent& parent) {
    append("      - {{parent: {}{}", parent.is_switch ? "pcie" : "cpu", parent.index);
    if (parent.rate.raw() > 0) append(", link: {}", sim::to_text(parent.rate));
  }

  void devices() {
    if (!machine_.switches.empty()) line("switches:");
    for (const topologies::PcieSwitch& bridge : machine_.switches) {
      hang(bridge.parent);
      if (bridge.width > 1) append(", links: {}", bridge.width);
      out_ += "}\n";
    }
    line("gpus:");
    for (std::size_t i = 0; i < machine_.gpus.size(); ++i) {
      hang(machine_.gpus[i]);
      if (!machine_.gpu_nvlinks.empty()) append(", nvlinks: {}", machine_.gpu_nvlinks[i]);
      out_ += "}\n";
    }
    if (!machine_.nics.empty()) line("nics:");
    for (std::size_t i = 0; i < machine_.nics.size(); ++i) {
      hang(machine_.nics[i]);
      if (!machine_.nic_rates.empty()) append(", rate: {}", sim::to_text(machine_.nic_rates[i]));
      out_ += "}\n";
    }
  }

  void nvlinks() {
    if (machine_.nvlinks_per_gpu == 0) return;
    append("    nvlinks: {{per_gpu: {}, rate: {}, switch: {}", machine_.nvlinks_per_gpu,
           sim::to_text(machine_.nvlink.value), machine_.nvswitch);
    for (std::size_t i = 0; i < machine_.pairs.size(); ++i) {
      const topologies::NvlinkPair& pair = machine_.pairs[i];
      append("{}[{}, {}, {}]", i == 0 ? ", pairs: [" : ", ", pair.a, pair.b, pair.links);
    }
    out_ += machine_.pairs.empty() ? "}\n" : "]}\n";
  }

  void rates() {
    line("gpu_link: {}", sim::to_text(machine_.gpu_host.value));
    line("pcie: {}", sim::to_text(machine_.pcie.value));
    if (machine_.direct_nic.value.raw() > 0)
      line("direct_nic: {}", sim::to_text(machine_.direct_nic.value));
    if (machine_.numa.size() > 1) line("smp: {}", sim::to_text(machine_.smp.value));
    if (!machine_.nics.empty()) line("nic: {}", sim::to_text(machine_.nic.value));
    if (machine_.c2c)
      line("c2c: {{link_mbps: {}, links: {}}}", machine_.c2c->megabytes_per_second,
           machine_.c2c->count);
    line("host_bridge_per_cpu: {}", machine_.one_host_bridge_per_cpu);
    if (!machine_.pcie_p2p) line("pcie_p2p: false");
    if (!machine_.gpudirect) line("gpudirect: false");
  }

  const MachineSpec& machine_;
  std::string out_;
};

}  // namespace

std::string machine_yaml(const MachineSpec& machine, const std::string& like) {
  return Writer(machine).text(like);
}

}  // namespace railyard::scenarios
