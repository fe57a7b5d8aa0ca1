#include "calibrate/readers/nccl_log_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/enum_table.h"

namespace railyard::calibrate::nccl_log {
namespace {

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

template <typename Items>
std::string joined(const Items& items, std::string_view separator = ", ") {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += separator;
    text += item;
  }
  return text;
}

void describe_job(const Log& log, std::string& out) {
  const Counts& counts = log.counts;
  out += fmt::format("{}: {} lines, {} messages of NCCL's, {} facts, {} torn\n", log.source,
                     counts.lines, counts.messages, counts.facts, counts.torn);
  for (const Version& version : log.versions)
    out += fmt::format("{} {} (line {})\n", version.rccl ? "RCCL" : "NCCL", version.text,
                       version.line);
  std::set<std::int64_t> drivers;
  for (const Process& process : log.processes)
    if (process.driver >= 0) drivers.insert(process.driver);
  for (const std::int64_t driver : drivers)
    out += fmt::format("CUDA driver {}.{}\n", driver / 1000, driver % 1000 / 10);
}

std::string describe(const NetDevice& device) {
  std::string text = fmt::format("[{}] {} {}", device.index, device.name, device.link);
  if (device.speed > 0) text += fmt::format(" {:g} Gb/s", static_cast<double>(device.speed) / 1e3);
  if (device.gpu_direct) text += *device.gpu_direct ? " GPU Direct" : " no GPU Direct";
  return text;
}

// Networks and variables, each once with the number of processes that say the same.
void describe_processes(const Log& log, std::string& out) {
  std::map<std::string, std::size_t> networks, variables;
  for (const Process& process : log.processes) {
    if (!process.network.empty()) {
      std::vector<std::string> devices;
      for (const NetDevice& device : process.devices) devices.push_back(describe(device));
      ++networks[process.network + (devices.empty() ? "" : ": ") + joined(devices)];
    }
    for (const Variable& variable : process.variables)
      ++variables[variable.name + "=" + variable.value];
  }
  for (const auto& [text, count] : networks)
    out += fmt::format("network {} ({} of {} processes)\n", text, count, log.processes.size());
  for (const auto& [text, count] : variables)
    out += fmt::format("{} ({} of {} processes)\n", text, count, log.processes.size());
}

void describe_graphs(const Log& log, const Communicator& communicator, std::string& out) {
  std::set<std::string> seen;
  for (const std::size_t member : communicator.members) {
    for (const Graph& graph : log.ranks[member].graphs) {
      const std::string text =
          fmt::format("{}: {} channels, bw {:g}/{:g}, {}/{}, crossNic {}, sameChannels {}",
                      sim::to_text(graph.kind), graph.channel_count, graph.bw_intra, graph.bw_inter,
                      sim::to_text(graph.type_intra), sim::to_text(graph.type_inter),
                      graph.cross_nic, graph.same_channels ? 1 : 0);
      if (seen.insert(text).second) out += fmt::format("  search {} (line {})\n", text, graph.line);
    }
  }
}

void describe_channels(const Log& log, const Communicator& communicator, std::string& out) {
  std::map<std::string, std::pair<std::size_t, Line>> counts, transports;
  std::size_t tree_ranks = 0;
  const auto add = [](auto& map, const std::string& text, Line line) {
    const auto found = map.try_emplace(text, 0U, line).first;
    ++found->second.first;
    found->second.second = std::min(found->second.second, line);
  };
  for (const std::size_t member : communicator.members) {
    const Rank& rank = log.ranks[member];
    tree_ranks += rank.trees.empty() ? 0 : 1;
    if (rank.channels)
      add(counts,
          fmt::format("{} coll, {} nvls, {} p2p, {} p2p per peer", rank.channels->coll,
                      std::max<std::int64_t>(0, rank.channels->nvls), rank.channels->p2p,
                      rank.channels->p2p_per_peer),
          rank.channels->line);
    for (const Edge& edge : rank.edges) {
      std::string text(sim::to_text(edge.transport));
      if (!edge.plugin.empty()) text += "/" + edge.plugin;
      if (edge.proxy >= 0) text += " by another rank's NIC (PXN)";
      if (!edge.detail.empty()) text += "/" + edge.detail;
      add(transports, text, edge.line);
    }
  }
  for (const auto& [text, seen] : counts)
    out += fmt::format("  channels: {} ({}, first line {})\n", text, plural(seen.first, "rank"),
                       seen.second);
  if (!communicator.rings.empty())
    out += fmt::format("  {} (line {}), trees of {}\n", plural(communicator.rings.size(), "ring"),
                       communicator.rings[0].line, plural(tree_ranks, "rank"));
  if (!communicator.nvls_heads.empty())
    out += fmt::format("  {}\n", plural(communicator.nvls_heads.size(), "NVLS head"));
  for (const auto& [text, seen] : transports)
    out += fmt::format("  via {}: {} (first line {})\n", text, plural(seen.first, "connection"),
                       seen.second);
  if (communicator.tuning)
    out += fmt::format("  tuning table (line {})\n", communicator.tuning->line);
}

void describe_choices(const Log& log, std::size_t communicator, std::string& out) {
  struct Range {
    std::int64_t low = INT64_MAX, high = 0;
    std::size_t count = 0;
    Line line = 0;
  };
  std::map<std::string, Range> ranges;
  for (const Choice& choice : log.choices) {
    if (choice.rank == kNone || log.ranks[choice.rank].communicator != communicator) continue;
    std::string text = choice.function ? std::string(sim::to_text(*choice.function)) : "?";
    if (choice.algorithm && choice.protocol) {
      text +=
          fmt::format(" {}/{}", sim::to_text(*choice.algorithm), sim::to_text(*choice.protocol));
    } else {
      text += " " + choice.kernel;
    }
    Range& range = ranges[text];
    range.low = std::min(range.low, choice.bytes);
    range.high = std::max(range.high, choice.bytes);
    if (range.count++ == 0) range.line = choice.line;
  }
  for (const auto& [text, range] : ranges)
    out += fmt::format("  chose {}: {}, {} to {} bytes (first line {})\n", text,
                       plural(range.count, "call"), range.low, range.high, range.line);
}

}  // namespace

std::string summary(const Log& log) {
  std::string out;
  describe_job(log, out);
  describe_processes(log, out);
  for (std::size_t i = 0; i < log.communicators.size(); ++i) {
    const Communicator& communicator = log.communicators[i];
    if (i == kSummaryCommunicators) {
      out += fmt::format("and {}\n", plural(log.communicators.size() - i, "communicator"));
      break;
    }
    out += fmt::format(
        "communicator {}: {} of {} ranks seen, on {}\n",
        communicator.id_known ? fmt::format("{:#x}", communicator.id) : fmt::format("#{}", i),
        communicator.members.size(),
        communicator.rank_count < 0 ? "?" : std::to_string(communicator.rank_count),
        joined(communicator.hosts));
    describe_graphs(log, communicator, out);
    describe_channels(log, communicator, out);
    describe_choices(log, i, out);
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(log.warnings.size(), 10); ++i)
    out += fmt::format("WARN {} {} (line {})\n", log.warnings[i].where, log.warnings[i].text,
                       log.warnings[i].line);
  if (log.warnings.size() > 10) out += fmt::format("and {} warnings\n", log.warnings.size() - 10);
  return out;
}

}  // namespace railyard::calibrate::nccl_log
