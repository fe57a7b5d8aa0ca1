#include "models/fsdp/units.h"

#include <algorithm>
#include <map>

namespace railyard::models {
namespace {

constexpr std::uint32_t kRoot = 0;

// The units of all layers, and which one each layer runs under.
std::vector<std::uint32_t> find_units(const NeuralNetwork& network, std::vector<ShardUnit>& units) {
  units.push_back({"root", {}});
  std::map<std::string, std::uint32_t> known;
  std::vector<std::uint32_t> unit_of_layer;
  for (const Layer& layer : network.layers()) {
    const std::string block = block_of(layer.name);
    std::uint32_t unit = kRoot;
    if (!block.empty()) {
      const auto [place, added] = known.emplace(block, static_cast<std::uint32_t>(units.size()));
      if (added) units.push_back({block, {}});
      unit = place->second;
    }
    unit_of_layer.push_back(unit);
  }
  return unit_of_layer;
}

// A parameter is its user's; one with several users, or none, is the root's.
void give_parameters(const NeuralNetwork& network, const std::vector<std::uint32_t>& unit_of_layer,
                     std::vector<ShardUnit>& units) {
  constexpr std::uint32_t kNobody = ~0U;
  std::vector<std::uint32_t> owner(network.parameters().size(), kNobody);
  for (std::size_t l = 0; l < network.layers().size(); ++l)
    for (const std::uint32_t p : network.layers()[l].parameters)
      owner[p] = owner[p] == kNobody || owner[p] == unit_of_layer[l] ? unit_of_layer[l] : kRoot;
  for (std::uint32_t p = 0; p < owner.size(); ++p)
    units[owner[p] == kNobody ? kRoot : owner[p]].parameters.push_back(p);
}

void mark_ends(std::vector<Segment>& segments, std::size_t units) {
  std::vector<bool> seen(units, false);
  for (Segment& segment : segments) {
    segment.enters = !seen[segment.unit];
    seen[segment.unit] = true;
  }
  seen.assign(units, false);
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    segment->leaves = !seen[segment->unit];
    seen[segment->unit] = true;
  }
}

std::vector<sim::Kernel>& segment_of(std::uint32_t unit, std::vector<Segment>& segments) {
  if (segments.empty() || segments.back().unit != unit) segments.push_back({unit, {}});
  return segments.back().kernels;
}

}  // namespace

std::string block_of(const std::string& name) {
  for (std::size_t start = 0; start < name.size();) {
    const std::size_t dot = std::min(name.find('.', start), name.size());
    const bool number =
        dot > start && std::all_of(name.begin() + static_cast<std::ptrdiff_t>(start),
                                   name.begin() + static_cast<std::ptrdiff_t>(dot),
                                   [](char c) { return c >= '0' && c <= '9'; });
    if (number && start > 0) return name.substr(0, dot);
    start = dot + 1;
  }
  return "";
}

std::vector<ShardUnit> shard_units(const NeuralNetwork& network) {
  std::vector<ShardUnit> units;
  give_parameters(network, find_units(network, units), units);
  return units;
}

Result<ShardedLayers> shard_layers(const NeuralNetwork& network, const LayerOptions& options,
                                   const KernelModel& kernels, sim::Trace& trace) {
  RAILYARD_TRY(check_batch(network, options.samples));
  ShardedLayers out;
  const std::vector<std::uint32_t> unit_of_layer = find_units(network, out.units);
  give_parameters(network, unit_of_layer, out.units);
  const std::vector<Layer>& layers = network.layers();
  // The root is entered before anything runs, even if its first layer comes late, and left last.
  segment_of(kRoot, out.forward);
  for (std::size_t l = 0; l < layers.size(); ++l)
    add_forward(layers[l], options, kernels, trace, segment_of(unit_of_layer[l], out.forward));
  segment_of(kRoot, out.forward);
  segment_of(kRoot, out.backward);
  for (std::size_t l = layers.size(); l-- > 0;)
    add_backward(layers[l], options, kernels, trace, segment_of(unit_of_layer[l], out.backward));
  segment_of(kRoot, out.backward);
  mark_ends(out.forward, out.units.size());
  mark_ends(out.backward, out.units.size());
  return out;
}

}  // namespace railyard::models
