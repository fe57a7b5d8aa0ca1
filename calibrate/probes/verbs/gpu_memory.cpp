#include "calibrate/probes/verbs/gpu_memory.h"

#include <dlfcn.h>

#include <string>

#include "calibrate/probes/common/error.h"

namespace railyard::probe {
namespace {

constexpr std::size_t kGranule = 2097152;  // dma-buf takes whole pages of the GPU
constexpr int kSyncMemops = 6;             // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
constexpr int kDmaBufferHandle = 1;        // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD

}  // namespace

// The driver interface's stable C functions, by their exported names.
struct GpuMemory::Driver {
  int (*initialise)(unsigned) = nullptr;
  int (*get_device)(int*, int) = nullptr;
  int (*retain_context)(void**, int) = nullptr;
  int (*set_context)(void*) = nullptr;
  int (*allocate)(unsigned long long*, std::size_t) = nullptr;
  int (*release)(unsigned long long) = nullptr;
  int (*set_attribute)(const void*, int, unsigned long long) = nullptr;
  int (*get_handle)(void*, unsigned long long, std::size_t, int, unsigned long long) = nullptr;
  void* context = nullptr;

  template <typename Function>
  static void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
  }
  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) throw ProbeError("no CUDA driver: libcuda.so.1 cannot be loaded");
    find(library, "cuInit", initialise);
    find(library, "cuDeviceGet", get_device);
    find(library, "cuDevicePrimaryCtxRetain", retain_context);
    find(library, "cuCtxSetCurrent", set_context);
    find(library, "cuMemAlloc_v2", allocate);
    find(library, "cuMemFree_v2", release);
    find(library, "cuPointerSetAttribute", set_attribute);
    find(library, "cuMemGetHandleForAddressRange", get_handle);  // 11.7 and later
    if (initialise == nullptr || get_device == nullptr || retain_context == nullptr ||
        set_context == nullptr || allocate == nullptr || release == nullptr ||
        set_attribute == nullptr)
      throw ProbeError("the CUDA driver lacks functions this probe needs");
  }
};

GpuMemory::GpuMemory(int gpu, std::size_t bytes)
    : driver_(std::make_unique<Driver>()), bytes_((bytes + kGranule - 1) / kGranule * kGranule) {
  const auto check = [](int status, const char* what) {
    if (status != 0) throw ProbeError(std::string(what) + ": CUDA error " + std::to_string(status));
  };
  int device = 0;
  check(driver_->initialise(0), "cuInit");
  check(driver_->get_device(&device, gpu), "cuDeviceGet");
  check(driver_->retain_context(&driver_->context, device), "cuDevicePrimaryCtxRetain");
  check(driver_->set_context(driver_->context), "cuCtxSetCurrent");
  check(driver_->allocate(&address_, bytes_), "cuMemAlloc");
  // What CUDA writes is there before a card reads it. The attribute's value is given by address.
  const unsigned on = 1;
  const int status = driver_->set_attribute(&on, kSyncMemops, address_);
  if (status != 0) {
    driver_->release(address_);
    check(status, "cuPointerSetAttribute");
  }
}

GpuMemory::~GpuMemory() {
  if (driver_->set_context(driver_->context) == 0) driver_->release(address_);
}

void* GpuMemory::address() const { return reinterpret_cast<void*>(address_); }

int GpuMemory::dma_buffer() const {
  int descriptor = -1;
  if (driver_->get_handle == nullptr ||
      driver_->get_handle(&descriptor, address_, bytes_, kDmaBufferHandle, 0) != 0)
    return -1;
  return descriptor;
}

}  // namespace railyard::probe
