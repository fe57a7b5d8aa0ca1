#include <fstream>

#include "calibrate/probes/cuda/session.h"

namespace railyard::probe {
namespace {

std::string attribute(int device, cudaDeviceAttr which) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, device) == cudaSuccess) return std::to_string(value);
  cudaGetLastError();
  return "unknown";
}

// One line of the kernel's view of a PCI device; empty where it has none.
std::string pci_fact(const std::string& bus_id, const std::string& name) {
  std::ifstream file("/sys/bus/pci/devices/" + bus_id + "/" + name);
  std::string line;
  std::getline(file, line);
  return line;
}

Device describe(int device) {
  cudaDeviceProp properties{};
  PROBE_CUDA(cudaGetDeviceProperties(&properties, device));
  const std::string bus_id = pci_bus_id(device);
  Device found{"gpu", properties.name, {}};
  found.facts = {{"index", std::to_string(device)},
                 {"bus_id", bus_id},
                 {"compute_capability",
                  std::to_string(properties.major) + "." + std::to_string(properties.minor)},
                 {"memory_bytes", std::to_string(properties.totalGlobalMem)},
                 {"l2_bytes", std::to_string(properties.l2CacheSize)},
                 {"multiprocessors", attribute(device, cudaDevAttrMultiProcessorCount)},
                 {"clock_khz", attribute(device, cudaDevAttrClockRate)},
                 {"memory_clock_khz", attribute(device, cudaDevAttrMemoryClockRate)},
                 {"memory_bus_bits", attribute(device, cudaDevAttrGlobalMemoryBusWidth)},
                 {"copy_engines", attribute(device, cudaDevAttrAsyncEngineCount)},
                 {"integrated", attribute(device, cudaDevAttrIntegrated)},
                 {"pageable_access", attribute(device, cudaDevAttrPageableMemoryAccess)}};
  for (const char* name : {"numa_node", "current_link_speed", "current_link_width"}) {
    const std::string value = pci_fact(bus_id, name);
    if (!value.empty()) found.facts[name] = value;
  }
  return found;
}

void add_pair(Report& report, int from, int to, const char* kind, cudaDeviceP2PAttr which) {
  int value = 0;
  PROBE_CUDA(cudaDeviceGetP2PAttribute(&value, which, from, to));
  report.rows.push_back({kind,
                         {{"from", std::to_string(from)}, {"to", std::to_string(to)}},
                         0,
                         0,
                         {},
                         static_cast<double>(value),
                         which == cudaDevP2PAttrPerformanceRank ? "rank" : "bool"});
}

bool enable_peer(int from, int to) {
  int possible = 0;
  PROBE_CUDA(cudaDeviceCanAccessPeer(&possible, from, to));
  if (possible == 0) return false;
  const OnDevice here(from);
  const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return true;
  }
  PROBE_CUDA(status);
  return true;
}

void describe_pairs(Session& session) {
  const auto count = static_cast<std::size_t>(session.devices);
  session.peer.assign(count, std::vector<bool>(count, false));
  for (int from = 0; from < session.devices; ++from) {
    for (int to = 0; to < session.devices; ++to) {
      if (from == to) continue;
      session.run_cell("P2P of " + std::to_string(from) + " and " + std::to_string(to), [&] {
        add_pair(session.report, from, to, "cuda.p2p_access", cudaDevP2PAttrAccessSupported);
        add_pair(session.report, from, to, "cuda.p2p_rank", cudaDevP2PAttrPerformanceRank);
        add_pair(session.report, from, to, "cuda.p2p_atomics", cudaDevP2PAttrNativeAtomicSupported);
        session.peer[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] =
            enable_peer(from, to);
      });
    }
  }
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::string pci_bus_id(int device) {
  char text[32] = {};
  PROBE_CUDA(cudaDeviceGetPCIBusId(text, sizeof text, device));
  std::string id = text;
  for (char& character : id)
    if (character >= 'A' && character <= 'F') character = static_cast<char>(character - 'A' + 'a');
  return id;  // as the kernel spells it
}

void find_devices(Session& session) {
  const cudaError_t status = cudaGetDeviceCount(&session.devices);
  if (status != cudaSuccess)
    throw ProbeError(std::string("no CUDA device: ") + cudaGetErrorString(status));
  if (session.devices == 0) throw ProbeError("no CUDA device");
  int runtime = 0, driver = 0;
  PROBE_CUDA(cudaRuntimeGetVersion(&runtime));
  PROBE_CUDA(cudaDriverGetVersion(&driver));
  session.report.software["cuda_runtime"] = version_text(runtime);
  session.report.software["cuda_driver"] = version_text(driver);
  for (int device = 0; device < session.devices; ++device)
    session.report.devices.push_back(describe(device));
  describe_pairs(session);
}

}  // namespace railyard::probe
