// The devices of one host of a topology file, numbered, with what they hang from: the first half of
// hardware_machine.h, which says the rules.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/hardware.h"
#include "sim/result.h"
#include "topologies/machine.h"

namespace railyard::topologies {

// What a <pci> is, by NCCL's rules and, where the class is missing, by its place.
enum class PciRole { gpu, amd_gpu, nic, bridge, unknown };
PciRole role_of(const sim::HardwarePci& pci);

// "16.0 GT/s PCIe" -> 16; 0 if it is no speed of a PCIe generation.
double gigatransfers_of(const std::string& link_speed);
// One way; 0 where the file does not say. Width 0 counts as 16, as in NCCL.
sim::Bandwidth link_rate_of(const sim::HardwarePci& pci);

// What a GPU has at most, and what one link carries one way. Sources: the NVIDIA datasheets of
// P100, V100, A100, A40, H100 and B200.
struct NvlinkGeneration {
  std::int32_t compute_capability;  // and above
  std::uint32_t most;
  double gigabytes_per_second;
};
// The newest for unknown GPUs.
const NvlinkGeneration& nvlink_generation(std::int32_t compute_capability);

// The hosts of a fused file, in NCCL's order: as their hashes appear.
std::vector<std::pair<std::uint64_t, sim::Hardware>> hosts_of(const sim::Hardware& hardware);

struct NvlinkPeer {
  std::uint32_t gpu = 0;
  std::uint32_t links = 0;
};

struct FoundGpu {
  const sim::HardwarePci* pci = nullptr;
  Parent parent;
  std::uint32_t switch_links = 0;
  std::vector<NvlinkPeer> peers{};
};

struct FoundNic {
  const sim::HardwareNet* net = nullptr;  // null: known by its PCI class alone
  Parent parent;
  sim::Bandwidth rate;  // of the port; 0 where the file does not say
};

struct FoundDevices {
  std::vector<PcieSwitch> switches{};
  std::vector<FoundGpu> gpus{};
  std::vector<FoundNic> nics{};
  // GPUs and NICs that meet below a data-direct function, and the rate there; 0: none do.
  std::vector<std::pair<const sim::HardwarePci*, const sim::HardwareNet*>> direct_nics{};
  sim::Bandwidth direct_nic{};
  std::int32_t compute_capability = 0;  // the highest; 0: not in the file
  double gigatransfers = 0;             // of the fastest GPU link
  bool knows_nvlinks = false;           // every GPU has its <gpu>
  bool has_nvlinks = false;
  bool has_nvswitch = false;
  bool has_c2c = false;
  bool complete = true;  // NCCL would have nothing to add
  sim::HardwareC2c c2c{};
  std::uint32_t lost_links = 0;  // NVLinks to what is not in the file
  std::uint32_t self_links = 0;  // from a GPU to itself, as virtual machines show them
  std::vector<std::string> notes{};

  // From one GPU to another, as the file lists them at the first.
  [[nodiscard]] std::uint32_t links(std::uint32_t from, std::uint32_t to) const;
};

// The pointers point into `host`, which must outlive the result.
sim::Result<FoundDevices> find_devices(const sim::Hardware& host);

}  // namespace railyard::topologies
