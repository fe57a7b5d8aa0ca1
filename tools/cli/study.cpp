#include "tools/cli/study.h"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <mutex>

#include "scenarios/document.h"

namespace railyard::cli {
namespace {

using scenarios::ExplorePoint;
using scenarios::Node;
using scenarios::Objective;
using scenarios::Scenario;
using sim::Result;

constexpr std::string_view kDefaultText = "default";

// The value at a dotted path, or null.
const Node* value_at(const Node& root, std::string_view path) {
  const Node* at = &root;
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string_view step = path.substr(0, dot);
    path.remove_prefix(std::min(dot + 1, path.size()));
    std::size_t index = 0;
    if (at->kind == Node::Kind::map) {
      at = at->find(step);
    } else if (at->kind == Node::Kind::list &&
               std::from_chars(step.data(), step.data() + step.size(), index).ec == std::errc() &&
               index < at->items.size()) {
      at = &at->items[index];
    } else {
      at = nullptr;
    }
  }
  return at;
}

std::size_t count_changed(const Node& root, const ExplorePoint& point) {
  return static_cast<std::size_t>(
      std::count_if(point.begin(), point.end(), [&](const scenarios::Setting& setting) {
        const Node* own = value_at(root, setting.path);
        return own == nullptr || !scenarios::same_value(*own, setting.node);
      }));
}

Result<void> check_objective(const Scenario& scenario) {
  const Objective objective = scenario.explore->objective;
  const bool for_training =
      objective == Objective::step_time || objective == Objective::exposed_communication;
  const bool collective = scenario.ddp || !scenario.collectives.empty();
  if ((for_training && !trains(scenario)) || (objective == Objective::busbw && !collective))
    return sim::bad_input(
        fmt::format("objective {} needs {}", sim::to_text(objective),
                    for_training ? "a training workload" : "collectives or a `ddp:` block"),
        "explore.objective");
  return {};
}

// What one simulation came to, and whether that is for good: what was refused or met a limit may
// go better with other options and is tried again by the next call.
struct Finished {
  PointResult result;
  bool lasting = false;
};

Finished refused(std::string why) {
  Finished out;
  out.result.error = std::move(why);
  return out;
}

// Only an interruption is an error.
Result<Finished> simulate(const Result<Scenario>& scenario, const scenarios::RunOptions& options) {
  if (!scenario.ok()) return refused(scenario.error().text());
  const auto result = scenarios::run(scenario.value(), options);
  const auto* interrupted = options.limits.interrupted;
  if (interrupted != nullptr && interrupted->load())
    return sim::Error{sim::ErrorCode::interrupted, "interrupted", ""};
  if (!result.ok()) return refused(result.error().text());
  if (result.value().outcome != sim::EventQueue::Outcome::drained)
    return refused("stopped by a limit");
  return Finished{point_result(result.value()), true};
}

// Looks the simulation up, or runs it and writes it down.
Result<PointResult> obtain(const Result<Scenario>& scenario, Journal& journal,
                           const scenarios::RunOptions& options) {
  std::string key = scenario.ok() ? point_key(scenario.value()) : std::string();
  if (options.sensitivity) key += "+sensitivity";
  if (const PointResult* known = journal.find(key)) return *known;
  RAILYARD_ASSIGN(const Finished done, simulate(scenario, options));
  if (done.lasting) RAILYARD_TRY(journal.append(key, done.result));
  return done.result;
}

// The points still to run, dealt out to the workers in grid order.
class Workers {
 public:
  Workers(Study& study, Journal& journal, const StudyOptions& options)
      : study_(study), journal_(journal), options_(options) {
    slots_.push_back(&study.own);
    for (StudyPoint& point : study.points) slots_.push_back(&point.result);
  }

  Result<void> run() {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                    std::max<std::size_t>(options_.jobs, 1));
    tbb::task_arena arena(static_cast<int>(std::max<std::size_t>(options_.jobs, 1)));
    arena.execute([this] {
      tbb::parallel_for(
          std::size_t{0}, std::max<std::size_t>(options_.jobs, 1),
          [this](std::size_t /*worker*/) { work(); }, tbb::simple_partitioner());
    });
    // oneTBB has waited for the workers; this says so to ThreadSanitizer, which cannot see it.
    ended_.load(std::memory_order_acquire);
    if (failed_) return *failed_;
    return {};
  }

 private:
  void work() {
    for (std::size_t slot = next_++; slot < slots_.size() && !stop_; slot = next_++) {
      const Result<void> done = run_one(slot);
      const std::lock_guard lock(mutex_);
      if (!done.ok() && !failed_) failed_ = done.error();
      if (!done.ok()) stop_ = true;
      if (done.ok() && options_.finished) options_.finished(++finished_, slots_.size());
    }
    ended_.fetch_add(1, std::memory_order_release);
  }

  Result<void> run_one(std::size_t slot) {
    // The scenario as it is may be one of the points; then that one is run and copied.
    if (slot == 0 && study_.own_point) return {};
    const Result<Scenario> scenario =
        slot == 0 ? scenarios::scenario_at(study_.scenario, {}) : scenario_of(study_, slot - 1);
    RAILYARD_ASSIGN(*slots_[slot], obtain(scenario, journal_, {.limits = options_.limits}));
    return {};
  }

  Study& study_;
  Journal& journal_;
  const StudyOptions& options_;
  std::vector<PointResult*> slots_;  // the scenario as it is, then the points
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> ended_{0};
  std::mutex mutex_;
  std::size_t finished_ = 0;
  std::optional<sim::Error> failed_;
};

}  // namespace

Result<Study> prepare_study(Scenario scenario) {
  if (!scenario.explore)
    return sim::bad_input(
        "the scenario has no `explore:` block, so there is nothing to vary; for one run use "
        "`railyard run`",
        scenario.document->name);
  RAILYARD_TRY(check_objective(scenario));
  Study study;
  study.objective = scenario.explore->objective;
  study.settings = scenarios::explore_points(scenario);
  const Node& root = scenario.document->root;
  for (const scenarios::Axis& axis : scenario.explore->axes) {
    const Node* own = value_at(root, axis.path);
    study.axes.push_back(axis.path);
    study.own_values.push_back(own == nullptr ? std::string(kDefaultText)
                                              : scenarios::to_flow_yaml(*own));
  }
  for (const ExplorePoint& settings : study.settings) {
    StudyPoint point;
    for (const scenarios::Setting& setting : settings) point.values.push_back(setting.value);
    point.changed = count_changed(root, settings);
    if (point.changed == 0 && !study.own_point) study.own_point = study.points.size();
    study.points.push_back(std::move(point));
  }
  study.scenario = std::move(scenario);
  return study;
}

Result<void> run_study(Study& study, Journal& journal, const StudyOptions& options) {
  RAILYARD_TRY(Workers(study, journal, options).run());
  if (study.own_point) study.own = study.points[*study.own_point].result;
  return {};
}

Result<PointResult> sensitivity_of(const Study& study, std::size_t point, Journal& journal,
                                   const scenarios::RunLimits& limits) {
  return obtain(scenario_of(study, point), journal, {.limits = limits, .sensitivity = true});
}

Result<Scenario> scenario_of(const Study& study, std::size_t point) {
  return scenarios::scenario_at(study.scenario, study.settings[point]);
}

}  // namespace railyard::cli
