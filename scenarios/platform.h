// Platform: what the source of a published measurement says of the system, in the words of the
// `platform:` block of reference/measured, and the scenario that it makes. Everything a platform
// says can be said in a scenario, so scenario_of() writes one as text and reads it: the text can be
// shown, saved and edited.
//
//   name: p5                  one slug per system
//   machine: hgx-h100         a catalogue name or alias; `unknown` and `cpu` make no scenario
//   nodes: 2                  null makes none
//   gpus_per_node: 8          that take part, the first ones; null makes none
//   processes: per-gpu        or per-node; null = per-gpu
//   threads: per-gpu          of a process per node: a thread for each GPU
//   intra: nvswitch           nvlink-direct, nvlink-bridge, pcie-switch, pcie-host, shm, none
//   nics_per_node: 32         that are used, 0 for a single node; null = the machine's
//   nic_rate: 100 Gb/s        null = the machine's
//   nic_measured: 108 Gb/s    what a port reached, where that is far from its rate
//   fabric: efa               infiniband, roce, slingshot, tcp-ethernet, gcp-tcpx, gcp-tcpxo,
//                             nvlink-domain, none
//   transport: rdma-gdr       rdma-host, tcp, none; null = what NCCL finds
//   nccl_used: 2.22.3         null = the newest known
//   library: nccl             others make no scenario
//   nvlink_domain_gpus: 72    GPUs that share NVLink, across nodes
//   predictable, why_not, spread, assumed    of the record, not of the system
//
// A word that is not known counts as null and is named in `notes`.
//
//   RAILYARD_ASSIGN(const Platform platform, read_platform(Place{node, "platform"}));
//   RAILYARD_ASSIGN(const PlatformScenario made, scenario_of(platform, {.collective = ...}));
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/nn/dtype.h"
#include "scenarios/decode.h"
#include "scenarios/scenario.h"
#include "sim/collective.h"
#include "sim/enum_table.h"
#include "sim/units.h"

namespace railyard::scenarios {

enum class Processes { per_gpu, per_node };
enum class Intra { nvswitch, nvlink_direct, nvlink_bridge, pcie_switch, pcie_host, shm, none };
enum class NetworkClass {
  none,
  infiniband,
  roce,
  efa,
  slingshot,
  tcp,
  tcpx,   // Google's GPU-direct TCP, 2 GPUs to a NIC
  tcpxo,  // the same with offload, a NIC for each GPU
  nvlink_domain
};
enum class NetworkPath { none, rdma_gdr, rdma_host, tcp };

struct Platform {
  std::string name;
  std::string machine;
  std::optional<std::uint32_t> nodes;
  std::optional<std::uint32_t> gpus_per_node;
  std::optional<Processes> processes;
  bool thread_per_gpu = false;
  std::optional<Intra> intra;
  std::optional<std::uint32_t> nics_per_node;
  std::optional<sim::Bandwidth> nic_rate;
  std::optional<sim::Bandwidth> nic_measured;
  std::optional<NetworkClass> fabric;
  std::optional<NetworkPath> transport;
  std::string nccl_used;
  std::string library;
  bool predictable = true;
  std::string why_not;
  std::vector<std::string> spread;
  std::vector<std::string> assumed;
  std::optional<std::uint32_t> nvlink_domain_gpus;

  std::vector<std::string> notes;  // words of the block that were not understood
};

Result<Platform> read_platform(const Place& place);

// What was run on it: one collective over sizes, under NCCL's variables. Of `env` the NCCL_* ones
// count, without remarks in brackets; those that name files, devices or interfaces of the host are
// left out, for the platform says what they lead to.
struct PlatformCall {
  sim::Collective collective = sim::Collective::all_reduce;
  std::vector<sim::Bytes> sizes;  // nccl-tests' column, as in CollectiveRun
  models::Dtype dtype = models::Dtype::fp32;
  std::uint32_t root = 0;
  std::map<std::string, std::string> env;
};

struct PlatformScenario {
  std::string text;  // YAML
  Scenario scenario;
  std::vector<std::string> notes;  // what was assumed or left out
};

// Errors: "no scenario: ..." with what the platform does not say; what the scenario's text or its
// machine does not allow.
Result<PlatformScenario> scenario_of(const Platform& platform, const PlatformCall& call);

// Only the text.
struct PlatformText {
  std::string yaml;
  std::vector<std::string> notes;
};
Result<PlatformText> platform_yaml(const Platform& platform, const PlatformCall& call);

// The profiles of a platform, the machine's first, its network's behind it where they differ.
// Variables of Slingshot's own library count where they change what a message costs (fi_cxi(7)):
// FI_CXI_RX_MATCH_MODE=software, with it FI_CXI_RDZV_PROTO=alt_read and FI_HMEM_CUDA_USE_GDRCOPY=0,
// and FI_CXI_DISABLE_NON_INJECT_MSG_IDC=1.
Result<std::vector<std::string>> platform_profiles(const Platform& platform,
                                                   const std::map<std::string, std::string>& env);

// The variables that scenario_of() keeps; what is dropped gets a note.
std::map<std::string, std::string> usable_variables(const Platform& platform,
                                                    const std::map<std::string, std::string>& env,
                                                    std::vector<std::string>& notes);

}  // namespace railyard::scenarios

namespace railyard::sim {
template <>
struct EnumTable<scenarios::Processes> {
  static constexpr std::string_view kind = "process layout";
  static constexpr std::array entries{EnumEntry{scenarios::Processes::per_gpu, "per-gpu"},
                                      EnumEntry{scenarios::Processes::per_node, "per-node"}};
};
template <>
struct EnumTable<scenarios::Intra> {
  using T = scenarios::Intra;
  static constexpr std::string_view kind = "connection inside the node";
  static constexpr std::array entries{EnumEntry{T::nvswitch, "nvswitch"},
                                      EnumEntry{T::nvlink_direct, "nvlink-direct"},
                                      EnumEntry{T::nvlink_bridge, "nvlink-bridge"},
                                      EnumEntry{T::pcie_switch, "pcie-switch"},
                                      EnumEntry{T::pcie_host, "pcie-host"},
                                      EnumEntry{T::shm, "shm"},
                                      EnumEntry{T::none, "none"}};
};
template <>
struct EnumTable<scenarios::NetworkClass> {
  using T = scenarios::NetworkClass;
  static constexpr std::string_view kind = "network class";
  static constexpr std::array entries{EnumEntry{T::none, "none"},
                                      EnumEntry{T::infiniband, "infiniband"},
                                      EnumEntry{T::roce, "roce"},
                                      EnumEntry{T::efa, "efa"},
                                      EnumEntry{T::slingshot, "slingshot"},
                                      EnumEntry{T::tcp, "tcp-ethernet"},
                                      EnumEntry{T::tcpx, "gcp-tcpx"},
                                      EnumEntry{T::tcpxo, "gcp-tcpxo"},
                                      EnumEntry{T::nvlink_domain, "nvlink-domain"}};
};
template <>
struct EnumTable<scenarios::NetworkPath> {
  using T = scenarios::NetworkPath;
  static constexpr std::string_view kind = "network path";
  static constexpr std::array entries{
      EnumEntry{T::none, "none"}, EnumEntry{T::rdma_gdr, "rdma-gdr"},
      EnumEntry{T::rdma_host, "rdma-host"}, EnumEntry{T::tcp, "tcp"}};
};
}  // namespace railyard::sim
