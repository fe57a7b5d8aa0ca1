#include <algorithm>
#include <map>
#include <set>

#include "calibrate/readers/nccl_log_builder.h"

namespace railyard::calibrate::nccl_log {
namespace {

constexpr std::size_t kOpenCommunicators = 64;  // of one size, still joined by ranks without id

template <typename Item, typename Key>
void sort_unique(std::vector<Item>& items, Key key) {
  std::stable_sort(items.begin(), items.end(),
                   [&](const Item& a, const Item& b) { return key(a) < key(b); });
  items.erase(std::unique(items.begin(), items.end(),
                          [&](const Item& a, const Item& b) { return key(a) == key(b); }),
              items.end());
}

}  // namespace

sim::Result<Log> Builder::finish() {
  if (log_.counts.messages == 0 && log_.versions.empty())
    return sim::bad_input(
        "no message of NCCL's found (lines like 'host:1:1 [0] NCCL INFO ...'); was the job run "
        "with NCCL_DEBUG=INFO?",
        log_.source);
  for (Rank& rank : log_.ranks) {
    const Process& process = log_.processes[rank.process];
    const auto header = header_.find(process.host + ":" + std::to_string(process.pid) + ":" +
                                     std::to_string(rank.device));
    if (header == header_.end()) continue;
    if (rank.rank < 0) rank.rank = header->second.rank;
    rank.gpu = header->second.gpu;
  }
  group_ranks();
  for (std::size_t i = 0; i < log_.communicators.size(); ++i) gather_communicator(i);
  return std::move(log_);
}

// Ranks with an id join by it. Those without (torn lines, logs that have none) join the latest
// communicator of their size that misses them, else open one.
void Builder::group_ranks() {
  struct Roll {  // who is there
    std::set<std::int64_t> present;
    std::size_t members = 0;
  };
  std::vector<Roll> rolls;  // parallel to log_.communicators
  std::map<std::int64_t, std::vector<std::size_t>> by_size;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::size_t> by_id;
  const auto create = [&](const Rank& rank) {
    log_.communicators.push_back(
        {.id = rank.comm_id, .id_known = rank.comm_id != 0, .rank_count = rank.rank_count});
    rolls.emplace_back();
    by_size[rank.rank_count].push_back(log_.communicators.size() - 1);
    return log_.communicators.size() - 1;
  };
  const auto join = [&](std::size_t index, std::size_t communicator) {
    Rank& rank = log_.ranks[index];
    rank.communicator = communicator;
    log_.communicators[communicator].members.push_back(index);
    if (rank.rank >= 0) rolls[communicator].present.insert(rank.rank);
    ++rolls[communicator].members;
  };
  for (std::size_t i = 0; i < log_.ranks.size(); ++i) {
    const Rank& rank = log_.ranks[i];
    if (rank.comm_id == 0) continue;
    const auto [found, is_new] = by_id.try_emplace({rank.comm_id, rank.rank_count}, kNone);
    if (is_new) found->second = create(rank);
    join(i, found->second);
  }
  for (std::size_t i = 0; i < log_.ranks.size(); ++i) {
    const Rank& rank = log_.ranks[i];
    if (rank.comm_id != 0) continue;
    std::vector<std::size_t>& open = by_size[rank.rank_count];
    const auto full = [&](std::size_t index) {
      return rank.rank_count > 0 &&
             rolls[index].members >= static_cast<std::size_t>(rank.rank_count);
    };
    const auto misses = [&](std::size_t index) {
      return !full(index) && rolls[index].present.count(rank.rank) == 0;
    };
    if (open.size() > kOpenCommunicators) {
      std::erase_if(open, full);
      if (open.size() > kOpenCommunicators)
        open.erase(open.begin(), open.end() - kOpenCommunicators / 2);
    }
    const auto found = std::find_if(open.rbegin(), open.rend(), misses);
    join(i, found != open.rend() ? *found : create(rank));
  }
}

void Builder::gather_communicator(std::size_t index) {
  Communicator& communicator = log_.communicators[index];
  std::set<std::string> hosts;
  for (const std::size_t member : communicator.members) {
    const Rank& rank = log_.ranks[member];
    const std::string& host = log_.processes[rank.process].host;
    if (hosts.insert(host).second) communicator.hosts.push_back(host);
    communicator.node_count = std::max(communicator.node_count, rank.node_count);
    Shared& shared = shared_[member];
    for (Ring& ring : shared.rings) {
      ring.whole = rank.rank_count == static_cast<std::int64_t>(ring.ranks.size());
      communicator.rings.push_back(std::move(ring));
    }
    for (NvlsHead& head : shared.nvls_heads) communicator.nvls_heads.push_back(std::move(head));
    if (shared.tuning) communicator.tuning = shared.tuning;
  }
  sort_unique(communicator.rings, [](const Ring& ring) { return ring.channel; });
  sort_unique(communicator.nvls_heads, [](const NvlsHead& head) { return head.index; });
  std::stable_sort(
      communicator.members.begin(), communicator.members.end(),
      [&](std::size_t a, std::size_t b) { return log_.ranks[a].rank < log_.ranks[b].rank; });
  translate_graphs(communicator);
}

// Bus ids in search results to ranks, where the same host's ranks say which bus id is theirs.
void Builder::translate_graphs(const Communicator& communicator) {
  std::map<std::pair<std::string, std::uint64_t>, std::int64_t> rank_of;
  for (const std::size_t member : communicator.members) {
    const Rank& rank = log_.ranks[member];
    if (rank.bus_id && rank.rank >= 0)
      rank_of[{log_.processes[rank.process].host, *rank.bus_id}] = rank.rank;
  }
  const auto translate = [&](const std::string& host, Graph& graph) {
    Graph translated = graph;
    for (GraphChannel& channel : translated.channels) {
      for (std::int64_t& gpu : channel.gpus) {
        const auto found = rank_of.find({host, static_cast<std::uint64_t>(gpu)});
        if (found == rank_of.end()) return;  // of another host (MNNVL), or not in the log
        gpu = found->second;
      }
    }
    translated.bus_ids = false;
    graph = std::move(translated);
  };
  for (const std::size_t member : communicator.members) {
    Rank& rank = log_.ranks[member];
    if (rank.mnnvl > 0) continue;  // bus ids repeat from host to host
    for (Graph& graph : rank.graphs)
      if (graph.bus_ids) translate(log_.processes[rank.process].host, graph);
  }
}

}  // namespace railyard::calibrate::nccl_log
