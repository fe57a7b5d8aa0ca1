#include "models/horovod/fusion.h"

#include <deque>

namespace railyard::models {

std::vector<FusedTensors> fuse(std::span<const HorovodTensor> tensors,
                               std::span<const std::uint32_t> order, std::int64_t threshold) {
  std::vector<FusedTensors> out;
  std::deque<std::uint32_t> left(order.begin(), order.end());
  while (!left.empty()) {
    FusedTensors& fused = out.emplace_back();
    fused.tensors.push_back(left.front());
    const Dtype dtype = tensors[left.front()].dtype;
    std::int64_t size = tensors[left.front()].padded();
    left.pop_front();
    std::deque<std::uint32_t> skipped;
    std::int64_t skipped_size = 0;
    while (!left.empty()) {
      const HorovodTensor& next = tensors[left.front()];
      if (next.dtype == dtype && size + next.padded() <= threshold) {
        size += next.padded();
        fused.tensors.push_back(left.front());
      } else {
        skipped_size += next.padded();
        if (size + skipped_size > threshold) break;
        skipped.push_back(left.front());
      }
      left.pop_front();
    }
    left.insert(left.begin(), skipped.begin(), skipped.end());
    const HorovodTensor& first = tensors[fused.tensors.front()];
    const bool alone = fused.tensors.size() == 1;
    fused.size = sim::bytes(alone ? first.elements * element_size(dtype) : size);
  }
  return out;
}

}  // namespace railyard::models
