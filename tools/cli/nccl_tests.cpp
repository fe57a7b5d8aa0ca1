#include "tools/cli/nccl_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/version.h"
#include "tools/cli/format.h"
#include "topologies/cluster.h"
#include "topologies/placement.h"

namespace railyard::cli {
namespace {

using scenarios::CollectiveRow;
using sim::Collective;

std::string_view program(Collective collective) {
  switch (collective) {
    case Collective::all_reduce: return "all_reduce_perf";
    case Collective::all_gather: return "all_gather_perf";
    case Collective::reduce_scatter: return "reduce_scatter_perf";
    case Collective::broadcast: return "broadcast_perf";
    case Collective::reduce: return "reduce_perf";
    case Collective::all_to_all: return "alltoall_perf";
    case Collective::gather: return "gather_perf";
    case Collective::scatter: return "scatter_perf";
    case Collective::send_recv: return "sendrecv_perf";
  }
  return "?";
}

std::string_view reduction(Collective collective) {
  const bool reduces = collective == Collective::all_reduce || collective == Collective::reduce ||
                       collective == Collective::reduce_scatter;
  return reduces ? "sum" : "none";
}

auto key(const CollectiveRow& row) {
  return std::tie(row.collective, row.group, row.dtype, row.root);
}

// "2(factor)" where every size is the same multiple of the one before, else "<bytes>(bytes)".
std::string step(const CollectiveBlock& rows) {
  if (rows.size() < 2) return "1048576(bytes)";
  const std::int64_t first = std::max<std::int64_t>(rows[0]->size.raw(), 1);
  const std::int64_t factor = rows[1]->size.raw() / first;
  bool geometric = factor > 1;
  for (std::size_t i = 1; i < rows.size(); ++i)
    geometric = geometric && rows[i]->size.raw() == rows[i - 1]->size.raw() * factor;
  if (geometric) return fmt::format("{}(factor)", factor);
  return fmt::format("{}(bytes)", rows[1]->size.raw() - rows[0]->size.raw());
}

std::string head(const CollectiveBlock& rows, const std::vector<DeviceLine>& devices) {
  std::int64_t least = rows.front()->size.raw();
  std::int64_t most = least;
  for (const CollectiveRow* row : rows) {
    least = std::min(least, row->size.raw());
    most = std::max(most, row->size.raw());
  }
  std::string text = fmt::format("# Collective test starting: {}\n", program(rows[0]->collective));
  text += fmt::format(
      "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {} warmup iters: 0 iters: 1 agg iters: 1 "
      "validation: 0 graph: 0\n#\n",
      least, most, step(rows));
  text += fmt::format("# Predicted by railyard {}, not measured\n#\n", sim::kVersion);
  text += "# Using devices\n";
  for (const DeviceLine& device : devices)
    text +=
        fmt::format("#  Rank {:2} Group {:2} Pid {:6} on {:>10} device {:2} [{}] {}\n", device.rank,
                    0, device.rank, device.host, device.device, "0000:00:00", device.description);
  text += "#\n";
  text += fmt::format(
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}           out-of-place               "
      "        in-place          \n",
      "", "", "", "", "");
  text += fmt::format(
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6} {:>6}  {:>7}  "
      "{:>6}  {:>6} {:>6}\n",
      "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw",
      "busbw", "#wrong");
  text += fmt::format(
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>5}  {:>7}  "
      "{:>6}  {:>6}  {:>5}\n",
      "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)",
      "");
  return text;
}

std::string line(const CollectiveRow& row) {
  const std::string half = fmt::format("  {:>7}  {:6.2f}  {:6.2f}  {:>5}",
                                       nccl_tests_time(row.time), row.algbw, row.busbw, "N/A");
  return fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:>6}{}{}\n", row.size.raw(), row.count,
                     row.dtype, reduction(row.collective), row.root, half, half);
}

}  // namespace

std::vector<CollectiveBlock> collective_blocks(const std::vector<CollectiveRow>& rows) {
  std::vector<CollectiveBlock> blocks;
  for (const CollectiveRow& row : rows) {
    if (blocks.empty() || key(*blocks.back().back()) != key(row)) blocks.emplace_back();
    blocks.back().push_back(&row);
  }
  return blocks;
}

double average_busbw(const CollectiveBlock& rows) {
  double sum = 0;
  for (const CollectiveRow* row : rows) sum += row->busbw;
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

std::string nccl_tests_time(sim::Duration time) {
  const double us = exact_us(time);
  if (us >= 10'000) return fmt::format("{:.0f}", us);
  return us >= 100 ? fmt::format("{:.1f}", us) : fmt::format("{:.2f}", us);
}

sim::Result<std::vector<DeviceLine>> device_lines(const scenarios::Scenario& scenario) {
  RAILYARD_ASSIGN(const sim::Topology topology, topologies::build(scenario.cluster));
  RAILYARD_ASSIGN(const sim::Group world, topologies::place_world(topology, scenario.ranks));
  std::vector<DeviceLine> lines;
  for (const sim::Member& member : world) {
    const sim::Node& node = topology.nodes[member.node];
    lines.push_back({member.rank.value(), node.name, member.local_index, node.machine});
  }
  return lines;
}

std::string nccl_tests_text(const std::vector<CollectiveRow>& rows,
                            const std::vector<DeviceLine>& devices) {
  std::string text;
  for (const CollectiveBlock& block : collective_blocks(rows)) {
    text += head(block, devices);
    for (const CollectiveRow* row : block) text += line(*row);
    text += "# Out of bounds values : 0 OK\n";
    text += fmt::format("# Avg bus bandwidth    : {:g} \n#\n", average_busbw(block));
    text += fmt::format("# Collective test concluded: {}\n\n", program(block[0]->collective));
  }
  return text;
}

}  // namespace railyard::cli
