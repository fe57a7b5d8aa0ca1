// One-at-a-time sensitivity: the run again with one class of link 10 % faster, latencies or launch
// costs 10 % larger, compute 10 % faster; everything else as it is. Latencies include the fixed
// cost per slice. Links that never held anything back are not run again: see sim/network.h.
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
  bool without_effect = false;    // known from the base run: not run again
};

void raise_bandwidth(sim::LinkClass link_class, sim::Parameters& p) {
  p.links[static_cast<std::size_t>(link_class)].efficiency *= 1 + kChange;
}

// More of what held nothing back changes no rate; kernels may still slow down otherwise.
bool bandwidth_matters(sim::LinkClass link_class, const SensitivityInput& input) {
  const std::vector<sim::Link>& links = input.bound.topology.links;
  for (std::size_t l = 0; l < links.size(); ++l)
    if (links[l].link_class == link_class && input.facts.limiting[l]) return true;
  const sim::Parameters base = input.bound.parameters;
  raise_bandwidth(link_class, input.bound.parameters);
  const bool same = std::ranges::all_of(input.facts.schedules, [&](const auto& planned) {
    const sim::Slowdown now = input.bound.costs->slowdown(*planned.schedule, *planned.group);
    return now.compute == planned.slowdown.compute && now.memory == planned.slowdown.memory;
  });
  input.bound.parameters = base;
  return !same;
}

std::vector<Variation> link_variations(const SensitivityInput& input) {
  std::vector<Variation> list;
  for (const auto& entry : sim::EnumTable<sim::LinkClass>::entries) {
    const sim::LinkClass link_class = entry.value;
    if (std::ranges::none_of(input.bound.topology.links,
                             [&](const sim::Link& link) { return link.link_class == link_class; }))
      continue;
    list.push_back({.what = fmt::format("{} bandwidth", entry.name),
                    .apply = [link_class](sim::Parameters& p) { raise_bandwidth(link_class, p); },
                    .without_effect = !bandwidth_matters(link_class, input)});
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
  p.gpu.host_load_rate = sim::scale(p.gpu.host_load_rate, 1 + kChange);
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

std::vector<Variation> variations(const Scenario& scenario, const SensitivityInput& input) {
  std::vector<Variation> list = link_variations(input);
  list.push_back({.what = "latencies", .apply = raise_latencies});
  list.push_back({.what = "channel copy rate", .apply = raise_copy_rates});
  list.push_back({.what = "launch cost", .apply = raise_launch_costs, .changes_transfers = false});
  if (scenario.ddp || scenario.workload)
    list.push_back(
        {.what = "compute speed", .apply = raise_compute_speed, .changes_transfers = false});
  return list;
}

void report_stop(std::size_t done, std::size_t all, RunResult& result) {
  result.notes.push_back(fmt::format(
      "warning: a limit stopped the sensitivity table after {} of its {} rows", done, all));
}

}  // namespace

Result<void> add_sensitivity(const Scenario& scenario, const RunOptions& options,
                             const SensitivityInput& input, RunResult& result) {
  const std::vector<Variation> list = variations(scenario, input);
  RunOptions quiet;
  quiet.limits = options.limits;
  const auto runs = static_cast<double>(
      std::ranges::count_if(list, [](const Variation& each) { return !each.without_effect; }));
  double finished = 0;
  if (options.limits.progress)
    quiet.limits.progress = [&](double share) {
      options.limits.progress(kBaseShare + (1 - kBaseShare) * (finished + share) / runs);
    };
  const sim::Parameters base = input.bound.parameters;
  const sim::Duration before = objective_time(result);
  for (const Variation& variation : list) {
    sim::Duration after = before;
    if (!variation.without_effect) {
      input.bound.parameters = base;
      variation.apply(input.bound.parameters);
      SharedState shared = input.shared;
      shared.events = input.facts.events;
      if (variation.changes_transfers) shared.outcomes = nullptr;
      RAILYARD_ASSIGN(const RunResult varied, run_bound(scenario, quiet, input.bound, shared));
      if (varied.outcome != sim::EventQueue::Outcome::drained) {
        report_stop(result.sensitivity.size(), list.size(), result);
        break;
      }
      after = objective_time(varied);
      ++finished;
    }
    result.sensitivity.push_back({variation.what, kChange, before, after});
  }
  input.bound.parameters = base;
  return {};
}

}  // namespace railyard::scenarios
