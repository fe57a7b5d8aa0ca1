#include "topologies/node_plan.h"

#include <fmt/format.h>

namespace railyard::topologies {
namespace {

using sim::DeviceKind;
using sim::LinkClass;

class Planner {
 public:
  explicit Planner(const MachineSpec& machine) : machine_(machine) {}

  NodePlan plan() {
    plan_.acs = machine_.acs;
    add_devices();
    if (!machine_.flat) {
      add_nvlinks();
      add_tree();
      add_smp();
    }
    return std::move(plan_);
  }

 private:
  std::uint32_t add(DeviceKind kind, std::size_t count) {
    const auto first = static_cast<std::uint32_t>(plan_.devices.size());
    for (std::uint32_t i = 0; i < count; ++i) plan_.devices.push_back({kind, i});
    return first;
  }

  void add_devices() {
    const bool shared = machine_.nodes_per_nvlink_domain > 1;
    plan_.gpus = static_cast<std::uint32_t>(machine_.gpus.size());
    plan_.nics = static_cast<std::uint32_t>(machine_.nics.size());
    add(DeviceKind::gpu, plan_.gpus);
    first_nic_ = add(DeviceKind::nic, plan_.nics);
    if (machine_.nvswitch && !shared) nvswitch_ = add(DeviceKind::nvswitch, 1);
    first_switch_ = add(DeviceKind::pcie_switch, machine_.switches.size());
    if (!machine_.flat) first_cpu_ = add(DeviceKind::cpu, machine_.numa.size());
    plan_.own_devices = static_cast<std::uint32_t>(plan_.devices.size());
    if (machine_.nvswitch && shared) nvswitch_ = add(DeviceKind::nvswitch, 1);
  }

  void connect(std::uint32_t a, std::uint32_t b, LinkClass link_class, sim::Bandwidth rate,
               std::uint16_t width) {
    plan_.links.push_back({a, b, link_class, rate * width, width});
    plan_.links.push_back({b, a, link_class, rate * width, width});
  }

  void add_nvlinks() {
    const auto all = static_cast<std::uint16_t>(machine_.nvlinks_per_gpu);
    for (std::uint32_t gpu = 0; machine_.nvswitch && gpu < plan_.gpus; ++gpu) {
      const std::uint16_t width = machine_.gpu_nvlinks.empty() ? all : machine_.gpu_nvlinks[gpu];
      if (width > 0) connect(gpu, nvswitch_, LinkClass::nvlink, machine_.nvlink.value, width);
    }
    for (const NvlinkPair& pair : machine_.pairs)
      connect(pair.a, pair.b, LinkClass::nvlink, machine_.nvlink.value, pair.links);
  }

  [[nodiscard]] std::uint32_t device_of(Parent parent) const {
    return (parent.is_switch ? first_switch_ : first_cpu_) + parent.index;
  }

  void hang(std::uint32_t device, Parent parent, LinkClass link_class, std::uint16_t width) {
    const sim::Bandwidth usual =
        device < plan_.gpus ? machine_.gpu_host.value : machine_.pcie.value;
    connect(device, device_of(parent), link_class, parent.rate.raw() > 0 ? parent.rate : usual,
            width);
  }

  void add_tree() {
    for (std::uint32_t i = 0; i < plan_.gpus; ++i)
      hang(i, machine_.gpus[i], machine_.gpu_host_class, 1);
    for (std::uint32_t i = 0; i < plan_.nics; ++i)
      hang(first_nic_ + i, machine_.nics[i], LinkClass::pcie, 1);
    const std::uint32_t direct =
        machine_.direct_nic.value.raw() == 0 ? 0 : std::min(plan_.gpus, plan_.nics);
    for (std::uint32_t i = 0; i < direct; ++i)
      connect(i, first_nic_ + i, LinkClass::pcie, machine_.direct_nic.value, 1);
    for (std::uint32_t i = 0; i < machine_.switches.size(); ++i)
      hang(first_switch_ + i, machine_.switches[i].parent, LinkClass::pcie,
           machine_.switches[i].width);
  }

  void add_smp() {
    const auto cpus = static_cast<std::uint32_t>(machine_.numa.size());
    for (std::uint32_t a = 0; a < cpus; ++a)
      for (std::uint32_t b = a + 1; b < cpus; ++b)
        connect(first_cpu_ + a, first_cpu_ + b, LinkClass::smp, machine_.smp.value, 1);
  }

  const MachineSpec& machine_;
  NodePlan plan_;
  std::uint32_t first_nic_ = 0;
  std::uint32_t nvswitch_ = 0;
  std::uint32_t first_switch_ = 0;
  std::uint32_t first_cpu_ = 0;
};

}  // namespace

NodePlan plan_node(const MachineSpec& machine) { return Planner(machine).plan(); }

std::string local_name(PlanDevice device) {
  if (device.kind == DeviceKind::pcie_switch) return fmt::format("pcie{}", device.local_index);
  return fmt::format("{}{}", sim::to_text(device.kind), device.local_index);
}

}  // namespace railyard::topologies
