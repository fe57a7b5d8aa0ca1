// ChannelSearch: one depth-first search with fixed demands (bandwidth, path types, NICs crossed or
// not): adds channel after channel, keeps the best graph seen. NCCL's order of trying is part of
// the result, and so is its budget of visited GPUs. A step of find_graphs; not for others.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "algorithms/nccl/net_choice.h"
#include "algorithms/nccl/nets.h"
#include "algorithms/nccl/node_topology.h"
#include "algorithms/nccl/search_graph.h"

namespace railyard::algorithms::nccl {

inline constexpr std::int32_t kPerfect = -1;  // a budget's value once nothing better can come

class ChannelSearch {
 public:
  explicit ChannelSearch(const NodeTopology& node);

  // Fills `best` if something better than it is found under the demands of `wanted` (the result
  // tells), and lowers `budget` by the visits; kPerfect: all channels wanted were found.
  bool run(SearchGraph& wanted, SearchGraph& best, std::int32_t& budget);

  NetChoice& nets() { return net_choice_; }

 private:
  enum class Order { free, pci, replay };
  struct Walk {
    std::int32_t step = 0;
    std::int32_t leave_at = -1;  // the step at which the channel leaves by a NIC
    std::int32_t close_at = -1;  // the step at which a ring returns to its first GPU
    Order order = Order::free;
  };
  struct Start {
    bool from_net = false;
    PathEnd end;
  };

  // What a GPU is worth as the next one, small is good: `net` counts before `inside`.
  struct Score {
    std::int32_t gpu = 0;
    std::uint64_t net = 0;     // bandwidth from the NIC, of its PCI link, hops
    std::uint64_t inside = 0;  // bandwidth, hops, distance in index order
  };

  void next_channel(std::int32_t& budget);
  void start_inside(const Walk& walk, std::int32_t& budget);
  void start_from_nets(const Walk& walk, std::int32_t& budget);
  void start_from_net(std::int32_t net, const Walk& walk, std::int32_t& budget);
  bool start_head(std::int32_t net, std::size_t candidates, const Walk& walk, std::int32_t& budget);
  void enter(const Start& start, std::int32_t gpu, const Walk& walk, std::int32_t& budget);
  void visit(std::int32_t gpu, const Walk& walk, std::int32_t& budget);
  void complete(std::int32_t& budget);
  void leave(std::int32_t gpu, const Walk& walk, std::int32_t& budget);
  void go_on(std::int32_t gpu, const Walk& walk, std::int32_t& budget);
  void close_ring(std::int32_t gpu, const Walk& walk, std::int32_t& budget);
  void try_nvls(std::int32_t head, std::int32_t& budget);
  void try_collnet_direct(std::int32_t head, std::int32_t& budget);

  [[nodiscard]] bool better() const;
  [[nodiscard]] bool may_leave_by(std::int32_t net, std::int32_t entered, std::int32_t step) const;
  // The GPUs to try next go on top of candidates_.
  void add_next_gpus(std::int32_t gpu, std::int32_t sort_net);
  void add_neighbours(std::int32_t gpu);
  [[nodiscard]] bool is_free(std::int32_t from, std::int32_t gpu) const;
  [[nodiscard]] std::int32_t replayed(std::int32_t step) const;
  [[nodiscard]] float gpu_pci_bandwidth(std::int32_t gpu) const;

  // Reserves (times > 0) or gives back the wanted bandwidth along a path; false: it does not fit.
  bool reserve(PathEnd from, PathEnd to, float times);
  std::size_t take(const Path& path, VertexKind start, std::size_t steps, float bandwidth);
  void change_net(std::int32_t net, std::int32_t bandwidth);
  [[nodiscard]] bool crosses_intel_bridge(const Path& path, VertexKind start) const;

  [[nodiscard]] std::size_t slot(std::int32_t step) const {
    return static_cast<std::size_t>(wanted_->channels * gpus_ + step);
  }

  const NodeTopology& node_;
  NetChoice net_choice_;
  std::int32_t gpus_;
  bool nvswitch_;
  SearchGraph* wanted_ = nullptr;
  SearchGraph* best_ = nullptr;
  bool improved_ = false;
  std::vector<std::uint64_t> used_;                               // per GPU, a bit per channel
  std::vector<std::pair<std::int32_t, std::int32_t>> pci_links_;  // up and down, per GPU
  std::vector<float> left_;                                       // bandwidth per link
  std::vector<Score> scores_;
  std::vector<std::int32_t> candidates_;              // a stack, one stretch per GPU on the way
  std::array<std::int32_t, kMaxChannels> entered_{};  // the net each channel came in by
  std::vector<std::vector<std::int32_t>> sharing_;    // nets of one port, per net
  std::vector<LocalEnds> net_gpus_;                   // nearest GPUs, per net
  std::vector<float> net_left_;                       // and per network device
  std::vector<std::int32_t> reverse_;  // links that carry a share of the traffic back; -1: none
};

}  // namespace railyard::algorithms::nccl
