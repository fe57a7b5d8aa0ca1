// The kernels of probe_cuda. Every function enqueues one launch on `shape.stream` of the current
// device and throws ProbeError when the launch is refused. Sizes are bytes, a multiple of 16.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace railyard::probe {

struct Shape {
  int blocks = 1;
  int threads = 512;  // a multiple of 32, at most 1024
  cudaStream_t stream = nullptr;
};

void launch_empty(const Shape& shape);

// As a channel of NCCL does, every block has its own contiguous share, every thread several 16-byte
// loads in flight.
void launch_copy(const Shape& shape, const void* from, void* to, std::size_t bytes);

struct ReduceArguments {
  const void* first;
  const void* second;
  void* to;
  void* also_to;  // null: one store
  std::size_t bytes;
};
// to = first + second (floats), stored once or twice: the inner step of a ring.
void launch_reduce_copy(const Shape& shape, const ReduceArguments& arguments);

// Copies without end until *stop is not 0, or `most_rounds` are done: every block goes over its own
// `slice` bytes of from and to, which hold blocks * slice bytes.
struct EndlessArguments {
  const void* from;
  void* to;
  std::size_t slice;
  const unsigned* stop;  // mapped host memory
  unsigned most_rounds;
};
void launch_endless_copy(const Shape& shape, const EndlessArguments& arguments);

// One side of a ping-pong over two flags: waits for *mine to become 1, 2, ..., rounds, and answers
// by setting *theirs. Who is `first` sets before it waits. A side that waits for more than about a
// second sets *failed and gives up, so that nothing hangs.
struct FlagSide {
  unsigned* mine;
  unsigned* theirs;
  unsigned rounds;
  unsigned* failed;
};
void launch_flag_side(const FlagSide& side, bool first, cudaStream_t stream);
// Both sides at once, as two blocks of one cooperative launch.
void launch_flag_pair(const FlagSide& first, const FlagSide& second, cudaStream_t stream);

// c = a b on the tensor cores, n x n, half precision in, float out; n a multiple of 64.
void launch_gemm(const void* a, const void* b, void* c, int n, cudaStream_t stream);

}  // namespace railyard::probe
