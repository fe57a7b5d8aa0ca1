// The times of a training step as a table, for every scheme.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/run.h"
#include "sim/units.h"

namespace railyard::cli {

// One unit for a column of times, so that they can be compared at a glance.
struct TimeUnit {
  std::string_view name;
  double picoseconds;
  [[nodiscard]] std::string operator()(sim::Duration time) const;
};
TimeUnit unit_for(sim::Duration longest);

// `exposing` is added to what is said of the exposed communication; `rest` says what happens behind
// the backward pass.
std::string step_table(const scenarios::StepResult& step, std::string_view exposing,
                       std::string_view rest);

}  // namespace railyard::cli
