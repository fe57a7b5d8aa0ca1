// What the ranks of a node see together, in the order NCCL fuses it.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "algorithms/nccl/system_build.h"

namespace railyard::algorithms::nccl {
namespace {

constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

class Fusion {
 public:
  Fusion(const NodeInputs& inputs, std::int32_t host) : host_(host) {
    for (std::size_t r = 0; r < inputs.ranks.size(); ++r) {
      if (inputs.ranks[r].host != host) continue;
      host_first_ = std::min(host_first_, r);
      ranks_.emplace(inputs.ranks[r].dev, Seat{r, inputs.ranks[r].rank});
    }
  }

  [[nodiscard]] std::size_t host_first() const { return host_first_; }

  FusedCpu cpu(const sim::HardwareCpu& cpu) {
    FusedCpu fused{&cpu, kNobody, host_, {}};
    for (const sim::HardwareNic& nic : cpu.nics) note_nic(nic, fused.first_rank);
    fused.pci = children(cpu.pci, fused.first_rank);
    return fused;
  }

  [[nodiscard]] sim::Result<void> check() const {
    for (const auto& [dev, seat] : ranks_)
      if (seat.found != 1)
        return sim::bad_input(fmt::format("host {} has {} with dev {}", host_,
                                          seat.found == 0 ? "no GPU" : "several GPUs", dev));
    return {};
  }

 private:
  struct Seat {
    std::size_t position = 0;
    std::int32_t rank = 0;
    std::int32_t found = 0;
  };

  FusedPci pci(const sim::HardwarePci& pci) {
    FusedPci fused{&pci, kNobody, -1, {}};
    if (pci.gpu) {
      if (const auto seat = ranks_.find(pci.gpu->dev); seat != ranks_.end()) {
        ++seat->second.found;
        fused.rank = seat->second.rank;
        fused.first_rank = seat->second.position;
      }
    }
    for (const sim::HardwareNic& nic : pci.nics) note_nic(nic, fused.first_rank);
    fused.children = children(pci.children, fused.first_rank);
    return fused;
  }

  // Drops what nobody uses and puts the rest in the order of the ranks that brought it.
  std::vector<FusedPci> children(const std::vector<sim::HardwarePci>& list, std::size_t& first) {
    std::vector<FusedPci> kept;
    for (const sim::HardwarePci& child : list) {
      FusedPci fused = pci(child);
      if (fused.first_rank == kNobody) continue;
      first = std::min(first, fused.first_rank);
      kept.push_back(std::move(fused));
    }
    std::stable_sort(kept.begin(), kept.end(), [](const FusedPci& a, const FusedPci& b) {
      return a.first_rank < b.first_rank;
    });
    return kept;
  }

  // Every rank of a host brings all its NICs.
  void note_nic(const sim::HardwareNic& nic, std::size_t& first) const {
    for (const sim::HardwareNet& net : nic.nets)
      if (net.keep) first = std::min(first, host_first_);
  }

  std::int32_t host_;
  std::size_t host_first_ = kNobody;
  std::map<std::int32_t, Seat> ranks_;  // by GPU
};

}  // namespace

sim::Result<std::vector<FusedCpu>> fuse(const NodeInputs& inputs) {
  std::vector<FusedCpu> cpus;
  std::size_t previous = 0;
  for (std::size_t host = 0; host < inputs.hosts.size(); ++host) {
    Fusion fusion(inputs, static_cast<std::int32_t>(host));
    if (fusion.host_first() == kNobody || (host > 0 && fusion.host_first() < previous))
      return sim::bad_input(
          fmt::format("host {} is not in the order of the hosts' lowest ranks", host));
    previous = fusion.host_first();
    for (const sim::HardwareCpu& cpu : inputs.hosts[host]->cpus) {
      FusedCpu fused = fusion.cpu(cpu);
      if (fused.first_rank != kNobody) cpus.push_back(std::move(fused));
    }
    RAILYARD_TRY(fusion.check());
  }
  std::stable_sort(cpus.begin(), cpus.end(), [](const FusedCpu& a, const FusedCpu& b) {
    return a.first_rank < b.first_rank;
  });
  return cpus;
}

}  // namespace railyard::algorithms::nccl
