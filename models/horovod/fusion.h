// Which tensors Horovod reduces together: Controller::FuseResponses in
// horovod/common/controller.cc.
//
// The responses of one cycle are taken in their order. A buffer takes the next one if its type is
// the same and the sum, each tensor padded to 16 bytes (the batched copies' alignment), does not
// exceed the threshold. One that does not fit is passed over, and later ones still tried, while
// buffer and passed-over tensors together are within the threshold; it then starts the next buffer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/nn/dtype.h"
#include "sim/units.h"

namespace railyard::models {

inline constexpr std::int64_t kDefaultFusionThreshold = std::int64_t{128} << 20;

struct HorovodTensor {
  std::int64_t elements = 0;
  Dtype dtype = Dtype::fp32;  // on the wire
  [[nodiscard]] std::int64_t padded() const {
    return (elements * element_size(dtype) + 15) / 16 * 16;
  }
};

// Tensors of one AllReduce. A single one is reduced where it lies; several in the fusion buffer.
struct FusedTensors {
  std::vector<std::uint32_t> tensors;  // indices
  sim::Bytes size{};                   // on the wire
};

// `order` holds indices into `tensors`. Cost: O(order^2) at worst.
std::vector<FusedTensors> fuse(std::span<const HorovodTensor> tensors,
                               std::span<const std::uint32_t> order, std::int64_t threshold);

}  // namespace railyard::models
