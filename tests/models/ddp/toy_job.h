// A toy DDP job whose every duration is chosen by the test: kernels through their bytes (1 byte of
// HBM traffic = 1 ps), collectives through one formula (5 us + 10 ps per byte, no network).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/ddp/step.h"
#include "sim/collective.h"
#include "sim/cost.h"
#include "sim/simulation.h"

namespace railyard::test {

// The model's own time of a toy collective.
constexpr sim::Duration toy_collective(std::int64_t bytes) {
  return sim::microseconds(5) + sim::picoseconds(10 * bytes);
}

// What the run did, one entry per kernel or collective of a stream (0 compute, 1 communication).
struct ToySpan {
  int stream = 0;
  std::string name;
  sim::Duration start{};
  sim::Duration end{};
};
// "0 wgrad a 190-200" in exact microseconds: readable in a failed check.
std::string to_string(const ToySpan& span);

struct ToyOptions {
  models::DdpOptions ddp;
  std::vector<sim::HostParameters> hosts;  // by rank; their number is the number of ranks
  std::vector<sim::Duration> gaps;         // kernel gap by rank; empty = 1 us for all
  sim::Duration collective_time{};         // of every collective, instead of the formula; 0 = that
};

// Two ranks; host: 1 us per launch and hook, 3 us per collective, 2 us launch to start, 1 us from
// a collective kernel's start to its entry.
ToyOptions toy_options();

// A layer with one parameter of `elements` and kernels of these durations (us); 0 = no kernel.
struct ToyLayer {
  std::string name;
  std::int64_t elements = 250'000;  // 1 MB of gradient: a copy takes 2 us
  int forward = 20;
  int dgrad = 20;
  int wgrad = 10;
};

// Parameters are registered in the order of the list; `run_order` holds indices into it.
models::NeuralNetwork toy_network(const std::vector<ToyLayer>& layers,
                                  std::vector<std::size_t> run_order = {},
                                  models::Buffers buffers = {});

// Runs the job to its end.
class ToyJob {
 public:
  ToyJob(const models::NeuralNetwork& network, const ToyOptions& options);
  ~ToyJob();

  // Spans of `iteration` (from 1) on `rank`, by start, then stream: what starts after the previous
  // iteration's end on the compute stream. Times count from there.
  [[nodiscard]] std::vector<ToySpan> iteration(std::int64_t iteration,
                                               std::uint32_t rank = 0) const;
  // The same as text, one line each: what golden tests compare.
  [[nodiscard]] std::string text(std::int64_t iteration, std::uint32_t rank = 0) const;
  [[nodiscard]] sim::Time end_of(std::int64_t iteration, std::uint32_t rank = 0) const;
  // Picoseconds from the previous iteration's end to this one's.
  [[nodiscard]] std::int64_t step(std::int64_t iteration, std::uint32_t rank = 0) const;
  [[nodiscard]] const models::DdpProgram& program() const;
  [[nodiscard]] const sim::CollectiveRunner& runner() const;
  [[nodiscard]] const models::DdpRank& rank(std::uint32_t rank) const;
  [[nodiscard]] bool finished() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace railyard::test
