// Flows drawn from traffic patterns. Integers only, so that every machine draws the same.
#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "scenarios/scenario.h"
#include "sim/random.h"

namespace railyard::scenarios {
namespace {

constexpr std::uint64_t kMaxFlows = 100'000'000;

using sim::Random;

class Generator {
 public:
  Generator(const TrafficPattern& pattern, std::uint32_t ranks, std::uint64_t seed)
      : pattern_(pattern), ranks_(ranks), random_(seed) {}

  void append(std::vector<Flow>& out) {
    switch (pattern_.pattern) {
      case Pattern::all_to_all: return all_to_all(out);
      case Pattern::permutation: return permutation(out);
      case Pattern::incast: return incast(out);
      case Pattern::uniform: return uniform(out);
    }
  }

  [[nodiscard]] std::uint64_t flows() const {
    if (pattern_.pattern == Pattern::all_to_all) return std::uint64_t{ranks_} * (ranks_ - 1);
    return pattern_.pattern == Pattern::uniform ? pattern_.count : ranks_;
  }

 private:
  void add(std::uint32_t from, std::uint32_t to, std::vector<Flow>& out) {
    out.push_back({from, to, draw_size(), pattern_.start});
  }

  sim::Bytes draw_size() {
    const auto reach =
        static_cast<std::int64_t>(static_cast<double>(pattern_.size.raw()) * pattern_.spread);
    if (reach == 0) return pattern_.size;
    const auto offset = random_.below(2 * static_cast<std::uint64_t>(reach) + 1);
    return pattern_.size + sim::bytes(static_cast<std::int64_t>(offset) - reach);
  }

  void all_to_all(std::vector<Flow>& out) {
    for (std::uint32_t from = 0; from < ranks_; ++from)
      for (std::uint32_t step = 1; step < ranks_; ++step) add(from, (from + step) % ranks_, out);
  }

  // Sattolo's shuffle: one cycle through all ranks, so nobody sends to itself.
  void permutation(std::vector<Flow>& out) {
    std::vector<std::uint32_t> to(ranks_);
    std::iota(to.begin(), to.end(), 0U);
    for (std::uint32_t i = ranks_ - 1; i > 0; --i) std::swap(to[i], to[random_.below32(i)]);
    for (std::uint32_t from = 0; from < ranks_; ++from) add(from, to[from], out);
  }

  // The first `count` of a shuffle of the other ranks.
  void incast(std::vector<Flow>& out) {
    std::vector<std::uint32_t> senders(ranks_ - 1);
    for (std::uint32_t i = 0; i + 1 < ranks_; ++i) senders[i] = i < pattern_.to ? i : i + 1;
    const auto n = static_cast<std::uint32_t>(senders.size());
    const std::uint32_t count = pattern_.count == 0 ? n : pattern_.count;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::swap(senders[i], senders[i + random_.below32(n - i)]);
      add(senders[i], pattern_.to, out);
    }
  }

  void uniform(std::vector<Flow>& out) {
    for (std::uint32_t i = 0; i < pattern_.count; ++i) {
      const std::uint32_t from = random_.below32(ranks_);
      const std::uint32_t other = random_.below32(ranks_ - 1);
      add(from, other < from ? other : other + 1, out);
    }
  }

  const TrafficPattern& pattern_;
  std::uint32_t ranks_;
  Random random_;
};

}  // namespace

Result<void> check_traffic(const Flow& flow, std::uint32_t ranks) {
  if (flow.from < ranks && flow.to < ranks) return {};
  return sim::bad_input(
      fmt::format("a flow from rank {} to rank {}: there are {} ranks", flow.from, flow.to, ranks));
}

Result<void> check_traffic(const TrafficPattern& pattern, std::uint32_t ranks) {
  if (ranks < 2) return sim::bad_input("a traffic pattern needs at least two ranks");
  if (pattern.pattern != Pattern::incast) return {};
  if (pattern.to >= ranks)
    return sim::bad_input(fmt::format("incast to rank {}: there are {} ranks", pattern.to, ranks));
  if (pattern.count >= ranks)
    return sim::bad_input(
        fmt::format("incast from {} ranks: there are {} others", pattern.count, ranks - 1));
  return {};
}

Result<std::vector<Flow>> expand_traffic(const Traffic& traffic, std::uint32_t ranks,
                                         std::uint64_t scenario_seed) {
  std::vector<Flow> flows = traffic.flows;
  for (const Flow& flow : flows) RAILYARD_TRY(check_traffic(flow, ranks));
  for (std::size_t i = 0; i < traffic.patterns.size(); ++i) {
    const TrafficPattern& pattern = traffic.patterns[i];
    RAILYARD_TRY(check_traffic(pattern, ranks));
    // Two patterns without a seed of their own must not draw the same numbers.
    Generator generator(pattern, ranks, pattern.seed.value_or(scenario_seed + i));
    if (flows.size() + generator.flows() > kMaxFlows)
      return sim::bad_input(fmt::format("traffic of more than {} flows", kMaxFlows));
    generator.append(flows);
  }
  return flows;
}

}  // namespace railyard::scenarios
