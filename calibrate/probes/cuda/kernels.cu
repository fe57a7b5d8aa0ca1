#include <cuda_fp16.h>
#include <mma.h>

#include "calibrate/probes/cuda/check.h"
#include "calibrate/probes/cuda/kernels.h"

namespace railyard::probe {
namespace {

constexpr int kUnroll = 8;
constexpr long long kPatientCycles = 2'000'000'000;  // about a second at any GPU's clock

__global__ void empty_kernel() {}

// [begin, end) of this block's share of `count` elements.
struct Share {
  std::size_t begin, end;
};

__device__ Share share_of(std::size_t count) {
  const std::size_t each = (count + gridDim.x - 1) / gridDim.x;
  const std::size_t begin = each * blockIdx.x;
  return {begin < count ? begin : count, begin + each < count ? begin + each : count};
}

__device__ void copy_share(const uint4* from, uint4* to, Share share) {
  const std::size_t step = blockDim.x;
  std::size_t i = share.begin + threadIdx.x;
  for (; i + (kUnroll - 1) * step < share.end; i += kUnroll * step) {
    uint4 values[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) values[u] = from[i + u * step];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) to[i + u * step] = values[u];
  }
  for (; i < share.end; i += step) to[i] = from[i];
}

__global__ void copy_kernel(const uint4* from, uint4* to, std::size_t count) {
  copy_share(from, to, share_of(count));
}

__device__ float4 sum_of(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

template <bool kTwoStores>
__global__ void reduce_copy_kernel(const float4* first, const float4* second, float4* to,
                                   float4* also_to, std::size_t count) {
  constexpr int kPairs = kUnroll / 2;  // two loads each
  const Share share = share_of(count);
  const std::size_t step = blockDim.x;
  std::size_t i = share.begin + threadIdx.x;
  for (; i + (kPairs - 1) * step < share.end; i += kPairs * step) {
    float4 a[kPairs], b[kPairs];
#pragma unroll
    for (int u = 0; u < kPairs; ++u) a[u] = first[i + u * step];
#pragma unroll
    for (int u = 0; u < kPairs; ++u) b[u] = second[i + u * step];
#pragma unroll
    for (int u = 0; u < kPairs; ++u) {
      const float4 sum = sum_of(a[u], b[u]);
      to[i + u * step] = sum;
      if (kTwoStores) also_to[i + u * step] = sum;
    }
  }
  for (; i < share.end; i += step) {
    const float4 sum = sum_of(first[i], second[i]);
    to[i] = sum;
    if (kTwoStores) also_to[i] = sum;
  }
}

__global__ void endless_copy_kernel(EndlessArguments arguments) {
  const std::size_t count = arguments.slice / sizeof(uint4);
  const Share mine = {blockIdx.x * count, (blockIdx.x + 1) * count};
  __shared__ unsigned stop;
  for (unsigned round = 0; round < arguments.most_rounds; ++round) {
    copy_share(static_cast<const uint4*>(arguments.from), static_cast<uint4*>(arguments.to), mine);
    if (threadIdx.x == 0) stop = *static_cast<const volatile unsigned*>(arguments.stop);
    __syncthreads();  // everybody sees the same answer,
    const bool done = stop != 0;
    __syncthreads();  // and has read it before it is asked for again
    if (done) return;
  }
}

// Visible to other devices and the host in this order with everything before and after.
__device__ unsigned load_flag(const unsigned* flag) {
  unsigned value;
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

__device__ void store_flag(unsigned* flag, unsigned value) {
  asm volatile("st.release.sys.u32 [%0], %1;" : : "l"(flag), "r"(value) : "memory");
}

__device__ bool wait_for(const unsigned* flag, unsigned value) {
  const long long start = clock64();
  while (load_flag(flag) != value)
    if (clock64() - start > kPatientCycles) return false;
  return true;
}

__device__ void play(const FlagSide& side, bool first) {
  for (unsigned round = 1; round <= side.rounds; ++round) {
    if (first) store_flag(side.theirs, round);
    if (!wait_for(side.mine, round)) {
      *side.failed = 1;
      return;
    }
    if (!first) store_flag(side.theirs, round);
  }
}

__global__ void flag_side_kernel(FlagSide side, bool first) { play(side, first); }

__global__ void flag_pair_kernel(FlagSide first, FlagSide second) {
  if (blockIdx.x == 0)
    play(first, true);
  else
    play(second, false);
}

// A block of four warps makes a tile of 64 x 64, each warp 32 x 32 of it.
constexpr int kTile = 64, kDepth = 16, kPad = 8;

__global__ void __launch_bounds__(128)
    gemm_kernel(const __half* __restrict__ a, const __half* __restrict__ b, float* c, int n) {
  using namespace nvcuda;  // NOLINT: the library's own names
  __shared__ __align__(32) __half left[kTile][kDepth + kPad];
  __shared__ __align__(32) __half right[kDepth][kTile + kPad];
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  const std::size_t row = std::size_t{blockIdx.y} * kTile, column = std::size_t{blockIdx.x} * kTile;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
  for (auto& line : sums)
    for (auto& sum : line) wmma::fill_fragment(sum, 0.0F);
  const int left_row = threadIdx.x / 2, left_column = threadIdx.x % 2 * 8;
  const int right_row = threadIdx.x / 8, right_column = threadIdx.x % 8 * 8;
  for (int k = 0; k < n; k += kDepth) {
    *reinterpret_cast<uint4*>(&left[left_row][left_column]) =
        *reinterpret_cast<const uint4*>(&a[(row + left_row) * n + k + left_column]);
    *reinterpret_cast<uint4*>(&right[right_row][right_column]) =
        *reinterpret_cast<const uint4*>(&b[std::size_t(k + right_row) * n + column + right_column]);
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> lefts[2];
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> rights[2];
    for (int i = 0; i < 2; ++i) {
      wmma::load_matrix_sync(lefts[i], &left[warp_row + 16 * i][0], kDepth + kPad);
      wmma::load_matrix_sync(rights[i], &right[0][warp_column + 16 * i], kTile + kPad);
    }
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) wmma::mma_sync(sums[i][j], lefts[i], rights[j], sums[i][j]);
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      wmma::store_matrix_sync(&c[(row + warp_row + 16 * i) * n + column + warp_column + 16 * j],
                              sums[i][j], n, wmma::mem_row_major);
}

}  // namespace

void launch_empty(const Shape& shape) {
  empty_kernel<<<shape.blocks, shape.threads, 0, shape.stream>>>();
  PROBE_CUDA(cudaGetLastError());
}

void launch_copy(const Shape& shape, const void* from, void* to, std::size_t bytes) {
  copy_kernel<<<shape.blocks, shape.threads, 0, shape.stream>>>(
      static_cast<const uint4*>(from), static_cast<uint4*>(to), bytes / sizeof(uint4));
  PROBE_CUDA(cudaGetLastError());
}

void launch_reduce_copy(const Shape& shape, const ReduceArguments& arguments) {
  const auto* first = static_cast<const float4*>(arguments.first);
  const auto* second = static_cast<const float4*>(arguments.second);
  auto* to = static_cast<float4*>(arguments.to);
  auto* also_to = static_cast<float4*>(arguments.also_to);
  const std::size_t count = arguments.bytes / sizeof(float4);
  if (also_to == nullptr)
    reduce_copy_kernel<false>
        <<<shape.blocks, shape.threads, 0, shape.stream>>>(first, second, to, also_to, count);
  else
    reduce_copy_kernel<true>
        <<<shape.blocks, shape.threads, 0, shape.stream>>>(first, second, to, also_to, count);
  PROBE_CUDA(cudaGetLastError());
}

void launch_endless_copy(const Shape& shape, const EndlessArguments& arguments) {
  endless_copy_kernel<<<shape.blocks, shape.threads, 0, shape.stream>>>(arguments);
  PROBE_CUDA(cudaGetLastError());
}

void launch_flag_side(const FlagSide& side, bool first, cudaStream_t stream) {
  flag_side_kernel<<<1, 1, 0, stream>>>(side, first);
  PROBE_CUDA(cudaGetLastError());
}

void launch_flag_pair(const FlagSide& first, const FlagSide& second, cudaStream_t stream) {
  FlagSide a = first, b = second;
  void* arguments[] = {&a, &b};
  PROBE_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&flag_pair_kernel), dim3(2),
                                         dim3(1), arguments, 0, stream));
}

void launch_gemm(const void* a, const void* b, void* c, int n, cudaStream_t stream) {
  const dim3 grid(n / kTile, n / kTile);
  gemm_kernel<<<grid, 128, 0, stream>>>(static_cast<const __half*>(a),
                                        static_cast<const __half*>(b), static_cast<float*>(c), n);
  PROBE_CUDA(cudaGetLastError());
}

}  // namespace railyard::probe
