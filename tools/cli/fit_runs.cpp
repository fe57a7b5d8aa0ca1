#include "tools/cli/fit_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <mutex>

#include "scenarios/profile.h"
#include "scenarios/run.h"
#include "sim/parameter_groups.h"
#include "tools/cli/table.h"
#include "tools/cli/validation.h"

namespace railyard::cli {

using calibrate::FitProblem;
using sim::Parameters;
using sim::Result;
using Values = FitProblem::Values;

namespace {

constexpr double kUsualWidth = 0.5;   // of ln: a factor of 1.6
constexpr double kLaunchWidth = 1.0;  // host times differ most between sites
constexpr double kRateWidth = 0.15;   // link rates least

double prior_width(std::string_view path) {
  if (path.starts_with("links.") || path.ends_with("efficiency")) return kRateWidth;
  for (const char* group : {"host.", "network.", "gloo."})
    if (path.starts_with(group)) return kLaunchWidth;
  return kUsualWidth;
}

// One simulation of an input with other parameters: the times of its rows, in microseconds.
Result<Values> simulate(const FitInput& input, const Parameters& parameters,
                        const std::atomic<bool>* interrupted) {
  scenarios::Scenario scenario = input.scenario;
  scenario.parameters = parameters;
  scenarios::RunOptions options;
  options.limits.interrupted = interrupted;
  RAILYARD_ASSIGN(const scenarios::RunResult result, scenarios::run(scenario, options));
  if (interrupted != nullptr && interrupted->load())
    return sim::Error{sim::ErrorCode::interrupted, "interrupted", ""};
  if (result.collectives.size() != input.rows.size())
    return sim::bad_input("the simulation did not reach the last size", input.name);
  Values times;
  for (const scenarios::CollectiveRow& row : result.collectives)
    times.push_back(std::max(1e-6, sim::to_seconds(row.time) * 1e6));
  return times;
}

class Model {
 public:
  explicit Model(const FitRuns& job) : job_(job) {}

  // All sets x inputs side by side.
  Result<std::vector<Values>> operator()(const std::vector<Values>& sets) const {
    std::vector<std::vector<Values>> parts(sets.size(), std::vector<Values>(job_.inputs.size()));
    std::optional<sim::Error> failed;
    std::mutex mutex;
    tbb::task_arena arena(static_cast<int>(std::max<std::size_t>(job_.jobs, 1)));
    arena.execute([&] {
      tbb::parallel_for(
          tbb::blocked_range<std::size_t>(0, sets.size() * job_.inputs.size(), 1),
          [&](const tbb::blocked_range<std::size_t>& range) {
            for (std::size_t k = range.begin(); k != range.end(); ++k) {
              const std::size_t s = k / job_.inputs.size();
              const std::size_t i = k % job_.inputs.size();
              Result<Values> made = one(sets[s], job_.inputs[i]);
              const std::lock_guard lock(mutex);
              if (made.ok())
                parts[s][i] = std::move(made).value();
              else
                failed = made.error();
            }
          },
          tbb::simple_partitioner());
    });
    if (failed) return *failed;
    std::vector<Values> out;
    for (const std::vector<Values>& of_set : parts) {
      out.emplace_back();
      for (const Values& part : of_set)
        out.back().insert(out.back().end(), part.begin(), part.end());
    }
    return out;
  }

 private:
  [[nodiscard]] Result<Values> one(const Values& values, const FitInput& input) const {
    Parameters parameters = input.scenario.parameters;
    for (std::size_t j = 0; j < values.size(); ++j) {
      RAILYARD_TRY(sim::set_parameter(parameters, job_.parameters[j], values[j]));
    }
    return simulate(input, parameters, job_.interrupted);
  }

  const FitRuns& job_;
};

// The machine's profile: the first of those named one over another.
std::string machine_profile(const FitInput& input) {
  const std::string& named = input.scenario.profile;
  return named.substr(0, named.find(" + "));
}

// A single node names no network's profile, so only the machine's must be the same.
Result<void> check_inputs(const FitRuns& job) {
  if (job.inputs.empty()) return sim::bad_input("no measurements to fit to");
  const std::string profile = machine_profile(job.inputs.front());
  for (const FitInput& input : job.inputs)
    if (machine_profile(input) != profile)
      return sim::bad_input(
          fmt::format("'{}' is measured on another platform (profile {}) than "
                      "'{}' ({}): one profile serves one platform",
                      input.name, machine_profile(input), job.inputs.front().name, profile));
  return {};
}

// Four significant digits: more than any of them is known to.
double rounded(double value) { return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr); }

// The chosen values in place, each with where it comes from.
Result<void> adopt(const FitRuns& job, FittedProfile& out) {
  std::vector<std::string> names;
  for (const FitInput& input : job.inputs) names.push_back(input.name);
  const std::size_t rows = out.fit.predicted.size();
  for (const calibrate::FittedParameter& fitted : out.fit.parameters) {
    if (!fitted.determined) continue;
    RAILYARD_TRY(sim::set_parameter(out.parameters, fitted.name, rounded(fitted.value)));
    const double percent = (fitted.high / fitted.value - 1) * 100;
    for (sim::Provenance& entry : out.parameters.provenance)
      if (entry.parameter == fitted.name)
        entry = {fitted.name, sim::Origin::profile,
                 fmt::format("fitted through the simulator to {} times of {}; 95 % confidence "
                             "{:.0f} %, prior {:.4g}",
                             rows, fmt::join(names, ", "), percent, fitted.prior)};
  }
  out.runs = names;
  std::vector<std::string>& all = out.parameters.fitted_runs;
  all.insert(all.end(), names.begin(), names.end());
  out.parameters.validated.clear();  // what was found for the old numbers
  return sim::validate(out.parameters);
}

}  // namespace

Result<FitInput> fit_input(const MeasuredRun& run, const std::vector<std::string>& sets) {
  MeasuredRun clean = run;
  const bool in_place = run.rows.empty();
  const std::vector<std::size_t> spikes = spike_rows(run);
  std::vector<calibrate::MeasuredRow>& rows = in_place ? clean.rows_in_place : clean.rows;
  for (auto spike = spikes.rbegin(); spike != spikes.rend(); ++spike)
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(*spike));
  RAILYARD_ASSIGN(scenarios::Scenario scenario, scenario_of(clean, sets));
  return FitInput{run.id, std::move(scenario), rows};
}

std::vector<std::string> usual_parameters(const std::vector<FitInput>& inputs) {
  if (!inputs.empty() && inputs.front().scenario.backend != scenarios::Backend::nccl)
    return {"links.nic.efficiency", "gloo.op_overhead", "gloo.latency", "gloo.message"};
  std::vector<std::string> names{"host.collective_start", "protocols.LL.hop_latency",
                                 "protocols.Simple.op_overhead"};
  bool network = false;
  for (const FitInput& input : inputs) network = network || input.scenario.cluster.nodes > 1;
  if (network) {
    for (const char* name : {"protocols.LL.net_hop_latency", "protocols.Simple.net_hop_latency",
                             "network.proxy_send", "links.nic.efficiency", "network.ll_check_rate"})
      names.emplace_back(name);
  } else {
    for (const char* name : {"host.collective_launch", "links.nvlink.efficiency",
                             "protocols.LL128.hop_latency", "protocols.Simple.channel_rate"})
      names.emplace_back(name);
  }
  return names;
}

Result<FittedProfile> fit_runs(const FitRuns& given) {
  RAILYARD_TRY(check_inputs(given));
  FitRuns job = given;
  if (job.parameters.empty()) job.parameters = usual_parameters(job.inputs);
  if (job.parameters.size() > job.most_parameters)
    return sim::bad_input(
        fmt::format("{} parameters are more than the {} that one platform may fit",
                    job.parameters.size(), job.most_parameters));
  FittedProfile out;
  out.parameters = job.inputs.front().scenario.parameters;
  FitProblem problem;
  for (const std::string& path : job.parameters) {
    RAILYARD_ASSIGN(const double prior, sim::parameter_value(out.parameters, path));
    if (std::ranges::count(job.parameters, path) > 1)
      return sim::bad_input(fmt::format("'{}' is named twice", path));
    problem.parameters.push_back(
        {path, prior, prior_width(path), path.ends_with("efficiency") ? 1.0 : 0.0});
  }
  for (const FitInput& input : job.inputs)
    for (const calibrate::MeasuredRow& row : input.rows) {
      problem.measured.push_back(row.time_us);
      out.row_names.push_back(fmt::format("{} {}", input.name, sim::to_text(row.size)));
    }
  problem.model = Model(job);
  problem.progress = job.progress;
  RAILYARD_ASSIGN(out.fit, calibrate::fit_parameters(problem));
  RAILYARD_TRY(adopt(job, out));
  return out;
}

std::string fit_text(const FittedProfile& fitted) {
  Table table(
      {{"parameter", Align::left}, {"prior"}, {"value"}, {"95 % from"}, {"to"}, {"", Align::left}});
  for (const calibrate::FittedParameter& p : fitted.fit.parameters)
    table.add({p.name, fmt::format("{:.4g}", p.prior), fmt::format("{:.4g}", p.value),
               p.determined ? fmt::format("{:.4g}", p.low) : "-",
               p.determined ? fmt::format("{:.4g}", p.high) : "-",
               p.determined ? "" : "not determined by these data: kept at its prior"});
  std::string text =
      "Fitted parameters (SI units: seconds, bytes per second, shares)\n" + table.text();
  text +=
      fmt::format("{} times, {} iterations{}; cost {:.1f} -> {:.1f}\n", fitted.fit.predicted.size(),
                  fitted.fit.iterations, fitted.fit.converged ? "" : " (not converged)",
                  fitted.fit.cost_before, fitted.fit.cost);
  for (const calibrate::Outlier& outlier : fitted.fit.outliers)
    text += fmt::format("outlier: {}: predicted {:+.0f} %\n", fitted.row_names[outlier.index],
                        (std::exp(outlier.residual) - 1) * 100);
  return text;
}

}  // namespace railyard::cli
