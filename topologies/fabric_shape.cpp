#include "topologies/fabric_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace railyard::topologies {
namespace {

using sim::bad_input;
using sim::Result;

constexpr std::uint32_t kMaxCount = 1'000'000;  // of any single field; products then fit 64 bits

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

double ratio(sim::Bandwidth a, std::uint64_t times_a, sim::Bandwidth b, std::uint64_t times_b) {
  return static_cast<double>(a.raw()) * static_cast<double>(times_a) /
         (static_cast<double>(b.raw()) * static_cast<double>(times_b));
}

Result<void> check_counts(const FabricSpec& spec) {
  const std::array fields{std::pair{"rails", spec.rails},
                          std::pair{"hosts_per_leaf", spec.hosts_per_leaf},
                          std::pair{"spines", spec.spines},
                          std::pair{"hosts_per_pod", spec.hosts_per_pod},
                          std::pair{"cores_per_spine", spec.cores_per_spine},
                          std::pair{"leaves_per_group", spec.leaves_per_group},
                          std::pair{"switch_ports", spec.switch_ports}};
  for (const auto& [name, value] : fields)
    if (value > kMaxCount)
      return bad_input(
          fmt::format("fabric.{} is {}; at most {} is supported", name, value, kMaxCount));
  const std::array cables{std::pair{"trunks", spec.trunks},
                          std::pair{"core_trunks", spec.core_trunks},
                          std::pair{"global_links", spec.global_links}};
  for (const auto& [name, value] : cables)
    if (value > 0xffff)
      return bad_input(
          fmt::format("fabric.{} is {}; at most {} is supported", name, value, 0xffff));
  if (spec.hosts_per_leaf == 0) return bad_input("fabric.hosts_per_leaf is 0");
  if (spec.trunks == 0) return bad_input("fabric.trunks is 0: leaves and spines are not connected");
  if (spec.core_trunks == 0)
    return bad_input("fabric.core_trunks is 0: spines and cores are not connected");
  return {};
}

// Next-level switches that one switch needs for an oversubscription; see the error for the terms.
struct UpLinks {
  const char* what;   // "leaf" or "spine"
  const char* field;  // "spines" or "cores_per_spine"
  const char* oversubscription_field;
  std::uint64_t down_ports;
  sim::Bandwidth down_rate;
  sim::Bandwidth up_rate;
  std::uint64_t trunks;
};

Result<std::uint64_t> resolve_up(const UpLinks& up, std::uint32_t given,
                                 std::optional<double> oversubscription) {
  const double one_to_one = ratio(up.down_rate, up.down_ports, up.up_rate, up.trunks);
  if (oversubscription && !(*oversubscription > 0 && std::isfinite(*oversubscription)))
    return bad_input(fmt::format("fabric.{} is {}; it must be positive", up.oversubscription_field,
                                 *oversubscription));
  if (given > 0) {
    const double actual = one_to_one / given;
    if (oversubscription && std::abs(actual / *oversubscription - 1) > 1e-6)
      return bad_input(fmt::format(
          "fabric.{0} = {1} gives {2:.4g}:1 at a {3}, but fabric.{4} is {5:.4g}; state one of them",
          up.field, given, actual, up.what, up.oversubscription_field, *oversubscription));
    return std::uint64_t{given};
  }
  const double wanted = one_to_one / oversubscription.value_or(1.0);
  const double rounded = std::round(wanted);
  if (rounded < 1 || rounded > kMaxCount || std::abs(wanted - rounded) > 1e-6 * rounded)
    return bad_input(fmt::format(
        "fabric.{0} {1:.4g} does not divide: a {2} with {3} ports of {4} needs {5:.4g} switches "
        "above it ({6} cable(s) of {7} to each); set fabric.{8} or the number of cables",
        up.oversubscription_field, oversubscription.value_or(1.0), up.what, up.down_ports,
        sim::to_text(up.down_rate), wanted, up.trunks, sim::to_text(up.up_rate), up.field));
  return static_cast<std::uint64_t>(rounded);
}

Result<void> resolve_leaves(const FabricSpec& spec, FabricShape& shape) {
  const std::uint64_t units = ceil_div(shape.nodes, spec.hosts_per_leaf);
  const bool rail = shape.kind == FabricKind::rail_optimised;
  shape.hosts_per_leaf = spec.hosts_per_leaf;
  shape.leaf_ports = rail ? spec.hosts_per_leaf : spec.hosts_per_leaf * shape.rails;
  shape.leaves = rail ? units * shape.rails : units;
  shape.leaves_per_block = shape.leaves;
  shape.blocks = 1;
  RAILYARD_ASSIGN(shape.spines_per_block, resolve_up({.what = "leaf",
                                                      .field = "spines",
                                                      .oversubscription_field = "oversubscription",
                                                      .down_ports = shape.leaf_ports,
                                                      .down_rate = shape.host_rate,
                                                      .up_rate = shape.trunk_rate,
                                                      .trunks = spec.trunks},
                                                     spec.spines, spec.oversubscription));
  return {};
}

Result<void> resolve_pods(const FabricSpec& spec, FabricShape& shape) {
  if (spec.hosts_per_pod == 0) return bad_input("a three-level fabric needs fabric.hosts_per_pod");
  if (spec.hosts_per_pod % spec.hosts_per_leaf != 0)
    return bad_input(fmt::format("fabric.hosts_per_pod {} is not a multiple of hosts_per_leaf {}",
                                 spec.hosts_per_pod, spec.hosts_per_leaf));
  const std::uint64_t units = spec.hosts_per_pod / spec.hosts_per_leaf;
  shape.leaves_per_block = shape.kind == FabricKind::rail_optimised ? units * shape.rails : units;
  shape.blocks = ceil_div(shape.leaves, shape.leaves_per_block);
  RAILYARD_ASSIGN(shape.cores_per_spine,
                  resolve_up({.what = "spine",
                              .field = "cores_per_spine",
                              .oversubscription_field = "core_oversubscription",
                              .down_ports = shape.leaves_per_block * spec.trunks,
                              .down_rate = shape.trunk_rate,
                              .up_rate = shape.trunk_rate,
                              .trunks = spec.core_trunks},
                             spec.cores_per_spine, spec.core_oversubscription));
  return {};
}

Result<void> resolve_groups(const FabricSpec& spec, FabricShape& shape) {
  if (spec.leaves_per_group == 0) return bad_input("dragonfly+ needs fabric.leaves_per_group");
  shape.leaves_per_block = spec.leaves_per_group;
  shape.blocks = ceil_div(shape.leaves, shape.leaves_per_block);
  shape.global_links = spec.global_links > 0 ? spec.global_links : shape.spines_per_block;
  shape.global_cables = std::min(shape.global_links, shape.spines_per_block);
  return {};
}

// The cables of one pair of switches are one link, whose rate must fit the representation.
Result<void> check_trunks(const FabricShape& shape) {
  const std::uint64_t width = std::max<std::uint64_t>(
      {shape.trunks, shape.core_trunks, shape.global_cables > 0 ? shape.global_width(0) : 0u});
  const double rate = sim::to_gigabytes_per_second(shape.trunk_rate) * static_cast<double>(width);
  constexpr double kMaxRate = 100'000;  // GB/s; the representation ends at 140 TB/s
  if (rate <= kMaxRate) return {};
  return bad_input(
      fmt::format("{} parallel cables of {} are {:.6g} GB/s; at most {:.6g} GB/s "
                  "between two switches are supported",
                  width, sim::to_text(shape.trunk_rate), rate, kMaxRate));
}

Result<void> check_radix(std::uint32_t limit, const char* what, std::uint64_t ports) {
  if (limit == 0 || ports <= limit) return {};
  return bad_input(fmt::format(
      "the fabric cannot hold the nodes: a {} needs {} ports, but fabric.switch_ports is {}", what,
      ports, limit));
}

Result<void> check_ports(const FabricSpec& spec, const FabricShape& shape) {
  const std::uint64_t up = shape.spines_per_block * spec.trunks;
  const std::uint64_t down = std::min(shape.leaves, shape.leaves_per_block) * spec.trunks;
  const char* leaf = shape.kind == FabricKind::one_switch ? "switch" : "leaf";
  RAILYARD_TRY(check_radix(spec.switch_ports, leaf, shape.leaf_ports + up));
  if (shape.spines_per_block == 0) return {};
  const std::uint64_t global =
      shape.kind == FabricKind::dragonfly_plus && shape.blocks > 1
          ? ceil_div((shape.blocks - 1) * shape.global_links, shape.spines_per_block)
          : 0;
  RAILYARD_TRY(check_radix(spec.switch_ports, "spine",
                           down + shape.cores_per_spine * spec.core_trunks + global));
  return check_radix(spec.switch_ports, "core", shape.blocks * spec.core_trunks);
}

Result<void> check_kind(const FabricSpec& spec) {
  const bool levelled =
      spec.kind == FabricKind::rail_optimised || spec.kind == FabricKind::fat_tree;
  if (levelled && spec.levels != 2 && spec.levels != 3)
    return bad_input(fmt::format("fabric.levels is {}; 2 or 3 are supported", spec.levels));
  const bool three = levelled && spec.levels == 3;
  if (!three && (spec.hosts_per_pod > 0 || spec.cores_per_spine > 0 || spec.core_oversubscription))
    return bad_input(
        "fabric.hosts_per_pod, cores_per_spine and core_oversubscription need levels: 3");
  if (spec.kind != FabricKind::dragonfly_plus &&
      (spec.leaves_per_group > 0 || spec.global_links > 0))
    return bad_input("fabric.leaves_per_group and global_links are for dragonfly+ only");
  return {};
}

}  // namespace

double FabricShape::leaf_oversubscription() const {
  if (spines_per_block == 0) return 0;
  return ratio(host_rate, leaf_ports, trunk_rate, spines_per_block * trunks);
}

double FabricShape::spine_oversubscription() const {
  if (cores_per_spine == 0) return 0;
  return ratio(trunk_rate, leaves_per_block * trunks, trunk_rate, cores_per_spine * core_trunks);
}

Result<FabricShape> resolve_fabric(const FabricSpec& spec, const FabricEndpoints& endpoints) {
  RAILYARD_TRY(check_counts(spec));
  RAILYARD_TRY(check_kind(spec));
  FabricShape shape;
  shape.kind = spec.kind;
  if (spec.kind == FabricKind::none) return shape;
  if (endpoints.rails == 0)
    return bad_input(
        fmt::format("a '{}' fabric needs NICs, but the nodes have none", sim::to_text(spec.kind)));
  const bool stated = spec.link_rate.raw() > 0;
  shape.host_rate = stated ? std::min(spec.link_rate, endpoints.port_rate) : endpoints.port_rate;
  shape.trunk_rate = spec.trunk_rate.raw() > 0 ? spec.trunk_rate
                     : stated                  ? spec.link_rate
                                               : endpoints.port_rate;
  shape.nodes = endpoints.nodes;
  shape.rails = endpoints.rails;
  shape.trunks = static_cast<std::uint16_t>(spec.trunks);
  shape.core_trunks = static_cast<std::uint16_t>(spec.core_trunks);
  if (spec.kind == FabricKind::one_switch) {
    shape.hosts_per_leaf = shape.nodes;
    shape.leaf_ports = shape.endpoints();
    shape.leaves = shape.blocks = shape.leaves_per_block = 1;
  } else {
    RAILYARD_TRY(resolve_leaves(spec, shape));
    if (spec.kind == FabricKind::dragonfly_plus) {
      RAILYARD_TRY(resolve_groups(spec, shape));
    } else if (spec.levels == 3) {
      RAILYARD_TRY(resolve_pods(spec, shape));
    }
  }
  RAILYARD_TRY(check_trunks(shape));
  RAILYARD_TRY(check_ports(spec, shape));
  return shape;
}

}  // namespace railyard::topologies
