// CUDA runtime calls that must succeed, and owners of what they hand out.
//
// Nothing here may outlive the device it was made on. Destructors ignore errors: a failed call has
// been reported by then.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <utility>

#include "calibrate/probes/common/error.h"

namespace railyard::probe {

// "cudaMalloc (copies.cpp:40): out of memory"
inline void check_cuda(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears what is not sticky, so that a handler may go on
  const std::string path(file), name(call);
  throw ProbeError(name.substr(0, name.find('(')) + " (" + path.substr(path.rfind('/') + 1) + ":" +
                   std::to_string(line) + "): " + cudaGetErrorString(status));
}

#define PROBE_CUDA(call) ::railyard::probe::check_cuda((call), #call, __FILE__, __LINE__)

// Selects a device for this scope and the previous one after it.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    PROBE_CUDA(cudaGetDevice(&previous_));
    PROBE_CUDA(cudaSetDevice(device));
  }
  ~OnDevice() { cudaSetDevice(previous_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int previous_ = 0;
};

class Stream {
 public:
  explicit Stream(int device) : device_(device) {
    const OnDevice here(device);
    PROBE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }  // NOLINT: stands for the handle
  [[nodiscard]] int device() const { return device_; }
  void wait() const { PROBE_CUDA(cudaStreamSynchronize(stream_)); }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(int device) {
    const OnDevice here(device);
    PROBE_CUDA(cudaEventCreate(&event_));
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }  // NOLINT: stands for the handle

 private:
  cudaEvent_t event_ = nullptr;
};

// Memory of a device, or of the host (pinned and mapped into every device), filled with zeros.
class Buffer {
 public:
  Buffer() = default;
  static Buffer on_device(int device, std::size_t bytes) {
    const OnDevice here(device);
    Buffer buffer;
    PROBE_CUDA(cudaMalloc(&buffer.data_, bytes));
    PROBE_CUDA(cudaMemset(buffer.data_, 0, bytes));
    PROBE_CUDA(cudaDeviceSynchronize());
    return buffer;
  }
  static Buffer on_host(std::size_t bytes) {
    Buffer buffer;
    buffer.host_ = true;
    PROBE_CUDA(cudaHostAlloc(&buffer.data_, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
    static_cast<void>(std::char_traits<char>::assign(buffer.as<char>(), bytes, '\0'));
    return buffer;
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), host_(other.host_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(host_, other.host_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ == nullptr) return;
    if (host_)
      cudaFreeHost(data_);
    else
      cudaFree(data_);
  }
  template <typename T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }
  // The address a kernel uses; with unified addressing it is the host's own.
  template <typename T>
  [[nodiscard]] T* in_kernel() const {
    if (!host_) return as<T>();
    void* mapped = nullptr;
    PROBE_CUDA(cudaHostGetDevicePointer(&mapped, data_, 0));
    return static_cast<T*>(mapped);
  }

 private:
  void* data_ = nullptr;
  bool host_ = false;
};

}  // namespace railyard::probe
