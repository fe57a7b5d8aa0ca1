#include "tools/cli/step_table.h"

#include <fmt/format.h>

#include "tools/cli/format.h"
#include "tools/cli/table.h"

namespace railyard::cli {
namespace {

using scenarios::StepResult;

double share(sim::Duration part, sim::Duration whole) {
  return whole.count() == 0
             ? 0
             : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

std::string compute_text(const StepResult& step) {
  std::string text = percent(share(step.compute, step.step_time)) + " of the step";
  const double slower = share(step.compute, step.compute_alone) - 1;
  if (step.compute_alone.count() > 0 && slower >= 0.0005)
    text += fmt::format("; {} slower than without communication", percent(slower));
  return text;
}

}  // namespace

std::string TimeUnit::operator()(sim::Duration time) const {
  return fmt::format("{:.3f}", static_cast<double>(time.count()) / picoseconds);
}

TimeUnit unit_for(sim::Duration longest) {
  return longest.count() < 1'000'000'000 ? TimeUnit{"us", 1e6} : TimeUnit{"ms", 1e9};
}

std::string step_table(const StepResult& step, std::string_view exposing, std::string_view rest) {
  Table table({{"", Align::left}, {""}, {"", Align::left}});
  const std::string rate = step.samples_per_second > 0
                               ? digits(step.samples_per_second) + " samples/s, "
                               : std::string();  // a replay does not know what a sample is
  table.add({"Step time", human(step.step_time), rate + "bound by " + step.bound_by});
  table.add({"  forward", human(step.forward), ""});
  table.add({"  backward", human(step.backward), ""});
  table.add({"  the rest", human(step.after_backward), std::string(rest)});
  table.add({"", "", ""});
  table.add({"  compute", human(step.compute), compute_text(step)});
  table.add({"  communication", human(step.communication),
             fmt::format("{} of it behind compute",
                         percent(1 - share(step.exposed, step.communication)))});
  table.add(
      {"    exposed", human(step.exposed),
       fmt::format("{} of the step{}", percent(share(step.exposed, step.step_time)), exposing)});
  const sim::Duration neither = step.step_time - step.compute - step.exposed;
  if (neither.count() > 0)
    table.add({"  neither", human(neither), "launches, host work, gaps between kernels"});
  return table.text("");
}

}  // namespace railyard::cli
