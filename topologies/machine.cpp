#include "topologies/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/text.h"
#include "topologies/machine_catalogue.h"

namespace railyard::topologies {
namespace {

using sim::bad_input;
using sim::Result;

const std::vector<MachineSpec>& catalogue() {
  static const std::vector<MachineSpec> machines = [] {
    std::vector<MachineSpec> all = sxm_machines();
    for (auto part :
         {quad_machines(), grace_machines(), plain_machines(), card_machines(), geforce_machines()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return machines;
}

Result<void> check_parent(const MachineSpec& machine, Parent parent, const std::string& what) {
  const std::size_t limit = parent.is_switch ? machine.switches.size() : machine.numa.size();
  if (parent.index < limit) return {};
  return bad_input(fmt::format("machine '{}': {} hangs from {} {}, but there are {}", machine.name,
                               what, parent.is_switch ? "PCIe switch" : "CPU", parent.index,
                               limit));
}

Result<void> check_tree(const MachineSpec& machine) {
  for (std::size_t i = 0; i < machine.switches.size(); ++i) {
    const Parent parent = machine.switches[i].parent;
    RAILYARD_TRY(check_parent(machine, parent, fmt::format("PCIe switch {}", i)));
    if (parent.is_switch && parent.index >= i)
      return bad_input(fmt::format("machine '{}': PCIe switch {} must come after its parent {}",
                                   machine.name, i, parent.index));
    if (machine.switches[i].width == 0)
      return bad_input(
          fmt::format("machine '{}': PCIe switch {} has no links to its parent", machine.name, i));
  }
  for (std::size_t i = 0; i < machine.gpus.size(); ++i)
    RAILYARD_TRY(check_parent(machine, machine.gpus[i], fmt::format("GPU {}", i)));
  for (std::size_t i = 0; i < machine.nics.size(); ++i)
    RAILYARD_TRY(check_parent(machine, machine.nics[i], fmt::format("NIC {}", i)));
  return {};
}

Result<void> check_nvlinks(const MachineSpec& machine) {
  if (machine.nvswitch && !machine.pairs.empty())
    return bad_input(
        fmt::format("machine '{}' has NVLink pairs and an NVSwitch; choose one", machine.name));
  constexpr std::uint32_t kMaxNvlinks = 1000;
  if (machine.nvlinks_per_gpu > kMaxNvlinks)
    return bad_input(fmt::format("machine '{}' has {} NVLinks per GPU; at most {} are supported",
                                 machine.name, machine.nvlinks_per_gpu, kMaxNvlinks));
  std::vector<std::uint32_t> used(machine.gpus.size(), 0);
  for (const NvlinkPair& pair : machine.pairs) {
    if (pair.a >= used.size() || pair.b >= used.size() || pair.a == pair.b || pair.links == 0)
      return bad_input(fmt::format("machine '{}': bad NVLink pair {} - {} ({} links)", machine.name,
                                   pair.a, pair.b, pair.links));
    used[pair.a] += pair.links;
    used[pair.b] += pair.links;
  }
  if (!machine.gpu_nvlinks.empty() &&
      (!machine.nvswitch || machine.gpu_nvlinks.size() != machine.gpus.size()))
    return bad_input(fmt::format(
        "machine '{}': NVLinks by GPU need an NVSwitch and one number for each GPU", machine.name));
  for (std::size_t i = 0; i < machine.gpu_nvlinks.size(); ++i) used[i] += machine.gpu_nvlinks[i];
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i] > machine.nvlinks_per_gpu)
      return bad_input(fmt::format("machine '{}': GPU {} uses {} NVLinks of {}", machine.name, i,
                                   used[i], machine.nvlinks_per_gpu));
  return {};
}

Result<void> check_rates(const MachineSpec& machine) {
  const auto require = [&](bool used, const Rate& rate, const char* what) -> Result<void> {
    if (!used || rate.value.raw() > 0) return {};
    return bad_input(fmt::format("machine '{}': the {} rate is missing", machine.name, what));
  };
  const bool nvlinks = machine.nvswitch || !machine.pairs.empty();
  RAILYARD_TRY(require(nvlinks, machine.nvlink, "nvlink"));
  RAILYARD_TRY(require(!machine.flat, machine.gpu_host, "GPU to host"));
  RAILYARD_TRY(require(!machine.switches.empty() || !machine.nics.empty(), machine.pcie, "pcie"));
  RAILYARD_TRY(require(machine.numa.size() > 1, machine.smp, "smp"));
  if (!machine.nic_rates.empty() && machine.nic_rates.size() != machine.nics.size())
    return bad_input(fmt::format("machine '{}': {} NIC rates for {} NICs", machine.name,
                                 machine.nic_rates.size(), machine.nics.size()));
  if (!machine.nic_names.empty() && machine.nic_names.size() != machine.nics.size())
    return bad_input(fmt::format("machine '{}' has {} names for {} NICs", machine.name,
                                 machine.nic_names.size(), machine.nics.size()));
  for (const sim::Bandwidth rate : machine.nic_rates)
    if (rate.raw() <= 0)
      return bad_input(fmt::format("machine '{}': a NIC without a rate", machine.name));
  return require(machine.flat || !machine.nics.empty(), machine.nic, "nic");
}

// The first `count` GPUs; NVLinks to the others go with them.
Result<void> keep_gpus(MachineSpec& machine, std::uint32_t count) {
  if (count == 0) return bad_input("gpus_per_node is 0; a node needs at least one GPU");
  if (machine.flat) {
    if (count > kMaxGpus)
      return bad_input(
          fmt::format("gpus_per_node is {}; at most {} GPUs are supported", count, kMaxGpus));
    machine.gpus.assign(count, at_cpu(0));
    return {};
  }
  if (count > machine.gpus.size())
    return bad_input(fmt::format("gpus_per_node is {}, but machine '{}' has {} GPUs", count,
                                 machine.name, machine.gpus.size()));
  machine.gpus.resize(count);
  if (!machine.gpu_nvlinks.empty()) machine.gpu_nvlinks.resize(count);
  std::erase_if(machine.pairs,
                [&](const NvlinkPair& pair) { return pair.a >= count || pair.b >= count; });
  return {};
}

constexpr std::uint32_t kMostNics = 256;  // of a node

Result<void> set_nics(MachineSpec& machine, std::uint32_t count) {
  if (count > kMostNics)
    return bad_input(
        fmt::format("nics_per_node is {}; at most {} NICs are supported", count, kMostNics));
  if (machine.nics.empty() && count > 0)
    return bad_input(fmt::format("nics_per_node is {}, but machine '{}' has no place for NICs",
                                 count, machine.name));
  spread_nics(machine, count);
  return {};
}

// Pairs of all cards are made before keep_gpus takes some away.
Result<void> wire_nvlinks(MachineSpec& machine, NvlinkWiring wiring) {
  if (wiring == NvlinkWiring::as_built) return {};
  if (wiring == NvlinkWiring::bridges && machine.bridge_links == 0)
    return bad_input(fmt::format("no NVLink bridge fits the GPUs of machine '{}'", machine.name));
  machine.nvswitch = false;
  machine.gpu_nvlinks.clear();
  machine.pairs.clear();
  machine.nvlinks_per_gpu = 0;
  machine.nodes_per_nvlink_domain = 1;
  if (wiring == NvlinkWiring::none) return {};
  machine.nvlinks_per_gpu = machine.bridge_links;
  for (std::uint32_t gpu = 0; gpu + 1 < machine.gpus.size(); gpu += 2)
    machine.pairs.push_back({gpu, gpu + 1, machine.bridge_links});
  return {};
}

}  // namespace

std::vector<std::string_view> machine_names() {
  std::vector<std::string_view> names;
  for (const MachineSpec& machine : catalogue()) names.emplace_back(machine.name);
  return names;
}

const std::vector<MachineAlias>& machine_aliases() {
  static const std::vector<MachineAlias> aliases{{"hgx-a800", "a800-hgx"},
                                                 {"gh200-quad", "gh200-4"},
                                                 {"gh200-single", "gh200"},
                                                 {"v100-quad", "v100-quad-nvlink"},
                                                 {"a100-quad", "a100-quad-nvlink"},
                                                 {"h100-quad", "h100-quad-nvlink"},
                                                 {"dgx-1", "dgx-1v"},
                                                 {"dgx-b200", "hgx-b200"},
                                                 {"dgx-h200", "hgx-h200"},
                                                 {"dgx-b300", "hgx-b300"},
                                                 {"a100-pcie", "pcie-8"},
                                                 {"a100-pcie-nvlink", "pcie-8-nvlink"},
                                                 {"dgx-spark", "gb10"},
                                                 {"a10g-pcie", "a10-pcie"},
                                                 {"rtx6000ada-pcie", "rtx6000-ada-pcie"},
                                                 {"rtx-6000-ada-pcie", "rtx6000-ada-pcie"},
                                                 {"rtxpro6000-pcie", "rtx-pro-6000-pcie"},
                                                 {"rtx6000-pro-pcie", "rtx-pro-6000-pcie"}};
  return aliases;
}

Result<MachineSpec> find_machine(std::string_view name) {
  std::string_view wanted = name;
  for (const MachineAlias& alias : machine_aliases())
    if (sim::equal_ignoring_case(alias.name, name)) wanted = alias.machine;
  for (const MachineSpec& machine : catalogue())
    if (sim::equal_ignoring_case(machine.name, wanted)) return machine;
  const std::vector<std::string_view> names = machine_names();
  return bad_input(fmt::format("unknown machine '{}'{} (one of: {})", name,
                               sim::did_you_mean(name, names), fmt::join(names, ", ")));
}

sim::Bandwidth pcie_rate(double gigatransfers, std::uint32_t lanes) {
  struct Generation {
    double gigatransfers;
    double gigabytes;  // of one lane, one way
  };
  // 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, FLIT mode (236 of 256 bytes) at 64 GT/s.
  static constexpr std::array<Generation, 6> kGenerations{{{2.5, 2.5 / 10},
                                                           {5, 5.0 / 10},
                                                           {8, 8.0 / 8 * 128 / 130},
                                                           {16, 16.0 / 8 * 128 / 130},
                                                           {32, 32.0 / 8 * 128 / 130},
                                                           {64, 64.0 / 8 * 236 / 256}}};
  for (const Generation& generation : kGenerations)
    if (generation.gigatransfers == gigatransfers)
      return sim::gigabytes_per_second(std::round(generation.gigabytes * lanes * 1000) / 1000);
  return {};
}

void spread_nics(MachineSpec& machine, std::uint32_t count) {
  RAILYARD_CHECK(count == 0 || !machine.nics.empty(), "NICs take the places of others");
  if (count != machine.nics.size()) machine.direct_nic = {};  // whose GPU would it be?
  const bool named = count <= machine.nic_names.size();       // two NICs never share a name
  std::vector<Parent> nics;
  std::vector<sim::Bandwidth> rates;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t place = i * machine.nics.size() / count;
    nics.push_back(machine.nics[place]);
    if (!machine.nic_rates.empty()) rates.push_back(machine.nic_rates[place]);
    if (named) names.push_back(machine.nic_names[place]);
  }
  machine.nics = std::move(nics);
  machine.nic_rates = std::move(rates);
  machine.nic_names = std::move(names);
}

Result<MachineSpec> apply_overrides(MachineSpec machine, const MachineOverrides& overrides) {
  // What the file said no longer holds once it is overridden.
  const bool rewired = overrides.nvlink != NvlinkWiring::as_built;
  if (overrides.gpus_per_node || overrides.nics_per_node || overrides.nic_rate || rewired)
    machine.hardware.reset();
  RAILYARD_TRY(wire_nvlinks(machine, overrides.nvlink));
  if (overrides.gpus_per_node) RAILYARD_TRY(keep_gpus(machine, *overrides.gpus_per_node));
  if (overrides.nics_per_node) RAILYARD_TRY(set_nics(machine, *overrides.nics_per_node));
  if (overrides.nic_rate) {
    if (overrides.nic_rate->raw() <= 0) return bad_input("nic_rate must be positive");
    machine.nic = {*overrides.nic_rate, "the scenario"};
    machine.nic_rates.clear();
  }
  machine.acs = machine.acs || overrides.acs;
  if (!overrides.direct_nic && machine.direct_nic.value.raw() > 0) {
    machine.direct_nic = {};
    machine.hardware.reset();
  }
  if (overrides.nodes_per_nvlink_domain) {
    if (!machine.nvswitch)
      return bad_input(
          fmt::format("machine '{}' has no NVSwitch that nodes could share", machine.name));
    if (*overrides.nodes_per_nvlink_domain == 0)
      return bad_input("nodes_per_nvlink_domain is 0; 1 = no NVLink between nodes");
    machine.nodes_per_nvlink_domain = *overrides.nodes_per_nvlink_domain;
  }
  return machine;
}

Result<void> check_machine(const MachineSpec& machine) {
  if (machine.gpus.empty()) return bad_input(fmt::format("machine '{}' has no GPUs", machine.name));
  constexpr std::size_t kMaxDevices = 1024;  // a route table holds their square
  const std::size_t devices = machine.gpus.size() + machine.nics.size() + machine.switches.size();
  if (!machine.flat && devices + machine.numa.size() > kMaxDevices)
    return bad_input(fmt::format("machine '{}' has {} devices in a node; at most {} are supported",
                                 machine.name, devices + machine.numa.size(), kMaxDevices));
  if (machine.nodes_per_nvlink_domain == 0 ||
      (machine.nodes_per_nvlink_domain > 1 && !machine.nvswitch))
    return bad_input(fmt::format("machine '{}': {} nodes cannot share NVLink without an NVSwitch",
                                 machine.name, machine.nodes_per_nvlink_domain));
  if (machine.flat && (!machine.nics.empty() || machine.nvswitch || !machine.pairs.empty()))
    return bad_input(
        fmt::format("machine '{}' is flat: it cannot have NICs or NVLinks", machine.name));
  RAILYARD_TRY(check_tree(machine));
  RAILYARD_TRY(check_nvlinks(machine));
  return check_rates(machine);
}

}  // namespace railyard::topologies
