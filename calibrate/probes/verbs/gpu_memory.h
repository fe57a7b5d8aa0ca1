// Memory of a GPU for a network card to reach, through the CUDA driver loaded at run time, so that
// probe_verbs builds and runs without CUDA.
#pragma once

#include <cstddef>
#include <memory>

namespace railyard::probe {

class GpuMemory {
 public:
  // Throws ProbeError when there is no driver or no such GPU.
  GpuMemory(int gpu, std::size_t bytes);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  [[nodiscard]] void* address() const;
  // A dma-buf descriptor of the memory, which the caller closes; -1 where the driver has none.
  [[nodiscard]] int dma_buffer() const;

 private:
  struct Driver;
  std::unique_ptr<Driver> driver_;
  unsigned long long address_ = 0;
  std::size_t bytes_;
};

}  // namespace railyard::probe
