// Runs the program of a training scheme: a scheme says what it is, this makes communicators, ranks
// and a report of it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/nn/network.h"
#include "models/workload/rank.h"
#include "scenarios/run_parts.h"
#include "scenarios/training_result.h"
#include "scenarios/training_spec.h"
#include "scenarios/workload.h"

namespace railyard::scenarios {

// A scheme's program in the terms of a run. What is pointed to must outlive the run.
struct TrainingProgram {
  std::string scheme;
  std::string_view key;  // the scenario's, for places in errors
  const TrainingSpec* spec = nullptr;
  const models::NeuralNetwork* network = nullptr;  // null: not known, and `model` is its name
  std::string model;
  const models::CallTable* calls = nullptr;
  models::CallTable* open_calls = nullptr;  // the same, where calls are added while it runs
  // Names, by the program's groups; a name may stand twice: two communicators of the same ranks.
  std::vector<std::string> groups;
  std::vector<std::string> labels;   // what the report calls them; empty: their names
  std::vector<std::string> streams;  // that it adds behind compute and the groups'
  std::function<sim::Task(models::WorkloadRank&)> start;
  std::vector<std::uint32_t> stages;  // the first rank of every pipeline stage; empty: no pipeline
  double samples_per_step = 0;        // of one rank
  double data_ranks = 0;              // how many ranks work on samples of their own
  sim::Duration compute_alone{};      // kernels of one iteration
  std::vector<MemoryRow> memory;
  std::function<std::vector<std::string>()> notes;  // what the run should say, asked at its end
  std::optional<sim::HostParameters> host;          // where not the profile's
  double launches = 0;  // host operations of a rank and iteration, about
};

// A workload that is a training scheme: it says what its program is, the rest is the same for all.
class TrainingWorkload : public Workload {
 public:
  Result<void> add_estimate(const Scenario& scenario, Bound& bound, Estimate& estimate) const final;
  // Reports into context.result.training.
  Result<void> run(RunContext& context) const final;

 protected:
  using Use = std::function<Result<void>(const TrainingProgram&)>;
  // Builds the program and calls `use` with it; what it points to lives until `use` returns.
  virtual Result<void> with_program(const Scenario& scenario, Bound& bound, sim::Trace& trace,
                                    const Use& use) const = 0;
};

// The communicators of a named group are as large as each other; how large. Error: the group does
// not exist.
Result<std::size_t> group_size(Bound& bound, const std::string& group);

}  // namespace railyard::scenarios
