#include "scenarios/wait_cycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace railyard::scenarios {
namespace {

struct Wait {
  std::uint32_t missing = 0;
  std::string_view what;
};
using Waits = std::map<std::uint32_t, std::vector<Wait>>;  // by rank of the job

void add_waits(const sim::CollectiveRunner& runner, Waits& waits) {
  const auto open = std::ranges::find_if(runner.records(), [](const sim::CallRecord& record) {
    return std::ranges::find(record.end, sim::Time::max()) != record.end.end();
  });
  if (open == runner.records().end()) return;
  const sim::CollectiveCall& call = runner.schedule(open->plan).call;
  const bool message =
      call.collective == sim::Collective::scatter && call.in_place && runner.group().size() == 2;
  const std::string_view what = message ? "a message" : sim::to_text(call.collective);
  for (std::size_t a = 0; a < open->enter.size(); ++a) {
    if (open->enter[a] == sim::Time::max() || open->end[a] != sim::Time::max()) continue;
    for (std::size_t b = 0; b < open->enter.size(); ++b)
      if (open->enter[b] == sim::Time::max())
        waits[runner.group()[a].rank.value()].push_back({runner.group()[b].rank.value(), what});
  }
}

// A depth-first walk; `path` ends where it began when it finds a circle.
class Search {
 public:
  explicit Search(const Waits& waits) : waits_(waits) {}

  std::vector<std::uint32_t> cycle() {
    for (const auto& [rank, unused] : waits_)
      if (visit(rank)) return {std::ranges::find(path_, path_.back()), path_.end()};
    return {};
  }

 private:
  bool visit(std::uint32_t rank) {
    const bool again = std::ranges::find(path_, rank) != path_.end();
    if (!again && !seen_.emplace(rank, true).second) return false;
    path_.push_back(rank);
    if (again) return true;
    if (const auto found = waits_.find(rank); found != waits_.end())
      for (const Wait& wait : found->second)
        if (visit(wait.missing)) return true;
    path_.pop_back();
    return false;
  }

  const Waits& waits_;
  std::map<std::uint32_t, bool> seen_;
  std::vector<std::uint32_t> path_;
};

}  // namespace

std::string wait_cycle(const std::vector<const sim::CollectiveRunner*>& runners) {
  Waits waits;
  for (const sim::CollectiveRunner* runner : runners) add_waits(*runner, waits);
  const std::vector<std::uint32_t> cycle = Search(waits).cycle();
  if (cycle.empty()) return {};
  std::string text = fmt::format("deadlock: rank {}", cycle.front());
  for (std::size_t i = 0; i + 1 < cycle.size(); ++i) {
    const auto& from = waits.at(cycle[i]);
    const auto wait = std::ranges::find(from, cycle[i + 1], &Wait::missing);
    text += fmt::format("{} waits in {} for rank {}", i == 0 ? "" : ", which", wait->what,
                        cycle[i + 1]);
  }
  return text;
}

}  // namespace railyard::scenarios
