// NCCL, loaded at run time: the few functions the probe calls, with the types and numbers of
// NCCL's stable C interface (2.4 and later), so that neither its header nor its library is needed
// to build.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

namespace railyard::probe::nccl {

struct OpaqueComm;
using Comm = OpaqueComm*;

struct UniqueId {
  char bytes[128];
};

// What ncclGroupSimulateEnd fills in (2.22 and later).
struct SimulationInfo {
  std::size_t size = sizeof(SimulationInfo);
  unsigned magic = 0x74685283;
  unsigned version = 22200;
  float estimated_us = -1;  // stays so when NCCL's model has no answer
};

inline constexpr int kFloat = 7;  // ncclFloat32
inline constexpr int kSum = 0;    // ncclSum
inline constexpr int kSuccess = 0;

struct Api {
  int version = 0;   // 22809 for 2.28.9
  std::string path;  // as it was found

  int (*get_unique_id)(UniqueId*) = nullptr;
  int (*init_rank)(Comm*, int, UniqueId, int) = nullptr;
  int (*init_all)(Comm*, int, const int*) = nullptr;
  int (*destroy)(Comm) = nullptr;
  int (*abort)(Comm) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*simulate_end)(SimulationInfo*) = nullptr;  // null before 2.22
  int (*all_reduce)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int, Comm, cudaStream_t) = nullptr;
  int (*reduce_scatter)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
  int (*send)(const void*, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
  int (*receive)(void*, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
  const char* (*error_text)(int) = nullptr;
  const char* (*last_error)(Comm) = nullptr;  // null before 2.13

  // Throws ProbeError, with NCCL's own last words where it has some.
  void check(int status, const char* what) const;
};

// `path` empty: libnccl.so.2 where the loader and NCCL_HOME find it. Throws ProbeError.
Api load(const std::string& path);

std::string version_text(int version);  // "2.28.9"

}  // namespace railyard::probe::nccl
