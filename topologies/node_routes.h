// Routes inside one node, for every pair of its devices, computed once per machine (and once more
// for each node that has lost links).
//
// Rules. GPU to GPU: direct NVLink; else through an NVSwitch; else NVB, NVLink through the one GPU
// that leaves the widest path (lowest index first); else PCIe, C2C and the CPUs. Everything else
// goes by PCIe, C2C and SMP over the fewest links, through PCIe switches and CPUs only. NICs and,
// but for NVB, GPUs are never passed through. Two NICs are not connected inside a node. With ACS, a
// route that would turn below the CPU goes up to it and back.
//
// Cost: O(devices x links) to compute, O(length) to read, O(devices^2) memory per table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topologies/node_plan.h"

namespace railyard::topologies {

class NodeRoutes {
 public:
  NodeRoutes() = default;
  // `enabled` says which of the plan's links exist; empty = all.
  NodeRoutes(const NodePlan& plan, const std::vector<bool>& enabled);

  // Plan link numbers from one device to another; empty = no route (or the same device).
  [[nodiscard]] std::span<const std::uint16_t> find(std::uint32_t from, std::uint32_t to) const {
    const std::size_t cell = std::size_t{from} * devices_ + to;
    return std::span(links_).subspan(offsets_[cell], offsets_[cell + 1] - offsets_[cell]);
  }

 private:
  std::size_t devices_ = 0;
  std::vector<std::uint32_t> offsets_;  // devices^2 + 1
  std::vector<std::uint16_t> links_;
};

}  // namespace railyard::topologies
