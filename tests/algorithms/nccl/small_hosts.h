// Small hosts by hand, for systems whose paths and channels can be worked out on paper.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "algorithms/nccl/node_topology.h"
#include "sim/hardware.h"

namespace railyard::tests {

inline constexpr std::int32_t kSkylake = 0x55;

// PCI speeds; 16 lanes: 12, 24, 48 GB/s.
inline constexpr const char* kGen3 = "8.0 GT/s PCIe";
inline constexpr const char* kGen4 = "16.0 GT/s PCIe";
inline constexpr const char* kGen5 = "32.0 GT/s PCIe";

// Bus id of GPU `dev`, for NVLinks to name.
std::string gpu_bus(std::int32_t dev);
sim::HardwareNvlink nvlink_to_gpu(std::int32_t dev, std::uint32_t count);
sim::HardwareNvlink nvlink_to_switch(std::uint32_t count);

sim::HardwarePci gpu(std::int32_t dev, std::int32_t sm,
                     std::vector<sim::HardwareNvlink> nvlinks = {}, const char* speed = kGen4);
// One port of `gbit` Gbit/s.
sim::HardwarePci nic(std::int32_t dev, std::int32_t gbit, const char* speed = kGen4);
sim::HardwarePci pci_switch(const std::string& bus_id, std::vector<sim::HardwarePci> children,
                            const char* speed = kGen4);
sim::HardwareCpu intel(std::int32_t numa, std::vector<sim::HardwarePci> children,
                       std::int32_t model = kSkylake);
sim::HardwareCpu amd(std::int32_t numa, std::vector<sim::HardwarePci> children);

// Ranks 0.. on GPUs 0.. of one host.
algorithms::nccl::NodeRequest one_host(const sim::Hardware& hardware, std::int32_t gpus,
                                       std::int32_t comm_ranks);
algorithms::nccl::Environment variables(const std::map<std::string, std::string>& values = {});
// Fails the test where there is no node.
algorithms::nccl::NodeTopology node_of(const algorithms::nccl::NodeRequest& request,
                                       const std::map<std::string, std::string>& values = {},
                                       const algorithms::nccl::Capabilities& capabilities = {});

}  // namespace railyard::tests
