// The same calls in the traces of several ranks (the rule is in kineto.h).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "calibrate/readers/kineto.h"
#include "calibrate/readers/log_text.h"

namespace railyard::calibrate {
namespace {

using Group = std::pair<std::string, std::string>;  // name, ranks
using Calls = std::vector<const KinetoCollective*>;

// A trace's calls of each group, in PyTorch's order where it is numbered.
std::map<Group, Calls> calls_of(const KinetoTrace& trace) {
  std::map<Group, Calls> calls;
  for (const KinetoCollective& call : trace.collectives)
    if (call.collective) calls[{call.group, call.group_ranks}].push_back(&call);
  for (auto& [group, list] : calls) {
    const auto numbered = [](const KinetoCollective* call) { return call->sequence.has_value(); };
    if (std::all_of(list.begin(), list.end(), numbered))
      std::stable_sort(list.begin(), list.end(),
                       [](const auto* a, const auto* b) { return *a->sequence < *b->sequence; });
  }
  return calls;
}

bool same_call(const KinetoCollective& a, const KinetoCollective& b) {
  return std::tie(a.collective, a.name, a.dtype, a.bytes) ==
         std::tie(b.collective, b.name, b.dtype, b.bytes);
}

std::string describe(const KinetoCollective& call) {
  return fmt::format("{} of {} x {}", excerpt(call.name.empty() ? call.kernel : call.name),
                     call.elements_in, excerpt(call.dtype));
}

class Merger {
 public:
  KinetoMerge merge(const std::vector<KinetoTrace>& traces) {
    std::map<Group, std::vector<std::pair<const KinetoTrace*, Calls>>> groups;
    std::set<std::int64_t> ranks;
    for (const KinetoTrace& trace : traces) {
      if (trace.rank >= 0 && !ranks.insert(trace.rank).second)
        notes_.add(0, fmt::format("two traces of rank {}", trace.rank));
      for (auto& [group, calls] : calls_of(trace))
        groups[group].emplace_back(&trace, std::move(calls));
      for (const std::string& device : trace.devices) add_distinct(out_.devices, device);
    }
    for (const auto& [group, members] : groups) merge_group(group, members);
    out_.notes = notes_.take();
    return std::move(out_);
  }

 private:
  void merge_group(const Group& group,
                   const std::vector<std::pair<const KinetoTrace*, Calls>>& members) {
    std::size_t longest = 0, shortest = SIZE_MAX;
    for (const auto& member : members) {
      longest = std::max(longest, member.second.size());
      shortest = std::min(shortest, member.second.size());
    }
    const std::int64_t size = members.front().second.front()->group_size;
    if (size > 0 && static_cast<std::int64_t>(members.size()) < size)
      notes_.add(0, fmt::format("group {} has {} ranks, {} of them are here: durations may contain "
                                "waiting",
                                excerpt(group.first), size, members.size()));
    if (shortest != longest)
      notes_.add(0, fmt::format("group {}: between {} and {} calls on its ranks; the first {} are "
                                "compared",
                                excerpt(group.first), shortest, longest, shortest));
    std::size_t different = 0;
    const KinetoCollective* first = nullptr;
    for (std::size_t i = 0; i < shortest; ++i)
      if (!merge_call(members, i)) {
        if (different++ == 0) first = members.front().second[i];
      }
    if (different != 0)
      notes_.add(0,
                 fmt::format("group {}: {} calls differ between ranks and are left out, first {}",
                             excerpt(group.first), different, describe(*first)));
  }

  bool merge_call(const std::vector<std::pair<const KinetoTrace*, Calls>>& members, std::size_t i) {
    KinetoMerged merged;
    merged.call = *members.front().second[i];
    merged.shortest_ns = INT64_MAX;
    for (const auto& member : members) {
      const KinetoCollective& call = *member.second[i];
      if (!same_call(*members.front().second[i], call)) return false;
      const std::int64_t ns = call.end_ns - call.start_ns;
      merged.longest_ns = std::max(merged.longest_ns, ns);
      ++merged.traces;
      if (ns >= merged.shortest_ns) continue;
      merged.shortest_ns = ns;
      merged.call = call;
      merged.source = member.first->source;
    }
    out_.calls.push_back(std::move(merged));
    return true;
  }

  KinetoMerge out_;
  Notes notes_;
};

}  // namespace

KinetoMerge merge_kineto(const std::vector<KinetoTrace>& traces) { return Merger().merge(traces); }

std::vector<Measurement> measurements(const KinetoMerge& merge) {
  std::vector<Measurement> all;
  for (const KinetoMerged& merged : merge.calls) {
    const KinetoCollective& call = merged.call;
    if (!call.collective || !call.bytes || call.uneven || merged.shortest_ns <= 0) continue;
    Measurement m;
    m.kind = MeasurementKind::collective;
    m.test = call.name;
    m.collective = call.collective;
    m.bytes = call.bytes;
    m.us = static_cast<double>(merged.shortest_ns) / 1e3;
    m.ranks = call.group_size;
    m.datatype = call.dtype;
    m.devices = merge.devices;
    m.file = merged.source;
    all.push_back(std::move(m));
  }
  return all;
}

}  // namespace railyard::calibrate
