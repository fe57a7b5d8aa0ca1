// What the rules need to know of a communicator besides its channels; integer helpers they share.
#pragma once

#include <cstdint>

#include "sim/units.h"

namespace railyard::algorithms {

// Chunks of NVLS, which NCCL settles for a communicator: Hopper's, unless a plan says otherwise.
struct NvlsChunks {
  std::int64_t nvls = 131'072;
  std::int64_t tree = 0;  // of NVLSTree; 0: 64 KiB on four nodes or more, else as `nvls`
};

// Bytes of a connection's FIFO, of which a step is an eighth: NCCL's defaults, unless
// NCCL_LL_BUFFSIZE, NCCL_LL128_BUFFSIZE or NCCL_BUFFSIZE say otherwise.
struct FifoBytes {
  std::int64_t ll = 524'288;
  std::int64_t ll128 = 4'915'200;
  std::int64_t simple = 4'194'304;
};

// Ranks and nodes, where a node is an NVLink domain (a whole NVL72 rack is one node).
struct CommShape {
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;
  std::uint32_t heads = 1;  // of a node: sim::Heads
  NvlsChunks nvls_chunks{};
  FifoBytes fifos{};
};

constexpr std::int64_t div_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t align_up(std::int64_t a, std::int64_t b) { return div_up(a, b) * b; }
constexpr std::uint32_t log2_floor(std::uint32_t n) {
  std::uint32_t log = 0;
  while (n > 1) n >>= 1, ++log;
  return log;
}
constexpr std::uint32_t power_of_two_up(std::uint32_t n) {
  std::uint32_t power = 1;
  while (power < n) power *= 2;
  return power;
}

}  // namespace railyard::algorithms
