// The numbers and switches of NCCL's cost model, by version: base and hop latencies (microseconds),
// bandwidth caps (GB/s = 1e9 B/s), the correction of the tree's curve, and which of several
// formulas a version used. A version between two entries has the earlier one's values; one outside
// the table takes the nearest entry and the choice says so.
//
// Source: NCCL's src/graph/tuning.cc at the versions named (read at 2.20, 2.26, 2.27 and 2.30.7;
// the others from the differences recorded between tags).
//
// Example: constants_for({2, 29, 7}).constants->nvls_tree_cap[kBlackwell][2] == 43.8
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "algorithms/nccl/names.h"
#include "algorithms/split.h"

namespace railyard::algorithms::nccl {

// Rows of the caps: architecture of the lowest compute capability. Columns: 1, 2, more nodes.
inline constexpr std::size_t kVolta = 0;
inline constexpr std::size_t kAmpere = 1;
inline constexpr std::size_t kHopper = 2;
inline constexpr std::size_t kBlackwell = 3;
inline constexpr std::size_t kArchitectures = 4;
inline constexpr std::size_t kScales = 3;
using Caps = std::array<std::array<double, kScales>, kArchitectures>;

constexpr std::size_t architecture_row(std::int32_t compute_capability) {
  if (compute_capability >= 100) return kBlackwell;
  if (compute_capability >= 90) return kHopper;
  return compute_capability >= 80 ? kAmpere : kVolta;
}
constexpr std::size_t scale_column(std::size_t nodes) { return nodes <= 2 ? nodes - 1 : 2; }

// What a hop crosses.
inline constexpr std::size_t kHopNvlink = 0;
inline constexpr std::size_t kHopPci = 1;
inline constexpr std::size_t kHopNet = 2;

inline constexpr std::size_t kCorrections = 24;

// Formulas that changed.
enum class NvlsModel {
  minimum,          // min(intra, inter), 5/6 of it
  share_of_gather,  // 2.27: AllGather and ReduceScatter take (r-1)/r of intra, 0.9 of inter
  efficiency,       // 2.28: factor per architecture, channels - 1 of channels, a cap for NVLSTree
};
struct ModelRules {
  NvlsModel nvls = NvlsModel::efficiency;
  bool pat = true;                       // there is PAT
  std::int32_t pat_min_capability = 60;  // 0: not asked
  bool ring_ll_quarter = false;          // Ring LL 1/4 of the bus (1/3 in places), now 1/2
  bool single_rank_discount = false;     // Ring LL128 0.70 with one rank per node, now 0.92
  bool single_rank_tree_hop = true;      // one rank per node: everyone has the tree's NET hop
  bool ring_closes_over_net = false;     // AllReduce ring: 2N network steps, now 2(N - 1)
  bool collnet_interpolates = false;     // CollNetDirect AllGather: 0.95..0.85 by ranks per node
  bool nvls_keeps_base = false;          // NVLS latency: base + hop, now the hop alone
  bool ring_fallback = false;            // nothing enabled for a function: the ring after all
  bool ll128_over_c2c = true;            // LL128 to NICs over NVLink-C2C or PXN, from Hopper on
  bool nvls_tree_correction = true;      // on Blackwell and x86 NVLSTree has the tree's curve
  std::int32_t correction_sizes = 23;    // entries of the correction that Tree uses
};

struct TuningConstants {
  Version since;
  PerAlgorithm<float> base_latency{};
  std::array<PerAlgorithm<float>, 3> hop_latency{};  // [hop]
  Caps ll_max{};
  Caps ring_ll128_cap{};
  Caps tree_ll128_cap{};
  Caps tree_cap{};
  Caps nvls_tree_cap{};
  std::array<float, kArchitectures> nvls_efficiency{};
  std::array<std::array<float, kCorrections>, kProtocols> tree_correction{};
  ModelRules rules;
};

// Oldest first.
std::span<const TuningConstants> all_constants();

struct ConstantsChoice {
  const TuningConstants* constants = nullptr;  // static
  std::string note;                            // empty, or why it is not exactly this version
};
ConstantsChoice constants_for(Version version);

// Rules outside the cost model that changed. What is not here is 2.30.7's for every version.
//
// Sources. Channels per peer: a log of 2.19.3 on 2 x 8 H100 (2, by the newer rule 4);
// NVIDIA/nccl#1272 (from 2.20 on fewer on 32 ranks); meta-pytorch/torchcomms#1433
// (NCCL_P2P_PER_CHANNEL_NET_BW is new in 2.29). Split: meta-pytorch/torchcomms#1071 (the traffic
// per channel of 2.27 and 2.28 is not 2.29's); before 2.27 it is taken to be 2.27's.
enum class PeerChannels {
  two,       // before 2.20: two on the network
  by_ranks,  // two, one where 2 x ranks exceed 4 x the channels; not below the NICs that are fed
  by_bandwidth,  // 2.29: one for every 14 GB/s of the NICs, fewer where there are many peers
};
struct LaunchRules {
  PeerChannels peer_channels = PeerChannels::by_bandwidth;
  SplitRule split;
};
LaunchRules launch_rules(Version version);
// What of a plan for this version is another version's; empty where nothing is.
std::string describe_launch_rules(Version version);

}  // namespace railyard::algorithms::nccl
