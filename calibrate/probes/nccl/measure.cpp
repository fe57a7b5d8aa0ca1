#include "calibrate/probes/nccl/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "calibrate/probes/common/agreement.h"

namespace railyard::probe::nccl {
namespace {

constexpr int kWarmUp = 3;
constexpr double kSampleUs = 200;  // one sample lasts about this long at least
constexpr double kMostCalls = 20, kMostSamples = 40, kFewestSamples = 5;

struct Effort {
  int calls = 1, samples = 1;
};

void wait_for_all(const Ranks& ranks) {
  for (const auto& rank : ranks.local()) rank->stream.wait();
}

// Time of one of `calls` calls, of this process's slowest rank.
double sample(const Operation& operation, const Ranks& ranks, std::size_t count, int calls) {
  for (const auto& rank : ranks.local()) {
    const OnDevice here(rank->device());
    PROBE_CUDA(cudaEventRecord(rank->start, rank->stream));
  }
  for (int i = 0; i < calls; ++i) enqueue(operation, ranks, count);
  for (const auto& rank : ranks.local()) {
    const OnDevice here(rank->device());
    PROBE_CUDA(cudaEventRecord(rank->stop, rank->stream));
  }
  double slowest = 0;
  for (const auto& rank : ranks.local()) {
    PROBE_CUDA(cudaEventSynchronize(rank->stop));
    float milliseconds = 0;
    PROBE_CUDA(cudaEventElapsedTime(&milliseconds, rank->start, rank->stop));
    slowest = std::max(slowest, static_cast<double>(milliseconds) * 1e3 / calls);
  }
  return slowest;
}

// Rank 0 decides from its own trial for all, so that everybody makes the same calls.
Effort agree(const Ranks& ranks, const std::string& cell, double once, double seconds) {
  const auto bounded = [](double value, double least, double most) {
    return static_cast<int>(std::clamp(std::ceil(value), least, most));
  };
  Effort effort;
  effort.calls = bounded(kSampleUs / std::max(once, 0.1), 1, kMostCalls);
  effort.samples =
      bounded(seconds * 1e6 / (std::max(once, 0.1) * effort.calls), kFewestSamples, kMostSamples);
  Store* store = ranks.store();
  if (store == nullptr) return effort;
  effort.calls = static_cast<int>(number_of_first(*store, cell + "/calls", effort.calls));
  effort.samples = static_cast<int>(number_of_first(*store, cell + "/samples", effort.samples));
  return effort;
}

void measure_cell(const Ranks& ranks, const Operation& operation, std::int64_t bytes,
                  double seconds, Report& report) {
  const std::size_t count = count_of(operation, bytes, ranks.world());
  if (count == 0) return;
  const std::string cell = std::string(operation.name) + "/" + std::to_string(bytes);
  for (int i = 0; i < kWarmUp; ++i) enqueue(operation, ranks, count);
  wait_for_all(ranks);
  if (ranks.store() != nullptr) ranks.store()->barrier("warm/" + cell);
  const Effort effort = agree(ranks, cell, sample(operation, ranks, count, 1), seconds);
  sample(operation, ranks, count, effort.calls);
  std::vector<double> samples;
  for (int i = 0; i < effort.samples; ++i)
    samples.push_back(sample(operation, ranks, count, effort.calls));
  if (ranks.store() != nullptr) samples = slowest(*ranks.store(), cell, samples);
  const Labels labels = {{"operation", operation.name}, {"ranks", std::to_string(ranks.world())}};
  report.rows.push_back(
      {"nccl.operation", labels, bytes, bytes, summarize(std::move(samples)), {}, ""});
  const double modelled = estimate(operation, ranks, count);
  if (modelled > 0)
    report.rows.push_back({"nccl.estimate", labels, bytes, bytes, summarize({modelled}), {}, ""});
}

}  // namespace

void measure_creation(Ranks& ranks, Report& report) {
  for (int nth = 1; nth <= 2; ++nth) {
    if (nth > 1) ranks.destroy();
    const double time = ranks.create(std::to_string(nth));
    report.rows.push_back({"nccl.comm_create",
                           {{"nth", std::to_string(nth)}, {"ranks", std::to_string(ranks.world())}},
                           0,
                           0,
                           summarize({time}),
                           {},
                           ""});
  }
}

void measure_operations(const Ranks& ranks, const Plan& plan, Report& report,
                        const HandOver& hand_over) {
  for (const std::string& name : plan.operations) {
    const Operation& operation = operation_of(name);
    try {
      for (const std::int64_t bytes : plan.sizes)
        measure_cell(ranks, operation, bytes, plan.seconds, report);
    } catch (const ProbeError& error) {
      report.notes.push_back(name + ": " + error.what());
      // Other processes may wait for this one by now; alone, the next operation can be tried.
      if (ranks.store() != nullptr)
        throw ProbeError("the operations after " + name + " are left out");
    }
    hand_over(report);
  }
}

}  // namespace railyard::probe::nccl
