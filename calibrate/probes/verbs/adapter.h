// One RDMA adapter: memory regions and connected queue pairs on it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/probes/common/report.h"
#include "calibrate/probes/verbs/gpu_memory.h"

namespace railyard::probe {

// Deletes a verbs object with its own function.
template <typename T, int (*Destroy)(T*)>
struct VerbsDeleter {
  void operator()(T* object) const { Destroy(object); }
};

using ContextPointer = std::unique_ptr<ibv_context, VerbsDeleter<ibv_context, ibv_close_device>>;
using DomainPointer = std::unique_ptr<ibv_pd, VerbsDeleter<ibv_pd, ibv_dealloc_pd>>;
using RegionPointer = std::unique_ptr<ibv_mr, VerbsDeleter<ibv_mr, ibv_dereg_mr>>;
using CompletionPointer = std::unique_ptr<ibv_cq, VerbsDeleter<ibv_cq, ibv_destroy_cq>>;
using QueuePointer = std::unique_ptr<ibv_qp, VerbsDeleter<ibv_qp, ibv_destroy_qp>>;

class Adapter {
 public:
  // `name` empty: the first one; `gid_index` negative: found for the kind of link. Throws
  // ProbeError when there is no RDMA device or its port is not active.
  Adapter(const std::string& name, int port, int gid_index);

  [[nodiscard]] ibv_context* context() const { return context_.get(); }
  [[nodiscard]] ibv_pd* domain() const { return domain_.get(); }
  [[nodiscard]] const ibv_port_attr& port() const { return port_; }
  [[nodiscard]] std::uint8_t port_number() const { return port_number_; }
  [[nodiscard]] int gid_index() const { return gid_index_; }
  [[nodiscard]] bool ethernet() const { return port_.link_layer == IBV_LINK_LAYER_ETHERNET; }
  [[nodiscard]] ibv_gid gid() const;
  [[nodiscard]] std::uint8_t reads_in_flight() const;  // that both ends of a pair can keep
  [[nodiscard]] Device describe() const;

 private:
  [[nodiscard]] int find_gid() const;

  ContextPointer context_;
  DomainPointer domain_;
  ibv_port_attr port_{};
  std::uint8_t port_number_;
  int gid_index_;
};

// `dma_buffer` negative: by address. Null, with errno set, when it is refused.
RegionPointer register_memory(const Adapter& adapter, void* address, std::size_t bytes,
                              int dma_buffer);

// Memory that may be read and written from afar.
class Region {
 public:
  // gpu negative: memory of the host, touched.
  Region(const Adapter& adapter, std::size_t bytes, int gpu);

  [[nodiscard]] char* address() const { return address_; }
  [[nodiscard]] std::size_t bytes() const { return region_->length; }
  [[nodiscard]] std::uint32_t local_key() const { return region_->lkey; }
  [[nodiscard]] std::uint32_t remote_key() const { return region_->rkey; }
  [[nodiscard]] const std::string& kind() const { return kind_; }  // host, gpu-dmabuf, gpu-peermem

 private:
  std::vector<char> host_;
  std::unique_ptr<GpuMemory> gpu_;
  RegionPointer region_;
  char* address_ = nullptr;
  std::string kind_;
};

}  // namespace railyard::probe
