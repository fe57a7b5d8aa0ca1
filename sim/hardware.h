// Hardware: what is inside one host, in the terms of NCCL's topology XML (NCCL_TOPO_DUMP_FILE):
// NUMA nodes, the PCI trees below them, GPUs with their NVLinks, network devices. topologies/ reads
// it from files or derives it from a catalogue machine, algorithms/nccl decides from it what NCCL
// would decide. Order counts wherever NCCL's does: everything is kept as the file has it.
//
// Units as in the XML: net speed Mbit/s, latency microseconds, C2C bandwidth MB/s. A value that the
// file leaves out is the default written here, which is what NCCL assumes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace railyard::sim {

inline constexpr std::uint32_t kPciClassGpu = 0x030000;         // 0x0300xx, 0x0302xx
inline constexpr std::uint32_t kPciClassSwitch = 0x060400;      // PCI bridge
inline constexpr std::uint32_t kPciClassDataDirect = 0x080100;  // of a ConnectX-8, a bridge to NCCL
inline constexpr std::uint32_t kPciClassNvswitch = 0x068000;    // as an NVLink's target

struct HardwareNvlink {
  std::string target;  // bus id of the peer; any id with an NVSwitch class means the NVSwitches
  std::uint32_t count = 0;
  std::uint32_t target_class = 0;
};

struct HardwareC2c {
  double bandwidth = 0;  // MB/s of one link
  std::uint32_t count = 0;
};

struct HardwareGpu {
  std::int32_t dev = 0;  // CUDA (NVML) index
  std::int32_t sm = 0;   // compute capability x 10: 90 = Hopper
  std::optional<std::int32_t> rank;
  bool gdr = false;
  bool pcie_p2p = true;  // not in the XML, NVML tells: GPUs without NVLink to it reach its memory
  std::vector<HardwareNvlink> nvlinks;
  std::optional<HardwareC2c> c2c;
};

// One port of a NIC as the network plugin reports it.
struct HardwareNet {
  std::string name;
  std::int32_t dev = 0;
  std::int32_t speed = 0;  // Mbit/s; <= 0: unknown, taken as 10000
  std::int32_t port = 0;
  double latency = 0;      // microseconds
  std::uint64_t guid = 0;  // equal guid and port share bandwidth
  std::int32_t max_connections = 0;
  bool gdr = false;
  bool collnet = false;  // attribute `coll`
  std::int32_t rail = -1;
  std::int32_t plane = -1;
  bool keep = true;
};

struct HardwareNic {
  std::vector<HardwareNet> nets;
  std::size_t pci_before =
      0;  // directly below a CPU: how many of its <pci>s the file has before it
};

struct HardwarePci {
  std::string bus_id;
  std::uint32_t device_class = 0;
  std::uint32_t vendor = 0;
  std::uint32_t device = 0;
  std::uint32_t subsystem_vendor = 0;
  std::uint32_t subsystem_device = 0;
  std::string link_speed;       // "32.0 GT/s PCIe", of the link to the parent
  std::int32_t link_width = 0;  // lanes
  std::optional<HardwareGpu> gpu;
  std::vector<HardwareNic> nics;
  std::vector<std::string> peers;  // bus ids of <pcilink>s
  std::vector<HardwarePci> children;
};

struct HardwareCpu {
  std::int32_t numa_id = 0;
  std::uint64_t host_hash = 0;
  std::string affinity;  // hexadecimal mask as in the file
  std::string arch;      // x86_64, arm64, ppc64
  std::string vendor;    // GenuineIntel, AuthenticAMD, ...
  std::int32_t family = -1;
  std::int32_t model = -1;
  std::vector<HardwarePci> pci;
  std::vector<HardwareNic> nics;  // attached without PCI
};

struct Hardware {
  std::vector<HardwareCpu> cpus;
};

}  // namespace railyard::sim
