#include "algorithms/nccl/search_memory.h"

namespace railyard::algorithms::nccl {
namespace {

std::size_t number(sim::PathType type) { return static_cast<std::size_t>(type); }

template <typename Present>
std::size_t round_down(const Present& present, sim::PathType type) {
  std::size_t at = number(type);
  while (at > 0 && !present[at]) --at;
  return at;
}

template <typename Present>
void mark(Present& present, const NodeTopology& node, VertexKind from, VertexKind to) {
  for (std::int32_t a = 0; a < node.system().count(from); ++a)
    for (std::int32_t b = 0; b < node.system().count(to); ++b)
      present[number(node.path({from, a}, {to, b}).type)] = true;
}

}  // namespace

SearchMemory::SearchMemory(const NodeTopology& node) {
  mark(intra_, node, VertexKind::gpu, VertexKind::gpu);
  mark(intra_, node, VertexKind::gpu, VertexKind::nvs);
  mark(intra_, node, VertexKind::nvs, VertexKind::gpu);
  mark(inter_, node, VertexKind::gpu, VertexKind::net);
  mark(inter_, node, VertexKind::net, VertexKind::gpu);
}

std::optional<std::int32_t> SearchMemory::fruitless(const SearchGraph& wanted) const {
  // Fractional shares leave traces in the hop count: such searches are not repeatable.
  if (wanted.pattern == sim::GraphPattern::collnet_direct) return std::nullopt;
  const auto found = fruitless_.find(key(wanted));
  if (found == fruitless_.end()) return std::nullopt;
  return found->second;
}

void SearchMemory::note(const SearchGraph& wanted, bool improved, std::int32_t budget) {
  if (improved)
    fruitless_.clear();
  else
    fruitless_[key(wanted)] = budget;
}

SearchMemory::Key SearchMemory::key(const SearchGraph& wanted) const {
  return {wanted.pattern,
          wanted.same_channels,
          wanted.cross_nic,
          round_down(intra_, wanted.intra_type),
          round_down(inter_, wanted.inter_type),
          wanted.intra_bandwidth,
          wanted.inter_bandwidth,
          wanted.min_channels,
          wanted.max_channels};
}

}  // namespace railyard::algorithms::nccl
