#include "calibrate/probes/verbs/adapter.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "calibrate/probes/common/error.h"

namespace railyard::probe {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

ContextPointer open_device(const std::string& name) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> owner(list, ibv_free_device_list);
  if (list == nullptr || count == 0)
    throw ProbeError("no RDMA device: the list of the verbs library is empty");
  std::string names;
  for (int i = 0; i < count; ++i) {
    const std::string found = ibv_get_device_name(list[i]);
    names += (names.empty() ? "" : ", ") + found;
    if (!name.empty() && found != name) continue;
    ContextPointer context(ibv_open_device(list[i]));
    if (!context) fail_with_errno("cannot open " + found);
    return context;
  }
  throw ProbeError("no RDMA device '" + name + "', only " + names);
}

double gigabits_of(const ibv_port_attr& port) {
  // Lanes of a width code, and Gb/s of one lane of a speed code, as InfiniBand numbers them.
  int lanes = 0;
  switch (port.active_width) {
    case 1: lanes = 1; break;
    case 2: lanes = 4; break;
    case 4: lanes = 8; break;
    case 8: lanes = 12; break;
    case 16: lanes = 2; break;
    default: break;
  }
  double lane = 0;
  switch (port.active_speed) {
    case 1: lane = 2.5; break;
    case 2: lane = 5; break;
    case 4:
    case 8: lane = 10; break;
    case 16: lane = 14; break;
    case 32: lane = 25; break;
    case 64: lane = 50; break;
    case 128: lane = 100; break;
    default: break;
  }
  return lanes * lane;
}

}  // namespace

Adapter::Adapter(const std::string& name, int port, int gid_index)
    : context_(open_device(name)),
      port_number_(static_cast<std::uint8_t>(port)),
      gid_index_(gid_index) {
  domain_.reset(ibv_alloc_pd(context_.get()));
  if (!domain_) fail_with_errno("ibv_alloc_pd");
  if (const int status = ibv_query_port(context_.get(), port_number_, &port_); status != 0) {
    errno = status;
    fail_with_errno("ibv_query_port");
  }
  const std::string device = ibv_get_device_name(context_->device);
  if (port_.state != IBV_PORT_ACTIVE)
    throw ProbeError("port " + std::to_string(port) + " of " + device + " is not active");
  if (gid_index_ < 0) gid_index_ = ethernet() ? find_gid() : 0;
}

ibv_gid Adapter::gid() const {
  ibv_gid gid{};
  if (ibv_query_gid(context_.get(), port_number_, gid_index_, &gid) != 0)
    fail_with_errno("ibv_query_gid");
  return gid;
}

std::uint8_t Adapter::reads_in_flight() const {
  ibv_device_attr attributes{};
  if (ibv_query_device(context_.get(), &attributes) != 0) fail_with_errno("ibv_query_device");
  const int most = std::min(attributes.max_qp_rd_atom, attributes.max_qp_init_rd_atom);
  return static_cast<std::uint8_t>(std::clamp(most, 1, 16));
}

// The first RoCE v2 entry with an IPv4 address, else the first of RoCE v2, else entry 0.
int Adapter::find_gid() const {
  const std::string types = std::string("/sys/class/infiniband/") +
                            ibv_get_device_name(context_->device) + "/ports/" +
                            std::to_string(port_number_) + "/gid_attrs/types/";
  int fallback = -1;
  for (int index = 0; index < port_.gid_tbl_len; ++index) {
    std::ifstream file(types + std::to_string(index));
    std::string type;
    ibv_gid gid{};
    if (!std::getline(file, type) || type.rfind("RoCE v2", 0) != 0) continue;
    if (ibv_query_gid(context_.get(), port_number_, index, &gid) != 0) continue;
    const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    if (std::memcmp(gid.raw, mapped, sizeof mapped) == 0) return index;
    if (fallback < 0) fallback = index;
  }
  return fallback < 0 ? 0 : fallback;
}

Device Adapter::describe() const {
  Device device{"nic", ibv_get_device_name(context_->device), {}};
  ibv_device_attr attributes{};
  if (ibv_query_device(context_.get(), &attributes) == 0) {
    device.facts["firmware"] = attributes.fw_ver;
    device.facts["vendor_part"] = std::to_string(attributes.vendor_part_id);
  }
  device.facts["link"] = ethernet() ? "ethernet" : "infiniband";
  device.facts["port"] = std::to_string(port_number_);
  device.facts["gigabits"] = std::to_string(gigabits_of(port_));
  device.facts["mtu_code"] = std::to_string(port_.active_mtu);
  device.facts["gid_index"] = std::to_string(gid_index_);
  return device;
}

RegionPointer register_memory(const Adapter& adapter, void* address, std::size_t bytes,
                              int dma_buffer) {
  if (dma_buffer < 0) return RegionPointer(ibv_reg_mr(adapter.domain(), address, bytes, kAccess));
  // Looked up by name: verbs libraries before 2021 do not have it.
  using RegisterDmaBuffer =
      ibv_mr* (*)(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int);
  static const auto call =
      reinterpret_cast<RegisterDmaBuffer>(dlsym(RTLD_DEFAULT, "ibv_reg_dmabuf_mr"));
  if (call == nullptr) {
    errno = ENOSYS;
    return nullptr;
  }
  return RegionPointer(call(adapter.domain(), 0, bytes, reinterpret_cast<std::uint64_t>(address),
                            dma_buffer, kAccess));
}

Region::Region(const Adapter& adapter, std::size_t bytes, int gpu) {
  if (gpu < 0) {
    host_.assign(bytes, '\0');
    address_ = host_.data();
    kind_ = "host";
    region_ = register_memory(adapter, address_, bytes, -1);
    if (!region_) fail_with_errno("registering host memory (ulimit -l)");
    return;
  }
  gpu_ = std::make_unique<GpuMemory>(gpu, bytes);
  address_ = static_cast<char*>(gpu_->address());
  if (const int descriptor = gpu_->dma_buffer(); descriptor >= 0) {
    kind_ = "gpu-dmabuf";
    region_ = register_memory(adapter, address_, bytes, descriptor);
    close(descriptor);  // the region keeps the memory
  }
  if (!region_) {
    kind_ = "gpu-peermem";
    region_ = register_memory(adapter, address_, bytes, -1);
  }
  if (!region_) fail_with_errno("registering GPU memory (neither dma-buf nor nvidia_peermem)");
}

}  // namespace railyard::probe
