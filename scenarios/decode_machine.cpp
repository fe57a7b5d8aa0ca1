#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "scenarios/machine_yaml.h"
#include "scenarios/text_fence.h"

namespace railyard::scenarios {

// The structs below are of topologies/; their blocks are parts of a machine's.
namespace {

using topologies::MachineSpec;
using topologies::Parent;

constexpr std::uint32_t kMaxDevices = 1024;
constexpr std::uint32_t kMaxLinks = 1000;

// "cpu1" or "pcie3".
Result<void> decode_parent(const Place& place, Parent& out) {
  std::string text;
  RAILYARD_TRY(decode(place, text));
  for (const std::string_view kind : {"cpu", "pcie"}) {
    if (!text.starts_with(kind)) continue;
    const char* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data() + kind.size(), end, out.index);
    if (failure != std::errc() || stop != end) break;
    out.is_switch = kind == "pcie";
    return {};
  }
  return place.error(fmt::format("'cpu0' or 'pcie0' is expected, not '{}'", printable(text, 60)));
}

// A rate that is written must be one.
void find_rate(MapReader& reader, std::string_view key, sim::Bandwidth& out) {
  if (!reader.optional(key, out) || out.raw() > 0) return;
  reader.take(reader.find(key)->error("must be positive"));
}

Result<void> find_parent(MapReader& reader, Parent& out) {
  if (const auto parent = reader.find_required("parent")) reader.take(decode_parent(*parent, out));
  find_rate(reader, "link", out.rate);
  return {};
}

template <typename Visit>
Result<void> each(const Place& place, Visit&& visit) {
  RAILYARD_TRY(expect(place, Node::Kind::list));
  if (place.node->items.size() > kMaxDevices)
    return place.error(
        fmt::format("{} devices; at most {} are supported", place.node->items.size(), kMaxDevices));
  for (std::size_t i = 0; i < place.node->items.size(); ++i) {
    MapReader reader(place.item(i));
    visit(reader);
    RAILYARD_TRY(reader.finish());
  }
  return {};
}

Result<void> decode_numa(const Place& place, MachineSpec& out) {
  out.numa.clear();
  return each(place, [&](MapReader& reader) {
    topologies::NumaNode numa;
    numa.id = static_cast<std::int32_t>(out.numa.size());
    reader.optional("id", numa.id, std::int32_t{-1}, std::int32_t{0xffff});
    reader.optional("cpus", numa.cpus);
    out.numa.push_back(std::move(numa));
  });
}

Result<void> decode_switches(const Place& place, MachineSpec& out) {
  return each(place, [&](MapReader& reader) {
    topologies::PcieSwitch bridge;
    reader.take(find_parent(reader, bridge.parent));
    reader.optional("links", bridge.width, std::uint16_t{1}, std::uint16_t{16});
    out.switches.push_back(bridge);
  });
}

// NVLinks by GPU wait until `nvlinks` says how many are usual.
Result<void> decode_gpus(const Place& place, MachineSpec& out,
                         std::vector<std::optional<std::uint16_t>>& nvlinks) {
  out.gpus.clear();
  return each(place, [&](MapReader& reader) {
    Parent parent;
    std::uint16_t links = 0;
    reader.take(find_parent(reader, parent));
    const bool own = reader.optional("nvlinks", links, std::uint16_t{0}, std::uint16_t{kMaxLinks});
    nvlinks.push_back(own ? std::optional(links) : std::nullopt);
    out.gpus.push_back(parent);
  });
}

Result<void> decode_nics(const Place& place, MachineSpec& out, std::vector<sim::Bandwidth>& rates) {
  return each(place, [&](MapReader& reader) {
    Parent parent;
    sim::Bandwidth rate{};
    reader.take(find_parent(reader, parent));
    find_rate(reader, "rate", rate);
    out.nics.push_back(parent);
    rates.push_back(rate);
  });
}

Result<void> decode_pairs(const Place& place, MachineSpec& out) {
  std::vector<std::vector<std::uint32_t>> rows;
  RAILYARD_TRY(decode(place, rows));
  constexpr std::size_t kRow = 3;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != kRow || rows[i][2] > kMaxLinks)
      return place.item(i).error("[GPU, GPU, number of links] is expected");
    out.pairs.push_back({rows[i][0], rows[i][1], static_cast<std::uint16_t>(rows[i][2])});
  }
  return {};
}

Result<void> decode_nvlinks(const Place& place, MachineSpec& out) {
  MapReader reader(place);
  reader.required("per_gpu", out.nvlinks_per_gpu, 0u, kMaxLinks);
  if (reader.optional("rate", out.nvlink.value)) out.nvlink.source = "the scenario";
  reader.optional("switch", out.nvswitch);
  if (const auto pairs = reader.find("pairs")) reader.take(decode_pairs(*pairs, out));
  return reader.finish();
}

Result<void> decode_cpu(const Place& place, topologies::HostCpu& out) {
  MapReader reader(place);
  out = {};
  out.source = "the scenario";
  reader.required("arch", out.arch);
  reader.optional("vendor", out.vendor);
  reader.optional("family", out.family);
  reader.optional("model", out.model);
  return reader.finish();
}

Result<void> decode_c2c(const Place& place, MachineSpec& out) {
  MapReader reader(place);
  topologies::C2cLinks c2c;
  constexpr double kLeast = 1e-6;
  constexpr double kMost = 1e6;
  reader.required("link_mbps", c2c.megabytes_per_second, kLeast, kMost);
  reader.required("links", c2c.count, 1u, kMaxLinks);
  RAILYARD_TRY(reader.finish());
  out.c2c = c2c;
  out.gpu_host_class = sim::LinkClass::c2c;
  return {};
}

void read_rates(MapReader& reader, MachineSpec& out) {
  const auto rate = [&](std::string_view key, topologies::Rate& target) {
    if (reader.optional(key, target.value)) target.source = "the scenario";
  };
  rate("gpu_link", out.gpu_host);
  rate("pcie", out.pcie);
  rate("direct_nic", out.direct_nic);
  rate("smp", out.smp);
  rate("nic", out.nic);
}

Result<void> start_like(const Place& place, MachineSpec& out) {
  std::string like;
  RAILYARD_TRY(decode(place, like));
  auto machine = topologies::find_machine(like);
  if (!machine.ok()) return at(place, machine.error());
  if (machine.value().flat) return place.error("a flat machine has nothing to supply");
  out = std::move(machine).value();
  out.name = "custom";
  out.title = "like " + like;
  out.switches.clear();
  out.nics.clear();
  out.pairs.clear();
  out.direct_nic = {};
  out.nvswitch = false;
  out.nvlinks_per_gpu = 0;
  out.nodes_per_nvlink_domain = 1;
  if (!out.c2c) return {};  // where NVML does not tell of C2C, `c2c` is no key that brings it back
  out.c2c.reset();
  out.gpu_host = out.pcie;
  out.gpu_host_class = sim::LinkClass::pcie;
  return {};
}

Result<void> decode_name(const Place& place, std::string& out) {
  RAILYARD_TRY(decode(place, out));
  constexpr std::size_t kLongest = 60;
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  if (out.size() > kLongest || !std::all_of(out.begin(), out.end(), plain))
    return place.error("a name is at most 60 letters, digits, '-', '_' and '.'");
  if (topologies::find_machine(out).ok())
    return place.error(
        fmt::format("'{}' is a machine of the catalogue; another name is needed", out));
  return {};
}

// The counts that some GPUs state become all GPUs' list.
void settle_nvlinks(const std::vector<std::optional<std::uint16_t>>& own, MachineSpec& out) {
  if (std::none_of(own.begin(), own.end(), [](const auto& links) { return links.has_value(); }))
    return;
  for (const auto& links : own)
    out.gpu_nvlinks.push_back(links.value_or(static_cast<std::uint16_t>(out.nvlinks_per_gpu)));
}

void settle_nics(std::vector<sim::Bandwidth> own, MachineSpec& out) {
  if (std::all_of(own.begin(), own.end(), [](sim::Bandwidth rate) { return rate.raw() == 0; }))
    return;
  for (sim::Bandwidth& rate : own)
    if (rate.raw() == 0) rate = out.nic.value;
  out.nic = {*std::max_element(own.begin(), own.end()), "the scenario"};
  out.nic_rates = std::move(own);
}

}  // namespace

Result<void> decode(const Place& place, MachineSpec& out) {
  MapReader reader(place);
  std::vector<std::optional<std::uint16_t>> nvlinks;
  std::vector<sim::Bandwidth> rates;
  if (const auto like = reader.find_required("like")) RAILYARD_TRY(start_like(*like, out));
  if (const auto name = reader.find("name")) reader.take(decode_name(*name, out.name));
  reader.optional("sm", out.compute_capability, 1, 9999);
  if (const auto cpu = reader.find("cpu")) reader.take(decode_cpu(*cpu, out.cpu));
  if (const auto numa = reader.find_required("numa")) reader.take(decode_numa(*numa, out));
  if (const auto list = reader.find("switches")) reader.take(decode_switches(*list, out));
  if (const auto gpus = reader.find_required("gpus")) reader.take(decode_gpus(*gpus, out, nvlinks));
  if (const auto nics = reader.find("nics")) reader.take(decode_nics(*nics, out, rates));
  if (const auto links = reader.find("nvlinks")) reader.take(decode_nvlinks(*links, out));
  read_rates(reader, out);
  if (const auto c2c = reader.find("c2c")) reader.take(decode_c2c(*c2c, out));
  reader.optional("host_bridge_per_cpu", out.one_host_bridge_per_cpu);
  reader.optional("pcie_p2p", out.pcie_p2p);
  reader.optional("gpudirect", out.gpudirect);
  RAILYARD_TRY(reader.finish());
  settle_nvlinks(nvlinks, out);
  settle_nics(std::move(rates), out);
  const auto good = topologies::check_machine(out);
  return good.ok() ? Result<void>() : at(place, good.error());
}

}  // namespace railyard::scenarios
