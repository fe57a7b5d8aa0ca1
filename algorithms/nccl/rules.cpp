#include "algorithms/nccl/rules.h"

#include <fmt/format.h>

#include <optional>

#include "sim/text.h"

namespace railyard::algorithms::nccl {
namespace {

// The fields of `text`; empty ones do not count.
std::vector<std::string_view> split_fields(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) fields.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return fields;
}

template <sim::TabledEnum E>
std::optional<std::size_t> find_name(std::string_view name, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (sim::equal_ignoring_case(sim::EnumTable<E>::entries[i].name, name)) return i;
  return std::nullopt;
}

template <sim::TabledEnum E>
std::string names_of(std::size_t count) {
  std::string names;
  for (std::size_t i = 0; i < count; ++i)
    names += (i == 0 ? "" : ", ") + std::string(sim::EnumTable<E>::entries[i].name);
  return names;
}

template <std::size_t N>
using ByFunction = std::array<std::array<Enabled, N>, kFunctions>;

template <sim::TabledEnum E, std::size_t N>
sim::Result<std::array<Enabled, N>> parse_names(std::string_view list, const std::string& where) {
  const bool all_but = list.starts_with('^');
  if (all_but) list.remove_prefix(1);
  std::array<Enabled, N> enabled{};
  enabled.fill(all_but ? Enabled::yes : Enabled::no);
  for (const std::string_view name : split_fields(list, ',')) {
    const std::optional<std::size_t> found = find_name<E>(name, N);
    if (!found)
      return sim::bad_input(fmt::format("unknown {} '{}' (one of: {})", sim::EnumTable<E>::kind,
                                        name, names_of<E>(N)),
                            where);
    enabled[*found] = all_but ? Enabled::no : Enabled::yes;
  }
  return enabled;
}

template <sim::TabledEnum E, std::size_t N>
sim::Result<void> parse_variable(const Environment& env, const std::string& variable,
                                 ByFunction<N>& lists) {
  const std::optional<std::string> text = env.text(variable);
  if (!text) return {};
  bool first = !text->starts_with(';');
  for (const std::string_view entry : split_fields(*text, ';')) {
    const std::vector<std::string_view> fields = split_fields(entry, ':');
    if (fields.empty() || (fields.size() == 1 && !first))
      return sim::bad_input(
          fmt::format("'{}': all entries but the first need a function, as in allreduce:ring",
                      entry),
          variable);
    RAILYARD_ASSIGN(const auto enabled, (parse_names<E, N>(fields[fields.size() > 1], variable)));
    if (fields.size() == 1) {
      lists.fill(enabled);
    } else {
      const std::optional<std::size_t> function = find_name<Function>(fields[0], kFunctions);
      if (!function)
        return sim::bad_input(fmt::format("unknown function '{}' (one of: {})", fields[0],
                                          names_of<Function>(kFunctions)),
                              variable);
      lists[*function] = enabled;
    }
    first = false;
  }
  return {};
}

// LL128 needs stores of 128 bytes that arrive whole: known for NVLink and for NICs near the GPU.
bool ll128_is_safe(const CommInfo& info, const ModelRules& rules, const GraphSummary& graph,
                   const Environment& env) {
  const bool over_c2c =
      rules.ll128_over_c2c && env.integer("NCCL_LL128_C2C", 1) != 0 && info.min_capability >= 90;
  const sim::PathType farthest = over_c2c ? sim::PathType::pxn : sim::PathType::pxb;
  return graph.type_inter <= farthest && graph.type_intra <= sim::PathType::nvb &&
         (info.min_capability == info.max_capability || info.min_capability >= 90) &&
         info.min_capability >= 70;
}

bool algorithm_exists(const CommInfo& info, Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::nvls_tree: return info.nodes > 1;
    case Algorithm::nvls: return info.nodes == 1 || info.collnet;
    case Algorithm::collnet_direct: return info.collnet && info.nvswitches > 0;
    case Algorithm::collnet_chain: return info.collnet && info.collnet_chain_support;
    case Algorithm::tree:
    case Algorithm::ring:
    case Algorithm::pat: break;
  }
  return true;
}

void fall_back_to_ring(const PerAlgorithm<float>& before, PerAlgorithm<float>& after) {
  for (const auto& row : after)
    for (const float bandwidth : row)
      if (bandwidth != 0) return;
  after[index_of(Algorithm::ring)] = before[index_of(Algorithm::ring)];
}

}  // namespace

sim::Result<Lists> parse_lists(const Environment& env) {
  Lists lists;
  for (auto& algorithms : lists.algorithms) algorithms.fill(Enabled::yes);
  for (auto& protocols : lists.protocols)
    protocols = {Enabled::yes, Enabled::where_safe, Enabled::yes};
  RAILYARD_TRY((parse_variable<Protocol, kProtocols>(env, "NCCL_PROTO", lists.protocols)));
  RAILYARD_TRY((parse_variable<Algorithm, kAlgorithms>(env, "NCCL_ALGO", lists.algorithms)));
  return lists;
}

bool pat_enabled(const CommInfo& info, const ModelRules& rules, const Environment& env) {
  if (!rules.pat || info.min_capability < rules.pat_min_capability) return false;
  const std::int64_t asked = env.integer("NCCL_PAT_ENABLE", 2);
  if (asked != 2) return asked != 0;
  return info.nodes == info.ranks && info.host_network;
}

void apply_rules(const CommInfo& info, const ModelRules& rules, const Lists& lists,
                 const Environment& env, PerFunction<float>& bandwidth) {
  const auto usable = [&](std::size_t f, Algorithm a, std::size_t p) {
    if (!algorithm_exists(info, a) || lists.algorithms[f][index_of(a)] == Enabled::no) return false;
    const Enabled protocol = lists.protocols[f][p];
    if (protocol == Enabled::where_safe) return ll128_is_safe(info, rules, info.graph(a), env);
    return protocol == Enabled::yes;
  };
  const PerFunction<float> before = bandwidth;
  for (std::size_t f = 0; f < kFunctions; ++f)
    for (const Algorithm a : kAllAlgorithms)
      for (std::size_t p = 0; p < kProtocols; ++p)
        bandwidth[f][index_of(a)][p] *= usable(f, a, p) ? 1.0F : 0.0F;
  for (std::size_t f = 0; f < kFunctions && rules.ring_fallback; ++f)
    fall_back_to_ring(before[f], bandwidth[f]);
}

}  // namespace railyard::algorithms::nccl
