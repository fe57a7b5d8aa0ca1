#include "models/zero/parameter_trace.h"

#include <algorithm>
#include <deque>

namespace railyard::models {
namespace {

class Coordinator {
 public:
  Coordinator(const TracedModel& model, const TraceLimits& limits, Pass pass, bool secondary,
              std::vector<bool>& has_secondary)
      : model_(model),
        limits_(limits),
        complete_(pass != Pass::recording),
        secondary_(secondary),
        has_secondary_(has_secondary),
        status_(model.elements.size(), Status::away),
        fetched_for_(model.elements.size(), -1) {
    // Persistent parameters are partitioned before the first pass, too.
    for (std::size_t p = 0; p < status_.size(); ++p)
      if (complete_ && model.persistent[p]) status_[p] = Status::here;
    for (std::size_t m = 0; m < model.modules.size(); ++m)
      for (const std::uint32_t p : model.modules[m]) queue_.push_back({p, m});
  }

  TracePlan plan() {
    TracePlan plan;
    for (step_ = 0; step_ < model_.modules.size(); ++step_) {
      FetchStep& step = plan.steps.emplace_back();
      fetch(step);
      if (complete_) prefetch(step);
      plan.most_live = std::max(plan.most_live, live_);
      release(step);
    }
    return plan;
  }

 private:
  enum class Status : std::uint8_t { away, on_its_way, here };
  struct Use {
    std::uint32_t parameter;
    std::size_t step;
  };

  void gather(const std::vector<std::uint32_t>& parameters, std::vector<GatherSet>& out) {
    GatherSet whole;
    GatherSet second{{}, true};
    for (const std::uint32_t p : parameters) {
      status_[p] = Status::on_its_way;
      live_ += model_.elements[p];
      (has_secondary_[p] ? second : whole).parameters.push_back(p);
    }
    for (GatherSet* set : {&second, &whole}) {
      std::ranges::sort(set->parameters);
      if (!set->parameters.empty()) out.push_back(std::move(*set));
    }
  }

  void fetch(FetchStep& step) {
    std::vector<std::uint32_t> missing;
    for (const std::uint32_t p : model_.modules[step_])
      if (status_[p] == Status::away) missing.push_back(p);
    gather(missing, step.fetch);
    for (const std::uint32_t p : model_.modules[step_]) {
      if (status_[p] == Status::on_its_way) step.waits.push_back(p);
      status_[p] = Status::here;
    }
  }

  void note_fetch(const Use& use) {
    fetched_for_[use.parameter] =
        std::max(fetched_for_[use.parameter], static_cast<std::int64_t>(use.step));
  }

  void prefetch(FetchStep& step) {
    // What this module needs leaves the queue, unless an earlier prefetch took it out.
    std::size_t own = 0;
    for (const std::uint32_t p : model_.modules[step_])
      if (fetched_for_[p] < static_cast<std::int64_t>(step_)) ++own;
    for (; own > 0 && !queue_.empty(); --own) {
      note_fetch(queue_.front());
      queue_.pop_front();
    }
    if (limits_.prefetch_bucket_size == 0) return;
    const std::int64_t most =
        std::min(limits_.max_live_parameters - live_, limits_.prefetch_bucket_size);
    std::vector<std::uint32_t> next;
    std::int64_t elements = 0;
    while (!queue_.empty() && elements < most) {
      const Use use = queue_.front();
      queue_.pop_front();
      note_fetch(use);
      const bool taken = std::ranges::find(next, use.parameter) != next.end();
      if (status_[use.parameter] != Status::away || taken) continue;
      next.push_back(use.parameter);
      elements += model_.elements[use.parameter];
    }
    gather(next, step.prefetch);
  }

  // fetch_sub_module() has moved on to the next step when a module is released.
  [[nodiscard]] bool reused_soon(std::uint32_t parameter) const {
    std::int64_t passed = 0;
    for (std::size_t m = step_ + 1;
         m < model_.modules.size() && passed < limits_.max_reuse_distance; ++m)
      for (const std::uint32_t p : model_.modules[m]) {
        if (p == parameter) return true;
        passed += model_.elements[p];
      }
    return false;
  }

  [[nodiscard]] bool releases(std::uint32_t parameter) const {
    if (!complete_) return true;
    return !model_.persistent[parameter] &&
           fetched_for_[parameter] <= static_cast<std::int64_t>(step_ + 1) &&
           !reused_soon(parameter);
  }

  void release(FetchStep& step) {
    for (const std::uint32_t p : model_.modules[step_]) {
      if (!releases(p)) continue;
      status_[p] = Status::away;
      live_ -= model_.elements[p];
      if (!secondary_ || step_ >= model_.forward_modules || has_secondary_[p]) continue;
      has_secondary_[p] = true;
      step.keeps_secondary.push_back(p);
    }
  }

  const TracedModel& model_;
  const TraceLimits& limits_;
  bool complete_;
  bool secondary_;
  std::vector<bool>& has_secondary_;
  std::vector<Status> status_;
  std::vector<std::int64_t> fetched_for_;  // the last step a parameter was fetched for
  std::deque<Use> queue_;
  std::size_t step_ = 0;
  std::int64_t live_ = 0;
};

}  // namespace

TracePlan plan_trace(const TracedModel& model, const TraceLimits& limits, Pass pass, bool secondary,
                     std::vector<bool>& has_secondary) {
  return Coordinator(model, limits, pass, secondary, has_secondary).plan();
}

}  // namespace railyard::models
