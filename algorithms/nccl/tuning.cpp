#include "algorithms/nccl/tuning.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <limits>

#include "algorithms/shape.h"

namespace railyard::algorithms::nccl {
namespace {

constexpr std::int64_t kWarp = 32;
constexpr float kPciBandwidth = 12;  // below it the ring's Simple takes half the threads
constexpr std::int32_t kBatchCollectives = 8;

struct Model {
  const CommInfo& info;
  const TuningConstants& constants;
  const Environment& env;
  float per_node = 1;
  std::size_t row = 0;
  std::size_t column = 0;
};

// One cell of the table.
struct Cell {
  Function function;
  Algorithm algorithm;
  Protocol protocol;
  const GraphSummary& graph;
};

bool exists(const Model& model, const Cell& cell) {
  const bool simple = cell.protocol == Protocol::simple;
  const Algorithm a = cell.algorithm;
  if (cell.function == Function::broadcast || cell.function == Function::reduce)
    return a == Algorithm::ring;
  if (is_nvls(a) && (!simple || cell.graph.channels < 2)) return false;
  if (cell.function == Function::all_reduce) return a != Algorithm::pat;
  if (a == Algorithm::pat)
    return simple && pat_enabled(model.info, model.constants.rules, model.env);
  return a == Algorithm::ring || a == Algorithm::nvls || a == Algorithm::collnet_direct;
}

float nvls_minimum(const Model& model, const Cell& cell) {
  const GraphSummary& graph = cell.graph;
  if (cell.algorithm == Algorithm::nvls_tree)
    return std::min(graph.bw_intra, model.info.nodes <= 2 ? graph.bw_inter : graph.bw_inter / 2);
  const bool gathers = is_gather_or_scatter(cell.function);
  if (model.constants.rules.nvls == NvlsModel::share_of_gather && gathers)
    return std::min(graph.bw_intra * (model.per_node - 1.0F) / model.per_node,
                    graph.bw_inter * 0.9F);
  return std::min(graph.bw_intra, graph.bw_inter);
}

// Of one channel of the NVLS search. AllReduce pipelines two operations.
float nvls_bandwidth(const Model& model, const Cell& cell) {
  if (model.constants.rules.nvls != NvlsModel::efficiency) return nvls_minimum(model, cell);
  const GraphSummary& graph = cell.graph;
  const auto channels = static_cast<float>(graph.channels);
  float intra =
      graph.bw_intra * model.constants.nvls_efficiency[model.row] * (channels - 1) / channels;
  if (cell.function == Function::all_reduce)
    intra *= 2;
  else
    intra *= (model.per_node - 1) / model.per_node;
  const bool tree = cell.algorithm == Algorithm::nvls_tree;
  const float inter = graph.bw_inter * (model.info.nodes <= 2 && tree ? 2 : 1);
  const float cap = tree
                        ? static_cast<float>(model.constants.nvls_tree_cap[model.row][model.column])
                        : std::numeric_limits<float>::max();
  return std::min({intra, inter, cap});
}

float search_bandwidth(const Model& model, const Cell& cell) {
  float each = model.info.nodes <= 2 || is_collnet(cell.algorithm) ? cell.graph.bw_intra
                                                                   : cell.graph.bw_inter;
  if (is_nvls(cell.algorithm)) each = nvls_bandwidth(model, cell);
  return static_cast<float>(cell.graph.channels) * each;
}

// LL's cap depends on the GPUs on one node, else on who made the CPUs.
double ll_max(const Model& model) {
  const bool amd =
      model.info.cpu_vendor == CpuVendor::amd || model.info.cpu_vendor == CpuVendor::mixed;
  const std::size_t row = model.info.nodes == 1 ? model.row : amd ? kAmpere : kVolta;
  return model.constants.ll_max[row][model.column];
}

float ring_bandwidth(const Model& model, const Cell& cell, float bus) {
  const ModelRules& rules = model.constants.rules;
  if (cell.protocol == Protocol::ll) {
    double share = 0.5;
    if (rules.ring_ll_quarter) {
      const bool reduces =
          cell.function == Function::all_reduce || cell.function == Function::reduce;
      share = model.info.nodes > 1 || reduces ? 1.0 / 4.0 : 1.0 / 3.0;
    }
    return static_cast<float>(std::min(ll_max(model), bus * share));
  }
  if (cell.protocol != Protocol::ll128) return bus;
  const double share = rules.single_rank_discount && model.per_node < 2 ? 0.7 : 0.92;
  const double cap = model.constants.ring_ll128_cap[model.row][model.column];
  return static_cast<float>(std::min(bus * share, cell.graph.channels * cap));
}

float tree_bandwidth(const Model& model, const Cell& cell, float bus) {
  const TuningConstants& constants = model.constants;
  const double channels = cell.graph.channels;
  const double cap = constants.tree_cap[model.row][model.column];
  bus = static_cast<float>(std::min(bus * 0.92, channels * cap));
  if (cell.protocol == Protocol::ll)
    bus = static_cast<float>(std::min(bus * 1.0 / 3.8, ll_max(model)));
  if (cell.protocol == Protocol::ll128) {
    const double share = model.info.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0;
    const double cap128 = constants.tree_ll128_cap[model.row][model.column];
    bus = static_cast<float>(std::min(bus * share, channels * cap128));
  }
  if (model.info.max_tree_pattern == sim::GraphPattern::tree) bus = static_cast<float>(bus * 0.85);
  return bus;
}

float direct_bandwidth(const Model& model, const Cell& cell, float bus) {
  const GraphSummary& graph = cell.graph;
  if (is_gather_or_scatter(cell.function)) {
    if (!model.constants.rules.collnet_interpolates)
      return model.per_node * std::min(graph.bw_intra, graph.bw_inter * 0.9F);
    const float weight = (model.per_node - 1) / (8 - 1);
    return static_cast<float>(model.per_node * graph.bw_intra *
                              (weight * 0.85 + (1 - weight) * 0.95));
  }
  auto ranks_per_nic = static_cast<float>(model.per_node / (1.0 * graph.channels));
  ranks_per_nic -= (ranks_per_nic - 1) / 2;
  bus /= ranks_per_nic;
  return model.info.min_capability >= 90 ? static_cast<float>(bus * 0.85) : bus;
}

// AllGather and ReduceScatter between nodes by NVLS or CollNetDirect need the plugin's operation
// and a NIC for every GPU.
bool gathers_in_network(const Model& model, const Cell& cell) {
  if (model.info.nodes == 1 || !is_gather_or_scatter(cell.function)) return true;
  if (cell.algorithm != Algorithm::nvls && cell.algorithm != Algorithm::collnet_direct) return true;
  const CollNetPlugin& plugin = model.info.collnet_plugin;
  const bool offered =
      cell.function == Function::all_gather ? plugin.all_gather : plugin.reduce_scatter;
  return offered && model.info.collnet && model.info.max_local_ranks <= model.info.collnet_heads;
}

std::int32_t ring_steps(const CommInfo& info, Function function) {
  if (function == Function::all_reduce) return 2 * (info.ranks - 1);
  return is_gather_or_scatter(function) ? info.ranks - 1 : info.ranks;
}

float bandwidth_of(const Model& model, const Cell& cell) {
  const Algorithm a = cell.algorithm;
  if (is_collnet(a) && (cell.protocol != Protocol::simple || cell.graph.channels == 0)) return 0;
  if (!gathers_in_network(model, cell)) return 0;
  float bus = search_bandwidth(model, cell);
  if (a == Algorithm::ring) bus = ring_bandwidth(model, cell, bus);
  if (a == Algorithm::tree) bus = tree_bandwidth(model, cell, bus);
  if (a == Algorithm::pat) bus = static_cast<float>(bus * 0.75);
  if (a == Algorithm::collnet_direct) bus = direct_bandwidth(model, cell, bus);
  if (a != Algorithm::ring && is_gather_or_scatter(cell.function)) return bus;
  float ratio = 0.5F;
  const bool counts_steps =
      a == Algorithm::ring || (is_nvls(a) && model.constants.rules.nvls == NvlsModel::efficiency);
  if (counts_steps)
    ratio = static_cast<float>((1.0 * model.info.ranks) / ring_steps(model.info, cell.function));
  else if (is_nvls(a))
    ratio = static_cast<float>(5.0 / 6.0);
  return bus * ratio;
}

float message_overhead(const Model& model, Protocol protocol) {
  if (model.info.nodes == 1) return 0;
  const std::int64_t asked = model.env.integer("NCCL_NET_OVERHEAD", -2);
  const bool amd = model.info.cpu_arch == CpuArch::x86 && model.info.cpu_vendor == CpuVendor::amd;
  float overhead = amd ? 2.0F : 1.0F;
  if (asked != -2) overhead = static_cast<float>(static_cast<double>(asked) * 0.001);
  return protocol == Protocol::simple ? overhead * 3 : overhead;
}

struct Hops {
  float intra = 0;
  float inter = 0;
  float whole = 0;  // of an algorithm that counts all hops alike
};

Hops hops_of(const Model& model, const Cell& cell) {
  const auto& table = model.constants.hop_latency;
  const std::size_t a = index_of(cell.algorithm);
  const std::size_t p = index_of(cell.protocol);
  const std::size_t inside = cell.graph.type_intra == sim::PathType::nvl ? kHopNvlink : kHopPci;
  const std::size_t widest = model.info.nodes == 1 ? inside : kHopNet;
  const bool exposed = model.constants.rules.single_rank_tree_hop && model.per_node == 1;
  Hops hops;
  hops.intra = table[inside][a][p];
  hops.inter = table[kHopNet][exposed ? index_of(Algorithm::tree) : a][p];
  hops.inter += cell.graph.latency_inter;
  if (cell.protocol == Protocol::simple) hops.inter += cell.graph.latency_inter;  // the flush
  // A chain of chunks: the tree's hop stands for the time of a chunk.
  const bool chain = !cell.graph.same_channels && cell.protocol == Protocol::simple;
  hops.whole = table[widest][chain ? index_of(Algorithm::tree) : a][p];
  return hops;
}

float ring_latency(const Model& model, const Cell& cell, const Hops& hops) {
  const std::int32_t steps = ring_steps(model.info, cell.function);
  if (cell.function == Function::broadcast || cell.function == Function::reduce)
    return cell.graph.same_channels ? hops.whole : static_cast<float>(steps) * hops.whole;
  const float intra = std::max(hops.intra, message_overhead(model, cell.protocol));
  const std::int32_t nodes = model.info.nodes;
  std::int32_t between = nodes == 1 ? 0 : nodes - 1;
  if (cell.function == Function::all_reduce)
    between = model.constants.rules.ring_closes_over_net && nodes > 1 ? 2 * nodes : 2 * between;
  return static_cast<float>(steps - between) * intra + static_cast<float>(between) * hops.inter;
}

// What the algorithm adds to its base; NVLS alone replaces it.
double added_latency(const Model& model, const Cell& cell, const Hops& hops) {
  const auto others = static_cast<float>(model.info.ranks / model.info.nodes - 1);
  const auto levels = static_cast<float>(log2_floor(static_cast<std::uint32_t>(model.info.nodes)));
  switch (cell.algorithm) {
    case Algorithm::ring: return ring_latency(model, cell, hops);
    case Algorithm::tree: return 2 * (others * hops.intra + levels * hops.inter);
    case Algorithm::collnet_direct:  // 0.4 per peer: they are served one after the other
      return 2 * (std::min(1.0F, others) * hops.intra + others * 0.4) + hops.inter;
    case Algorithm::collnet_chain: return 2 * others * hops.intra + hops.inter;
    case Algorithm::nvls: return hops.intra;
    case Algorithm::nvls_tree: return hops.intra + 2 * levels * hops.inter;
    case Algorithm::pat: break;
  }
  return levels * (hops.inter / 3.5) + model.info.ranks * 2.8;
}

float latency_of(const Model& model, const Cell& cell) {
  const Hops hops = hops_of(model, cell);
  float latency = model.constants.base_latency[index_of(cell.algorithm)][index_of(cell.protocol)];
  const double added = added_latency(model, cell, hops);
  if (cell.algorithm != Algorithm::nvls) return static_cast<float>(latency + added);
  if (!model.constants.rules.nvls_keeps_base) latency = 0;
  latency += hops.intra;
  if (model.info.nodes > 1) latency += hops.inter;
  return latency;
}

// NCCL takes the maximum for what is no multiple of a warp or above it, the minimum below.
std::int32_t threads_asked(const Environment& env, std::string_view name, std::int64_t most,
                           std::int64_t fallback) {
  const std::int64_t least = name == "NCCL_NTHREADS" ? 2 * kWarp : most / 4;
  const std::int64_t asked = env.integer(name, -2);
  if (asked <= 0) return static_cast<std::int32_t>(fallback);
  if (asked % kWarp != 0) return static_cast<std::int32_t>(most);
  return static_cast<std::int32_t>(std::clamp(asked, least, most));
}

void set_threads(const CommInfo& info, const Environment& env, Tuning& tuning) {
  constexpr std::size_t simple = index_of(Protocol::simple);
  const float ring = info.ring.bw_intra * static_cast<float>(info.ring.channels);
  auto& threads = tuning.max_threads;
  for (const Algorithm a : {Algorithm::ring, Algorithm::tree}) {
    const bool slow = a == Algorithm::ring && ring <= kPciBandwidth;
    threads[index_of(a)] = {threads_asked(env, "NCCL_NTHREADS", 512, 512),
                            threads_asked(env, "NCCL_LL128_NTHREADS", 640, 640),
                            threads_asked(env, "NCCL_NTHREADS", 512, slow ? 256 : 512)};
  }
  for (const Algorithm a :
       {Algorithm::collnet_direct, Algorithm::collnet_chain, Algorithm::nvls, Algorithm::nvls_tree})
    threads[index_of(a)][simple] = 640;
}

void set_thresholds(const CommInfo& info, const Environment& env, Tuning& tuning) {
  auto& thresholds = tuning.thread_thresholds;
  thresholds.fill({8, 8, 64});
  thresholds[index_of(Algorithm::ring)][index_of(Protocol::ll)] *= info.ranks;
  thresholds[index_of(Algorithm::collnet_direct)][index_of(Protocol::simple)] = 512;
  thresholds[index_of(Algorithm::collnet_chain)][index_of(Protocol::simple)] = 512;
  const std::optional<std::string> text = env.text("NCCL_THREAD_THRESHOLDS");
  if (!text) return;
  const char* at = text->c_str();
  for (const Algorithm a : {Algorithm::tree, Algorithm::ring})
    for (std::int64_t& threshold : thresholds[index_of(a)]) {
      char* end = nullptr;
      const long long value = std::strtoll(at, &end, 10);
      if (end == at) return;
      if (value >= 0) threshold = value;
      at = end;
    }
}

}  // namespace

Tuning tune(const CommInfo& info, const TuningInputs& inputs, const Environment& env) {
  Tuning tuning;
  tuning.constants = inputs.constants;
  set_threads(info, env, tuning);
  set_thresholds(info, env, tuning);
  if (info.ranks <= 1) return tuning;
  if (info.cpu_arch == CpuArch::power) {  // favours trees there
    auto& pci = tuning.constants.hop_latency[kHopPci];
    constexpr std::size_t simple = index_of(Protocol::simple);
    pci[index_of(Algorithm::tree)][simple] = pci[index_of(Algorithm::ring)][simple];
  }
  const Model model{info,
                    tuning.constants,
                    env,
                    static_cast<float>(info.ranks) / static_cast<float>(info.nodes),
                    architecture_row(info.min_capability),
                    scale_column(static_cast<std::size_t>(info.nodes))};
  for (const Function f : kAllFunctions)
    for (const Algorithm a : kAllAlgorithms)
      for (const Protocol p : kAllProtocols) {
        const Cell cell{f, a, p, info.graph(a)};
        if (!exists(model, cell)) continue;
        tuning.bandwidth[index_of(f)][index_of(a)][index_of(p)] = bandwidth_of(model, cell);
        tuning.latency[index_of(f)][index_of(a)][index_of(p)] = latency_of(model, cell);
      }
  apply_rules(info, tuning.constants.rules, inputs.lists, env, tuning.bandwidth);
  return tuning;
}

float model_time(const CommInfo& info, const Tuning& tuning, const CostQuestion& question) {
  const std::size_t f = index_of(question.function);
  const std::size_t a = index_of(question.algorithm);
  const std::size_t p = index_of(question.protocol);
  float bandwidth = tuning.bandwidth[f][a][p];
  float latency = tuning.latency[f][a][p];
  if (bandwidth == 0) return -1;
  const ModelRules& rules = tuning.constants.rules;
  const bool all_reduce = question.function == Function::all_reduce;
  const std::uint64_t units = question.bytes >> 6;
  const std::int32_t size = static_cast<std::int32_t>(std::bit_width(units)) - 1;
  const auto correct = [&](std::int32_t sizes) {
    if (all_reduce && size >= 0 && size < sizes)
      bandwidth *= tuning.constants.tree_correction[p][static_cast<std::size_t>(size)];
  };
  if (question.algorithm == Algorithm::tree) correct(rules.correction_sizes);
  if (question.algorithm == Algorithm::nvls_tree && rules.nvls_tree_correction &&
      info.min_capability >= 100 && info.cpu_arch == CpuArch::x86)
    correct(static_cast<std::int32_t>(kCorrections));
  const bool ring = question.algorithm == Algorithm::ring;
  const auto lanes =
      static_cast<std::uint64_t>(info.channels) * static_cast<std::uint64_t>(info.ranks);
  if (ring && question.protocol == Protocol::simple && info.nodes > 1 && all_reduce &&
      question.bytes / lanes >= 64)  // the ring's plateau
    latency = static_cast<float>(latency * (info.min_capability < 80 ? 1.9 : 1.4));
  const std::int64_t times =
      ring ? question.pipe_ops : div_up(question.pipe_ops, kBatchCollectives);
  return latency * static_cast<float>(times) +
         static_cast<float>(question.bytes) / (1000 * bandwidth);
}

}  // namespace railyard::algorithms::nccl
