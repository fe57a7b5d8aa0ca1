// One-at-a-time sensitivity: the run again with one class of link 10 % faster, latencies or launch
// costs 10 % larger, compute 10 % faster; everything else as it is. Latencies include the fixed
// cost per slice.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "scenarios/run_parts.h"

namespace railyard::scenarios {
namespace {

constexpr double kChange = 0.1;

struct Variation {
  std::string what;
  std::function<void(sim::Parameters&)> apply;
  bool changes_transfers = true;  // else collectives come out as in the base run
  bool idle = false;              // touches only links that carried nothing: no effect, and not run
};

std::vector<Variation> link_variations(const Bound& bound, const RunResult& result) {
  std::vector<Variation> list;
  for (const auto& entry : sim::EnumTable<sim::LinkClass>::entries) {
    const sim::LinkClass link_class = entry.value;
    const auto of_class = [&](const auto& link) { return link.link_class == link_class; };
    if (std::ranges::none_of(bound.topology.links, of_class)) continue;
    const auto idle = std::ranges::find_if(result.idle_links, of_class);
    list.push_back({.what = fmt::format("{} bandwidth", entry.name),
                    .apply =
                        [link_class](sim::Parameters& p) {
                          p.links[static_cast<std::size_t>(link_class)].efficiency *= 1 + kChange;
                        },
                    .idle = idle != result.idle_links.end() && idle->count == idle->total});
  }
  return list;
}

void raise_latencies(sim::Parameters& p) {
  for (sim::LinkParameters& link : p.links) link.latency = sim::scale(link.latency, 1 + kChange);
  for (sim::ProtocolParameters& protocol : p.protocols) {
    protocol.hop_latency = sim::scale(protocol.hop_latency, 1 + kChange);
    protocol.net_hop_latency = sim::scale(protocol.net_hop_latency, 1 + kChange);
    protocol.op_overhead = sim::scale(protocol.op_overhead, 1 + kChange);
  }
}

void raise_copy_rates(sim::Parameters& p) {
  for (sim::ProtocolParameters& protocol : p.protocols) {
    protocol.channel_rate = sim::scale(protocol.channel_rate, 1 + kChange);
    protocol.local_rate = sim::scale(protocol.local_rate, 1 + kChange);
  }
}

void raise_launch_costs(sim::Parameters& p) {
  for (sim::Duration* cost : {&p.host.op_launch, &p.host.collective_launch, &p.host.launch_latency,
                              &p.host.collective_start, &p.host.grad_hook})
    *cost = sim::scale(*cost, 1 + kChange);
}

void raise_compute_speed(sim::Parameters& p) {
  for (sim::FlopsRate* peak : {&p.gpu.peak_fp32, &p.gpu.peak_tf32, &p.gpu.peak_fp16})
    peak->per_second *= 1 + kChange;
  p.gpu.hbm_bandwidth = sim::scale(p.gpu.hbm_bandwidth, 1 + kChange);
}

}  // namespace

Result<void> add_sensitivity(const Scenario& scenario, const RunOptions& options,
                             const SensitivityInput& input, RunResult& result) {
  std::vector<Variation> list = link_variations(input.bound, result);
  list.push_back({.what = "latencies", .apply = raise_latencies});
  list.push_back({.what = "channel copy rate", .apply = raise_copy_rates});
  list.push_back({.what = "launch cost", .apply = raise_launch_costs, .changes_transfers = false});
  if (scenario.ddp)
    list.push_back(
        {.what = "compute speed", .apply = raise_compute_speed, .changes_transfers = false});

  RunOptions quiet;
  quiet.limits = options.limits;
  quiet.limits.progress = nullptr;
  const sim::Parameters base = input.bound.parameters;
  const sim::Duration before = objective_time(result);
  for (const Variation& variation : list) {
    sim::Duration after = before;
    if (!variation.idle) {
      input.bound.parameters = base;
      variation.apply(input.bound.parameters);
      SharedState shared = input.shared;
      if (variation.changes_transfers) shared.outcomes = nullptr;
      RAILYARD_ASSIGN(const RunResult varied, run_bound(scenario, quiet, input.bound, shared));
      if (varied.outcome != sim::EventQueue::Outcome::drained)
        break;  // interrupted: keep what there is
      after = objective_time(varied);
    }
    result.sensitivity.push_back({variation.what, kChange, before, after});
  }
  input.bound.parameters = base;
  return {};
}

}  // namespace railyard::scenarios
