// How calls get their algorithm and protocol: named by the scenario, or left to NCCL.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "sim/collective.h"
#include "sim/enum_table.h"
#include "sim/units.h"

namespace railyard::scenarios {

// Whose collectives are run. Gloo: processes on processors, over TCP; it chooses nothing, so that a
// scenario says which of its two AllReduces is meant.
enum class Backend { nccl, gloo, gloo_bcube };

// A choice that the scenario names, for calls of at most `up_to` (CollectiveCall::size).
struct NcclChoice {
  sim::Bytes up_to = sim::bytes(std::numeric_limits<std::int64_t>::max());
  sim::Algorithm algorithm = sim::Algorithm::ring;
  sim::Protocol protocol = sim::Protocol::simple;
  std::uint32_t channels = 0;  // 1..64
};

// `nccl: auto`: NCCL decides, on this hardware, in this version, under these variables. What is
// switched off is missing on every host (a container without the HCAs, a driver without peermem).
struct NcclSetup {
  bool choose = false;
  std::string version;  // "2.28.9"; empty = the newest known
  std::map<std::string, std::string> env;
  bool p2p = true;         // between the GPUs of a host, by NVLink or PCIe
  bool gpudirect = true;   // NICs reach GPU memory
  bool infiniband = true;  // else sockets
  bool multicast = true;   // NVLS, where the GPUs and the switch can
  bool collnet = false;    // a SHARP plugin and switches that reduce
  // Sends between nodes (AllToAll, SendRecv, ...) are posted by the GPU, not by a proxy: IBGDA in
  // NVSHMEM and DeepEP, GIN in NCCL.
  bool gpu_initiated = false;
};

// Whether NCCL reads and writes GPU memory by a NIC's data-direct function where there is one:
// from 2.27 on, unless NCCL_IB_DATA_DIRECT=0.
bool uses_direct_nic(const NcclSetup& setup);

}  // namespace railyard::scenarios

namespace railyard::sim {
template <>
struct EnumTable<scenarios::Backend> {
  static constexpr std::string_view kind = "back end";
  static constexpr std::array entries{EnumEntry{scenarios::Backend::nccl, "nccl"},
                                      EnumEntry{scenarios::Backend::gloo, "gloo"},
                                      EnumEntry{scenarios::Backend::gloo_bcube, "gloo-bcube"}};
};
}  // namespace railyard::sim
