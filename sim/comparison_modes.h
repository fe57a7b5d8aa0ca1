// Store-and-forward mode, for comparison with simulators of the ASTRA-sim analytical family: whole
// chunks, whole nanoseconds, G = 2^30. Small and separate from the engine.
//
//   serialisation = floor(bytes * 1e9 / (bandwidth * 2^30)) ns
//   A link sends one chunk at a time in order of arrival; a chunk is at the next node `latency`
//   after its serialisation, and only then begins the next hop.
// Congestion-unaware: serialisation + hops * latency.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace railyard::sim {

using Nanoseconds = std::int64_t;

enum class AnalyticShape { ring, fully_connected, through_switch };

// One dimension: bidirectional ring, a link per ordered pair, or an up and a down link per node.
struct AnalyticDimension {
  AnalyticShape shape = AnalyticShape::ring;
  std::uint32_t nodes = 0;
  std::int64_t gib_per_second = 0;
  Nanoseconds latency = 0;
};

Nanoseconds analytic_serialisation(const AnalyticDimension& dimension, std::int64_t bytes);

// Without congestion, between nodes whose coordinates differ in one dimension (the first dimension
// varies fastest).
Nanoseconds analytic_delay(const std::vector<AnalyticDimension>& dimensions, std::uint32_t from,
                           std::uint32_t to, std::int64_t bytes);

class StoreForwardNetwork {
 public:
  using Arrival = std::function<void(Nanoseconds)>;
  explicit StoreForwardNetwork(const AnalyticDimension& dimension);

  // Sends a chunk by the shortest way (ring: ties clockwise) at `at`, not before now.
  void send(Nanoseconds at, std::uint32_t from, std::uint32_t to, std::int64_t bytes,
            Arrival on_arrival);
  // Calls `action` at a time; equal times in the order of the calls.
  void at(Nanoseconds time, Arrival action);
  // Until nothing is left; returns the time of the last event.
  Nanoseconds run();

 private:
  struct Event {
    Nanoseconds time;
    std::uint64_t sequence;
    Arrival action;
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };
  struct Chunk {
    std::vector<std::uint32_t> links;
    std::size_t hop = 0;
    std::int64_t bytes = 0;
    Arrival on_arrival;
  };
  [[nodiscard]] std::vector<std::uint32_t> path(std::uint32_t from, std::uint32_t to) const;
  void hop(Nanoseconds now, Chunk chunk);

  AnalyticDimension dimension_;
  std::vector<Nanoseconds> free_at_;  // by link
  std::priority_queue<Event> events_;
  std::uint64_t next_sequence_ = 0;
};

// Ring forms pass a message to the next rank, step by step; direct forms send to all others at
// once. Every message costs `endpoint` before it is sent and the rank costs `endpoint` when it is
// done; the steps that reduce add 3 floor(message / memory) ns. Splits run one after another.
enum class AnalyticAlgorithm {
  ring_reduce_scatter,  // n-1 steps of S/n
  ring_all_reduce,      // that, then n-1 steps without reduction
  ring_all_gather,      // n-1 steps of the shard S
  ring_all_to_all,      // n(n-1)/2 steps of S/n
  direct_all_to_all,    // S/n to each
  direct_all_gather     // the shard S to each
};
struct AnalyticCollective {
  AnalyticAlgorithm algorithm = AnalyticAlgorithm::ring_all_reduce;
  std::int64_t bytes = 0;  // S
  std::int64_t splits = 1;
  std::int64_t memory_gb_per_second = 1;  // 10^9
  Nanoseconds endpoint = 10;
};

// When the last rank is done.
Nanoseconds run_analytic(const AnalyticDimension& dimension, const AnalyticCollective& collective);

}  // namespace railyard::sim
