// Which resources cannot hold back any flow that will be started, and may be left out of solves.
//
// Q covers R if every flow on R is also on Q, with no smaller load there, and Q's capacity is no
// larger. During a filling there is then at least as much left on R as on Q, for at most Q's
// unfixed load: R's level is never below Q's, and where they are equal R's flows are on Q and fixed
// with it. So without R all rates are the same to the bit. Covering is transitive; of two that
// cover each other the one with the smaller number stays.
//
// Example: the links GPU - PCIe switch - NIC - leaf switch - NIC - PCIe switch - GPU of a ring's
// edge, which the same channels take: one of the six is enough.
#include <algorithm>

#include "sim/network.h"

namespace railyard::sim {
namespace {

constexpr std::uint64_t kNoCap = ~std::uint64_t{0};

}  // namespace

class Network::Pruning {
 public:
  Pruning(const Network& network, std::uint32_t first_flow) : network_(network) {
    first_.assign(network.resources_.size() + 1, 0);
    const auto for_uses = [&](auto&& visit) {
      for (std::uint32_t f = first_flow; f < network.flows_.size(); ++f)
        for (const Use& use : uses_of(f)) visit(f, use.resource);
    };
    for_uses([&](std::uint32_t, std::uint32_t resource) { ++first_[resource + 1]; });
    for (std::size_t r = 0; r + 1 < first_.size(); ++r) first_[r + 1] += first_[r];
    flows_.resize(first_.back());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for_uses([&](std::uint32_t f, std::uint32_t resource) { flows_[next[resource]++] = f; });
  }

  // Whether some other resource covers this one. If so it is on the route of every flow here.
  [[nodiscard]] bool covered(std::uint32_t resource) const {
    return !on(resource).empty() &&
           std::ranges::any_of(uses_of(on(resource).front()),
                               [&](const Use& use) { return covers(use.resource, resource); });
  }

 private:
  [[nodiscard]] std::span<const Use> uses_of(std::uint32_t flow) const {
    const Flow& each = network_.flows_[flow];
    return std::span(network_.uses_).subspan(each.first_use, each.use_count);
  }
  [[nodiscard]] std::span<const std::uint32_t> on(std::uint32_t resource) const {
    return std::span(flows_).subspan(first_[resource], first_[resource + 1] - first_[resource]);
  }
  // The load of a flow on a resource; 0 if it does not use it.
  [[nodiscard]] std::uint64_t load(std::uint32_t flow, std::uint32_t resource) const {
    for (const Use& use : uses_of(flow))
      if (use.resource == resource) return use.load;
    return 0;
  }

  [[nodiscard]] bool covers(std::uint32_t q, std::uint32_t r) const {
    const Uint128 of_q = network_.resources_[q].capacity;
    const Uint128 of_r = network_.resources_[r].capacity;
    if (q == r || of_q > of_r) return false;
    bool equal = of_q == of_r && on(q).size() == on(r).size();
    for (const std::uint32_t flow : on(r)) {
      const std::uint64_t on_r = load(flow, r);
      const std::uint64_t on_q = load(flow, q);
      if (on_q < on_r) return false;
      equal = equal && on_q == on_r;
    }
    return !equal || q < r;
  }

  const Network& network_;
  std::vector<std::uint32_t> first_;  // the flows on resource r are flows_[first_[r]] up to
  std::vector<std::uint32_t> flows_;  //   flows_[first_[r + 1]]
};

void Network::only_flows_from(FlowId first) {
  RAILYARD_CHECK(active_count_ == 0 && changed_.empty(), "no flow is under way");
  const Pruning pruning(*this, first.value());
  std::vector<bool> covered(resources_.size());
  for (std::uint32_t r = 0; r < resources_.size(); ++r) covered[r] = pruning.covered(r);
  for (std::uint32_t f = first.value(); f < flows_.size(); ++f) {
    Flow& flow = flows_[f];
    const auto begin = uses_.begin() + flow.first_use;
    const auto end = std::stable_partition(begin, begin + flow.use_count,
                                           [&](const Use& use) { return !covered[use.resource]; });
    flow.solved_uses = static_cast<std::uint16_t>(end - begin);
    flow.pair = flow.solved_uses == 2 && flow.cap_level == kNoCap && begin->load == 1 &&
                (begin + 1)->load == 1;
  }
}

// Alone on its route a flow is held back by the narrowest of its resources, or by its cap.
void Network::note_alone(Flow& flow) {
  flow.alone_noted = true;
  if (flow.solo_level == flow.cap_level) return;
  for (std::uint32_t u = flow.first_use; u < flow.first_use + flow.use_count; ++u) {
    Resource& resource = resources_[uses_[u].resource];
    if (resource.capacity / uses_[u].load == flow.solo_level) resource.limiting = true;
  }
}

}  // namespace railyard::sim
