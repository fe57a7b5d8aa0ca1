#include <fmt/format.h>

#include <algorithm>

#include "sim/enum_table.h"
#include "tools/cli/nccl_compare_parts.h"

namespace railyard::cli::compare_parts {
namespace {

// The order from rank 0, whichever rank it is written from.
std::vector<std::int64_t> from_zero(const std::vector<std::uint32_t>& ring) {
  std::vector<std::int64_t> order(ring.begin(), ring.end());
  std::rotate(order.begin(), std::find(order.begin(), order.end(), 0), order.end());
  return order;
}

// Children as a set: their order has no meaning.
template <typename Number>
std::vector<std::int64_t> children(const std::array<Number, 3>& down) {
  std::vector<std::int64_t> found;
  for (const Number rank : down)
    if (rank >= 0) found.push_back(rank);
  std::sort(found.begin(), found.end());
  return found;
}

std::string describe(const NcclPrediction::Transport& transport) {
  std::string text(sim::to_text(transport.kind));
  if (transport.device) text += fmt::format("/{}", *transport.device);
  if (transport.proxy.value_or(-1) >= 0) text += fmt::format("({})", *transport.proxy);
  if (transport.gpu_direct.value_or(false)) text += "/GDRDMA";
  return text;
}

// The log's transport, of what the plan says about it.
NcclPrediction::Transport as_planned(const log::Edge& edge,
                                     const NcclPrediction::Transport& planned) {
  NcclPrediction::Transport logged{.kind = edge.transport};
  if (edge.transport != log::Transport::net && edge.transport != log::Transport::collnet)
    return logged;
  if (planned.device) logged.device = edge.device;
  if (planned.proxy) logged.proxy = edge.proxy;
  if (planned.gpu_direct) logged.gpu_direct = edge.gpu_direct;
  return logged;
}

}  // namespace

void compare_rings(const Context& context, Comparison& comparison) {
  Tally tally("ring orders");
  const auto& rings = context.plan.rings;
  for (const log::Ring& logged : context.communicator.rings) {
    if (rings.empty()) break;
    const auto channel = static_cast<std::size_t>(logged.channel);
    if (logged.channel < 0 || channel >= rings.size() || !logged.whole) {
      tally.skip();
      continue;
    }
    const std::vector<std::int64_t> planned = from_zero(rings[channel]);
    tally.add(planned == logged.ranks, [&] {
      return Difference{fmt::format("ring of channel {}", channel), list(planned),
                        list(logged.ranks), logged.line};
    });
  }
  tally.move_to(comparison);

  Tally hops("ring neighbours");  // every rank's own; the list is rank 0's
  for (const std::size_t member : context.communicator.members) {
    const log::Rank& rank = context.log.ranks[member];
    for (const log::RingHop& hop : rank.ring_hops) {
      if (rings.empty()) break;
      const auto channel = static_cast<std::size_t>(hop.channel);
      if (hop.channel < 0 || channel >= rings.size()) {
        hops.skip();
        continue;
      }
      const std::vector<std::uint32_t>& ring = rings[channel];
      const auto own = std::find(ring.begin(), ring.end(), static_cast<std::uint32_t>(rank.rank));
      if (own == ring.end()) {
        hops.skip();
        continue;
      }
      const auto at = static_cast<std::size_t>(own - ring.begin());
      const std::int64_t prev = ring[(at + ring.size() - 1) % ring.size()];
      const std::int64_t next = ring[(at + 1) % ring.size()];
      hops.add(prev == hop.prev && next == hop.next, [&] {
        return Difference{fmt::format("ring of channel {} at rank {}", channel, rank.rank),
                          fmt::format("{} -> {} -> {}", prev, rank.rank, next),
                          fmt::format("{} -> {} -> {}", hop.prev, rank.rank, hop.next), hop.line};
      });
    }
  }
  hops.move_to(comparison);
}

void compare_trees(const Context& context, Comparison& comparison) {
  Tally tally("trees");
  const auto& trees = context.plan.trees;
  for (const std::size_t member : context.communicator.members) {
    const log::Rank& rank = context.log.ranks[member];
    for (const log::Tree& logged : rank.trees) {
      if (trees.empty()) break;
      const auto channel = static_cast<std::size_t>(logged.channel);
      const auto number = static_cast<std::size_t>(rank.rank);
      if (logged.channel < 0 || channel >= trees.size() || rank.rank < 0 ||
          number >= trees[channel].size()) {
        tally.skip();
        continue;
      }
      const sim::TreeEdges& planned = trees[channel][number];
      const auto mine = children(planned.down), theirs = children(logged.down);
      tally.add(planned.up == logged.up && mine == theirs, [&] {
        return Difference{fmt::format("tree of channel {} at rank {}", channel, rank.rank),
                          fmt::format("up {}, down {}", planned.up, list(mine)),
                          fmt::format("up {}, down {}", logged.up, list(theirs)), logged.line};
      });
    }
  }
  tally.move_to(comparison);
}

void compare_heads(const Context& context, Comparison& comparison) {
  Tally tally("NVLS heads");
  const auto& heads = context.plan.nvls_heads;
  for (const log::NvlsHead& logged : context.communicator.nvls_heads) {
    if (heads.empty()) break;
    const auto index = static_cast<std::size_t>(logged.index);
    if (logged.index < 0 || index >= heads.size()) {
      tally.skip();
      continue;
    }
    const bool same = std::equal(heads[index].begin(), heads[index].end(), logged.ranks.begin(),
                                 logged.ranks.end());
    tally.add(same, [&] {
      return Difference{fmt::format("NVLS head {}", index), list(heads[index]), list(logged.ranks),
                        logged.line};
    });
  }
  tally.move_to(comparison);
}

void compare_transports(const Context& context, Comparison& comparison) {
  Tally tally("transports");
  if (!context.plan.transport) return;
  for (const std::size_t member : context.communicator.members) {
    for (const log::Edge& edge : context.log.ranks[member].edges) {
      const auto planned = context.plan.transport(edge);
      if (!planned) {
        tally.skip();
        continue;
      }
      const bool same = describe(*planned) == describe(as_planned(edge, *planned));
      tally.add(same, [&] {
        const NcclPrediction::Transport whole{
            edge.transport, edge.device < 0 ? std::nullopt : std::optional(edge.device), edge.proxy,
            edge.gpu_direct};
        return Difference{fmt::format("channel {} from {} to {}{}", edge.channel, edge.from,
                                      edge.to, edge.connection == 1 ? " (send/recv)" : ""),
                          describe(*planned), describe(whole), edge.line};
      });
    }
  }
  tally.move_to(comparison);
}

}  // namespace railyard::cli::compare_parts
