#include "algorithms/nccl/constants.h"

#include <fmt/format.h>

namespace railyard::algorithms::nccl {
namespace {

constexpr PerAlgorithm<float> kBase{{{6.8F, 14.0F, 8.4F},  // tree
                                     {6.6F, 14.0F, 8.4F},  // ring
                                     {0, 0, 0},
                                     {0, 0, 0},
                                     {0, 0, 0},
                                     {0, 0, 0},
                                     {8, 8, 8}}};
constexpr std::array<PerAlgorithm<float>, 3> kHops{{{{{0.6F, 1.25F, 4.0F},
                                                      {0.6F, 1.9F, 3.4F},
                                                      {0, 0, 3.7F},
                                                      {0, 0, 2.8F},
                                                      {0, 0, 25},
                                                      {0, 0, 25},
                                                      {0, 0, 4.0F}}},
                                                    {{{1.0F, 1.9F, 4.0F},
                                                      {1.0F, 2.5F, 5.7F},
                                                      {0, 0, 3.7F},
                                                      {0, 0, 2.8F},
                                                      {0, 0, 0},
                                                      {0, 0, 0},
                                                      {0, 0, 4.0F}}},
                                                    {{{5.0F, 8.5F, 14},
                                                      {2.7F, 4.0F, 14},
                                                      {0, 0, 31},
                                                      {0, 0, 30},
                                                      {0, 0, 18},
                                                      {0, 0, 20.9F},
                                                      {0, 0, 14}}}}};

constexpr std::array<std::array<float, kCorrections>, kProtocols> kTreeCurve{
    {{1,    1,    1,    1,    0.9F, 0.8F, 0.7F, 0.7F, 0.7F, 0.7F, 0.6F, 0.5F,
      0.4F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F, 0.9F, 1,    1,    1,    1,    1},
     {1,    1,    1,    1,    1,    0.9F, 0.8F, 0.8F, 0.8F, 0.7F, 0.6F, 0.6F,
      0.6F, 0.6F, 0.6F, 0.6F, 0.8F, 0.9F, 0.9F, 0.9F, 0.9F, 1,    1,    1},
     {0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.8F, 0.7F, 0.6F, 0.6F, 0.5F,
      0.5F, 0.5F, 0.5F, 0.6F, 0.7F, 0.8F, 0.7F, 0.7F, 0.8F, 0.9F, 0.9F, 0.9F}}};

constexpr TuningConstants kV2303{
    .since = {2, 30, 3},
    .base_latency = kBase,
    .hop_latency = kHops,
    .ll_max = {{{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141, 45, 35}, {282, 90, 70}}},
    .ring_ll128_cap = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}}},
    .tree_ll128_cap = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20}}},
    .tree_cap = {{{26.5, 18.5, 10}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70, 42.8, 24}}},
    .nvls_tree_cap = {{{26.5, 18.5, 10}, {24.0, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}}},
    .nvls_efficiency = {0, 0, 0.85F, 0.74F},
    .tree_correction = kTreeCurve,
    .rules = {}};

// Every older entry is the next newer one with what was different.
constexpr TuningConstants v2_29_7() {
  TuningConstants c = kV2303;
  c.since = {2, 29, 7};
  c.nvls_tree_cap[kBlackwell][2] = 43.8;
  c.rules.nvls_tree_correction = false;
  return c;
}
constexpr TuningConstants v2_29_2() {
  TuningConstants c = v2_29_7();
  c.since = {2, 29, 2};
  c.ring_ll128_cap[kBlackwell] = {34.5, 34.6, 34.5};
  return c;
}
constexpr TuningConstants v2_28_9() {
  TuningConstants c = v2_29_2();
  c.since = {2, 28, 9};
  c.ring_ll128_cap[kBlackwell] = {73.4, 34.6, 73.4};
  return c;
}
constexpr TuningConstants v2_28_7() {
  TuningConstants c = v2_28_9();
  c.since = {2, 28, 7};
  c.nvls_tree_cap[kBlackwell][2] = 43.1;
  c.hop_latency[kHopNet][index_of(Algorithm::nvls_tree)][index_of(Protocol::simple)] = 14;
  return c;
}
constexpr TuningConstants v2_28_3() {
  TuningConstants c = v2_28_7();
  c.since = {2, 28, 3};
  c.ring_ll128_cap[kBlackwell] = {73.4, 73.4, 73.4};
  return c;
}
constexpr TuningConstants v2_27_3() {
  TuningConstants c = v2_28_3();
  c.since = {2, 27, 3};
  c.tree_ll128_cap[kBlackwell] = {73.4, 73.4, 58.0};
  c.tree_cap[kBlackwell] = {77.4, 82.8, 72.0};
  for (PerAlgorithm<float>& hops : c.hop_latency) hops[index_of(Algorithm::pat)] = {};
  c.rules.nvls = NvlsModel::share_of_gather;
  return c;
}
constexpr TuningConstants v2_26_2() {
  TuningConstants c = v2_27_3();
  c.since = {2, 26, 2};
  c.rules.ll128_over_c2c = false;
  c.rules.nvls = NvlsModel::minimum;
  c.rules.collnet_interpolates = true;
  c.rules.pat_min_capability = 0;
  return c;
}
constexpr TuningConstants v2_24_3() {
  TuningConstants c = v2_26_2();
  c.since = {2, 24, 3};
  for (Caps* caps : {&c.ll_max, &c.ring_ll128_cap, &c.tree_ll128_cap, &c.tree_cap})
    (*caps)[kBlackwell] = (*caps)[kHopper];  // newer GPUs counted as Hopper
  return c;
}
constexpr TuningConstants v2_23_4() {
  TuningConstants c = v2_24_3();
  c.since = {2, 23, 4};
  c.rules.ring_fallback = true;
  return c;
}
constexpr TuningConstants v2_21_5() {
  TuningConstants c = v2_23_4();
  c.since = {2, 21, 5};
  c.base_latency[index_of(Algorithm::tree)][index_of(Protocol::simple)] = 0;
  for (PerAlgorithm<float>& hops : c.hop_latency)
    hops[index_of(Algorithm::tree)][index_of(Protocol::simple)] = 28;
  c.rules.pat = false;
  c.rules.single_rank_discount = true;
  c.rules.single_rank_tree_hop = false;
  c.rules.ring_closes_over_net = true;
  return c;
}
constexpr TuningConstants v2_19_3() {
  TuningConstants c = v2_21_5();
  c.since = {2, 19, 3};
  c.ll_max[kHopper] = c.ll_max[kAmpere];
  c.ll_max[kBlackwell] = c.ll_max[kAmpere];
  for (const Algorithm a : {Algorithm::nvls, Algorithm::nvls_tree})
    c.hop_latency[kHopNvlink][index_of(a)][index_of(Protocol::simple)] = 23;
  c.rules.ring_ll_quarter = true;
  return c;
}
constexpr TuningConstants v2_18_3() {
  TuningConstants c = v2_19_3();
  c.since = {2, 18, 3};
  constexpr std::size_t simple = index_of(Protocol::simple);
  const auto hop = [&](std::size_t kind, Algorithm a) -> float& {
    return c.hop_latency[kind][index_of(a)][simple];
  };
  hop(kHopNvlink, Algorithm::tree) = 4;
  hop(kHopPci, Algorithm::tree) = 6;
  hop(kHopNet, Algorithm::tree) = 14;
  c.base_latency[index_of(Algorithm::collnet_direct)] = {6.8F, 14.0F, 0};
  c.base_latency[index_of(Algorithm::collnet_chain)] = {6.8F, 14.0F, 0};
  hop(kHopNvlink, Algorithm::collnet_direct) = 8;
  hop(kHopPci, Algorithm::collnet_direct) = 8;
  hop(kHopNet, Algorithm::collnet_direct) = 10.7F;
  hop(kHopNvlink, Algorithm::collnet_chain) = 4.75F;
  hop(kHopPci, Algorithm::collnet_chain) = 8;
  hop(kHopNet, Algorithm::collnet_chain) = 14;
  for (const Algorithm a : {Algorithm::nvls, Algorithm::nvls_tree}) {
    c.base_latency[index_of(a)][simple] = 23;
    hop(kHopNvlink, a) = 0;
  }
  c.rules.nvls_keeps_base = true;
  hop(kHopNet, Algorithm::nvls_tree) = 19;
  return c;
}

constexpr std::array kVersions{v2_18_3(), v2_19_3(), v2_21_5(), v2_23_4(), v2_24_3(),
                               v2_26_2(), v2_27_3(), v2_28_3(), v2_28_7(), v2_28_9(),
                               v2_29_2(), v2_29_7(), kV2303};

}  // namespace

std::span<const TuningConstants> all_constants() { return kVersions; }

ConstantsChoice constants_for(Version version) {
  ConstantsChoice choice{&kVersions.front(), {}};
  for (const TuningConstants& entry : kVersions)
    if (entry.since <= version) choice.constants = &entry;
  if (version < kVersions.front().since || version > kNewestVersion)
    choice.note = fmt::format(
        "NCCL {} is outside the table ({} to {}): its constants are taken to be those of {}",
        to_text(version), to_text(kVersions.front().since), to_text(kNewestVersion),
        to_text(version > kNewestVersion ? kNewestVersion : choice.constants->since));
  return choice;
}

namespace {

constexpr Version kFewerForManyRanks{2, 20, 0};
constexpr Version kSplitKnown{2, 27, 0};
constexpr Version kNewerLaunch{2, 29, 0};

}  // namespace

LaunchRules launch_rules(Version version) {
  LaunchRules rules;
  if (version >= kNewerLaunch) return rules;
  rules.peer_channels = version < kFewerForManyRanks ? PeerChannels::two : PeerChannels::by_ranks;
  rules.split = {.min_traffic = 16'384, .rounds_up = false};
  return rules;
}

std::string describe_launch_rules(Version version) {
  if (version >= kVersions.back().since) return {};
  std::string own = "the cost table";
  if (version < kNewerLaunch)
    own += version < kSplitKnown ? " and the channels per peer of sends and receives"
                                 : ", the channels per peer of sends and receives and the split of "
                                   "a call over channels";
  return fmt::format(
      "NCCL {}: {} {} that version's{}; other channel counts, threads and chunks are "
      "those of {}",
      to_text(version), own, version < kNewerLaunch ? "are" : "is",
      version < kSplitKnown ? ", the split of a call over channels is 2.27's" : "",
      to_text(kNewestVersion));
}

}  // namespace railyard::algorithms::nccl
