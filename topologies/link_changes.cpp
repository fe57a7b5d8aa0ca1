#include "topologies/link_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/text.h"

namespace railyard::topologies {
namespace {

using sim::bad_input;
using sim::Result;

struct Ends {
  std::string_view from;
  std::string_view to;  // empty: a device pattern
  bool both_ways = false;
};

Ends split(std::string_view pattern) {
  const std::size_t arrow = pattern.find("->");
  if (arrow == std::string_view::npos) return {pattern, {}, true};
  const bool both = arrow > 0 && pattern[arrow - 1] == '<';
  return {pattern.substr(0, arrow - (both ? 1 : 0)), pattern.substr(arrow + 2), both};
}

std::vector<bool> matching_devices(const sim::Topology& topology, std::string_view pattern) {
  std::vector<bool> matches(topology.devices.size());
  for (std::size_t i = 0; i < matches.size(); ++i)
    matches[i] = glob_match(pattern, topology.devices[i].name);
  return matches;
}

bool any(const std::vector<bool>& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}

// The names nearest to a pattern, by edit distance; at most three. Only names of about the same
// length can be near, which keeps this cheap on large clusters.
std::string nearest_devices(const sim::Topology& topology, std::string_view pattern) {
  constexpr std::size_t kMaxCandidates = 20'000;
  std::vector<std::string_view> names;
  for (const sim::Device& device : topology.devices) {
    const std::size_t a = device.name.size();
    const std::size_t b = pattern.size();
    if (names.size() < kMaxCandidates && (a > b ? a - b : b - a) <= 2) names.push_back(device.name);
  }
  std::vector<std::string> nearest;
  while (nearest.size() < 3) {
    const std::string_view name = sim::nearest_name(pattern, names);
    if (name.empty()) break;
    nearest.push_back("'" + std::string(name) + "'");
    names.erase(std::find(names.begin(), names.end(), name));
  }
  if (!nearest.empty()) return fmt::format("; nearest names: {}", fmt::join(nearest, ", "));
  // Nothing near: one example of every kind, from the end (the fabric) to the first node.
  std::vector<std::string> examples;
  std::vector<bool> seen(sim::EnumTable<sim::DeviceKind>::entries.size());
  for (std::size_t i = topology.devices.size(); i-- > 0;) {
    const auto kind = static_cast<std::size_t>(topology.devices[i].kind);
    if (!seen[kind]) examples.push_back("'" + topology.devices[i].name + "'");
    seen[kind] = true;
  }
  return fmt::format("; names look like {}", fmt::join(examples, ", "));
}

sim::Error no_device(const sim::Topology& topology, const LinkChange& change,
                     std::string_view name) {
  return bad_input(fmt::format("link change '{}': no device is called '{}'{}", change.pattern, name,
                               nearest_devices(topology, name)));
}

// Both ends exist, but no link joins them: says what the first one is linked to.
sim::Error no_link(const sim::Topology& topology, const LinkChange& change,
                   const std::vector<bool>& from) {
  std::vector<std::string> names;
  for (const sim::Link& link : topology.links)
    if (names.size() < 4 && from[link.from.index()])
      names.push_back("'" + topology.devices[link.from.index()].name + "->" +
                      topology.devices[link.to.index()].name + "'");
  return bad_input(fmt::format(
      "link change '{}': no such link; there is {}", change.pattern,
      names.empty() ? "none at this device" : fmt::format("{}", fmt::join(names, ", "))));
}

Result<void> check_change(const LinkChange& change) {
  if (!(change.speed > 0 && change.speed <= 1))
    return bad_input(
        fmt::format("link change '{}': speed is {}; it must be above 0 and at most 1 "
                    "(use disable for a dead link)",
                    change.pattern, change.speed));
  if (change.extra_latency < sim::Duration::zero())
    return bad_input(fmt::format("link change '{}': extra_latency is negative", change.pattern));
  return {};
}

class Changer {
 public:
  explicit Changer(sim::Topology& topology) : topology_(topology) {}

  Result<void> apply(const LinkChange& change) {
    RAILYARD_TRY(check_change(change));
    const Ends ends = split(change.pattern);
    const std::vector<bool> from = matching_devices(topology_, ends.from);
    if (!any(from)) return no_device(topology_, change, ends.from);
    const bool device_only = ends.to.empty();
    const std::vector<bool> to =
        device_only ? std::vector<bool>(from.size(), true) : matching_devices(topology_, ends.to);
    if (!any(to)) return no_device(topology_, change, ends.to);
    std::size_t hits = 0;
    for (std::size_t i = 0; i < topology_.links.size(); ++i) {
      const std::size_t a = topology_.links[i].from.index();
      const std::size_t b = topology_.links[i].to.index();
      if (!(from[a] && to[b]) && !(ends.both_ways && from[b] && to[a])) continue;
      if (change.pcie_rate && topology_.links[i].link_class != sim::LinkClass::pcie) continue;
      ++hits;
      change_link(change, i);
    }
    if (hits == 0 && change.pcie_rate)
      return bad_input(fmt::format("link change '{}': there is no PCIe link", change.pattern));
    if (hits == 0) return no_link(topology_, change, from);
    return {};
  }

  std::vector<bool> enabled() && { return std::move(enabled_); }

 private:
  void change_link(const LinkChange& change, std::size_t index) {
    if (change.disable) {
      if (enabled_.empty()) enabled_.assign(topology_.links.size(), true);
      enabled_[index] = false;
      return;
    }
    sim::Link& link = topology_.links[index];
    link.capacity = std::max(sim::scale(link.capacity, change.speed), sim::Bandwidth::from_raw(1));
    if (change.pcie_rate) link.capacity = std::min(link.capacity, *change.pcie_rate);
    link.extra_latency += change.extra_latency;
  }

  sim::Topology& topology_;
  std::vector<bool> enabled_;
};

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t restart = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      restart = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++restart;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<std::vector<bool>> apply_changes(sim::Topology& topology,
                                        const std::vector<LinkChange>& changes) {
  Changer changer(topology);
  for (const LinkChange& change : changes) RAILYARD_TRY(changer.apply(change));
  return std::move(changer).enabled();
}

}  // namespace railyard::topologies
