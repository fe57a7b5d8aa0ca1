// Node plan: the devices and directed links inside one node of a machine, numbered from 0. All
// nodes of a cluster share one plan; only their offsets differ.
//
// Order of devices: GPUs, NICs, NVSwitch, PCIe switches, CPUs. An NVSwitch that several nodes share
// comes last and is not the node's own. Links come in pairs: 2i one way, 2i + 1 back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/topology.h"
#include "topologies/machine.h"

namespace railyard::topologies {

struct PlanDevice {
  sim::DeviceKind kind = sim::DeviceKind::gpu;
  std::uint32_t local_index = 0;
};

struct PlanLink {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  sim::LinkClass link_class = sim::LinkClass::pcie;
  sim::Bandwidth capacity;
  std::uint16_t width = 1;
};

struct NodePlan {
  std::vector<PlanDevice> devices;
  std::vector<PlanLink> links;
  bool acs = false;               // MachineSpec::acs
  std::uint32_t own_devices = 0;  // the rest are shared with the other nodes of the NVLink domain
  std::uint32_t gpus = 0;         // devices 0 .. gpus - 1
  std::uint32_t nics = 0;         // devices gpus .. gpus + nics - 1

  [[nodiscard]] bool shares_nvswitch() const { return own_devices < devices.size(); }
};

// The machine must have passed check_machine().
NodePlan plan_node(const MachineSpec& machine);

// "gpu5", "nvswitch0", "pcie2", "cpu1".
std::string local_name(PlanDevice device);

}  // namespace railyard::topologies
