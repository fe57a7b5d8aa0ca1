#include "sim/comparison_modes.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace railyard::sim {
namespace {

std::uint32_t hops(const AnalyticDimension& dimension, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t clockwise = (to + dimension.nodes - from) % dimension.nodes;
  switch (dimension.shape) {
    case AnalyticShape::ring: return std::min(clockwise, dimension.nodes - clockwise);
    case AnalyticShape::fully_connected: return 1;
    case AnalyticShape::through_switch: return 2;
  }
  return 0;
}

// The ranks of one collective; every rank does its splits one after another.
class AnalyticRun {
 public:
  AnalyticRun(const AnalyticDimension& dimension, const AnalyticCollective& collective)
      : collective_(collective), network_(dimension), nodes_(dimension.nodes), ranks_(nodes_) {
    using A = AnalyticAlgorithm;
    const A algorithm = collective.algorithm;
    const bool whole = algorithm == A::ring_all_gather || algorithm == A::direct_all_gather;
    message_ = collective.bytes / (whole ? 1 : nodes_) / collective.splits;
    direct_ = algorithm == A::direct_all_gather || algorithm == A::direct_all_to_all;
    steps_ = nodes_ - 1;
    if (algorithm == A::ring_all_reduce) steps_ = 2 * (nodes_ - 1);
    if (algorithm == A::ring_all_to_all) steps_ = nodes_ * (nodes_ - 1) / 2;
    const bool reduces = algorithm == A::ring_all_reduce || algorithm == A::ring_reduce_scatter;
    reducing_steps_ = reduces ? nodes_ - 1 : 0;
  }

  Nanoseconds run() {
    for (std::uint32_t rank = 0; rank < nodes_; ++rank) start_split(rank, 0);
    return network_.run();
  }

 private:
  struct Rank {
    std::int64_t splits_done = 0;
    std::uint32_t received = 0;  // in this split
  };

  void start_split(std::uint32_t rank, Nanoseconds now) {
    ranks_[rank].received = 0;
    if (!direct_) return send(rank, (rank + 1) % nodes_, now);
    for (std::uint32_t distance = 1; distance < nodes_; ++distance)
      send(rank, (rank + distance) % nodes_, now);
  }

  void send(std::uint32_t from, std::uint32_t to, Nanoseconds now) {
    network_.send(now + collective_.endpoint, from, to, message_,
                  [this, to](Nanoseconds time) { receive(to, time); });
  }

  void receive(std::uint32_t rank, Nanoseconds now) {
    const std::uint32_t step = ranks_[rank].received++;
    if (step >= reducing_steps_) return advance(rank, now);
    const Nanoseconds reduction = 3 * (message_ / collective_.memory_gb_per_second);
    network_.at(now + reduction, [this, rank](Nanoseconds time) { advance(rank, time); });
  }

  void advance(std::uint32_t rank, Nanoseconds now) {
    if (ranks_[rank].received == steps_) {
      const auto done = [this, rank](Nanoseconds time) { finish_split(rank, time); };
      return network_.at(now + collective_.endpoint, done);
    }
    if (!direct_) send(rank, (rank + 1) % nodes_, now);
  }

  void finish_split(std::uint32_t rank, Nanoseconds now) {
    if (++ranks_[rank].splits_done < collective_.splits) start_split(rank, now);
  }

  const AnalyticCollective& collective_;
  StoreForwardNetwork network_;
  std::uint32_t nodes_;
  std::vector<Rank> ranks_;
  std::int64_t message_ = 0;
  bool direct_ = false;
  std::uint32_t steps_ = 0;  // messages a rank receives per split
  std::uint32_t reducing_steps_ = 0;
};

}  // namespace

Nanoseconds analytic_serialisation(const AnalyticDimension& dimension, std::int64_t bytes) {
  return bytes * 1'000'000'000 / (dimension.gib_per_second << 30);
}

Nanoseconds analytic_delay(const std::vector<AnalyticDimension>& dimensions, std::uint32_t from,
                           std::uint32_t to, std::int64_t bytes) {
  for (const AnalyticDimension& dimension : dimensions) {
    const std::uint32_t a = from % dimension.nodes;
    const std::uint32_t b = to % dimension.nodes;
    from /= dimension.nodes;
    to /= dimension.nodes;
    if (a == b) continue;
    RAILYARD_CHECK(from == to, "the coordinates differ in one dimension only");
    return analytic_serialisation(dimension, bytes) + hops(dimension, a, b) * dimension.latency;
  }
  return 0;
}

// Links: ring: n clockwise (i -> i+1), then n the other way (i -> i-1); fully connected: from * n +
// to; switch: n up, then n down.
StoreForwardNetwork::StoreForwardNetwork(const AnalyticDimension& dimension)
    : dimension_(dimension) {
  const bool pairs = dimension.shape == AnalyticShape::fully_connected;
  free_at_.assign(pairs ? dimension.nodes * dimension.nodes : 2 * dimension.nodes, 0);
}

std::vector<std::uint32_t> StoreForwardNetwork::path(std::uint32_t from, std::uint32_t to) const {
  const std::uint32_t n = dimension_.nodes;
  if (dimension_.shape == AnalyticShape::fully_connected) return {from * n + to};
  if (dimension_.shape == AnalyticShape::through_switch) return {from, n + to};
  const bool clockwise = (to + n - from) % n <= n / 2;
  std::vector<std::uint32_t> links;
  for (std::uint32_t at = from; at != to; at = clockwise ? (at + 1) % n : (at + n - 1) % n)
    links.push_back(clockwise ? at : n + at);
  return links;
}

void StoreForwardNetwork::send(Nanoseconds time, std::uint32_t from, std::uint32_t to,
                               std::int64_t bytes, Arrival on_arrival) {
  Chunk chunk{path(from, to), 0, bytes, std::move(on_arrival)};
  at(time, [this, chunk](Nanoseconds now) { hop(now, chunk); });
}

void StoreForwardNetwork::at(Nanoseconds time, Arrival action) {
  events_.push({time, next_sequence_++, std::move(action)});
}

void StoreForwardNetwork::hop(Nanoseconds now, Chunk chunk) {
  if (chunk.hop == chunk.links.size()) return chunk.on_arrival(now);
  Nanoseconds& free_at = free_at_[chunk.links[chunk.hop++]];
  free_at = std::max(free_at, now) + analytic_serialisation(dimension_, chunk.bytes);
  at(free_at + dimension_.latency, [this, chunk](Nanoseconds later) { hop(later, chunk); });
}

Nanoseconds StoreForwardNetwork::run() {
  Nanoseconds now = 0;
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now = event.time;
    event.action(now);
  }
  return now;
}

Nanoseconds run_analytic(const AnalyticDimension& dimension, const AnalyticCollective& collective) {
  return AnalyticRun(dimension, collective).run();
}

}  // namespace railyard::sim
