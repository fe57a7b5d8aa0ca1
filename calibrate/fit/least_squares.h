// Robust non-linear least squares of positive parameters, with priors.
//
// Minimises over x = ln(p / p0):
//
//   sum_i  rho( (ln model_i(p) - ln measured_i) / s )  +  sum_j (x_j / w_j)^2
//
// rho = soft-L1: 2 (sqrt(1 + r^2) - 1), so that a spike pulls with a bounded force; s = `scale`
// (relative, 0.1 as a rule). Times spread over six decades, hence logarithms. w_j is the prior's
// width: by how much p_j may be off its prior (ln 2 = a factor of two).
//
// Levenberg-Marquardt on re-weighted residuals, Jacobian by forward differences of `step`.
//
// A parameter that the data do not determine - its column adds less than `least_information` of
// what its prior knows - is kept at its prior and named. Confidence: 95 %, from the covariance
// sigma^2 (J^T W J + prior)^-1 with a robust sigma (1.4826 x median |r|).
//
// Cost: (iterations x (parameters + 1)) evaluations of the model.
//
// |x| stays below 2.3, a factor of ten from the prior.
//
//   FitProblem problem{.parameters = {{"protocols.LL.hop_latency", 0.3, std::log(3)}}, ...};
//   RAILYARD_ASSIGN(const FitResult fit, fit_parameters(problem));
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/result.h"

namespace railyard::calibrate {

struct FitParameter {
  std::string name;
  double prior = 0;        // > 0, in any unit
  double prior_width = 0;  // standard deviation of ln(value / prior)
  double most = 0;         // upper bound, at least the prior; 0 = none
};

struct FitProblem {
  std::vector<FitParameter> parameters;
  std::vector<double> measured;  // > 0
  // The model's values for the measurements, in their order; asked for several sets at once so that
  // they can be evaluated side by side.
  using Values = std::vector<double>;
  std::function<sim::Result<std::vector<Values>>(const std::vector<Values>& parameter_sets)> model;
  double scale = 0.1;
  double step = 0.03;  // of x, for the Jacobian: larger than what integer times round away
  int max_iterations = 20;
  double tolerance = 1e-3;         // of the cost, relative: where to stop
  double least_information = 1.0;  // see above
  std::function<void(int iteration, double cost)> progress;
};

struct FittedParameter {
  std::string name;
  double prior = 0;
  double value = 0;
  double low = 0;  // 95 % confidence
  double high = 0;
  bool determined = false;  // else value == prior
};

struct Outlier {
  std::size_t index = 0;  // of the measurement
  double residual = 0;    // ln(model / measured)
};

struct FitResult {
  std::vector<FittedParameter> parameters;
  std::vector<double> predicted;
  double cost_before = 0;
  double cost = 0;
  int iterations = 0;
  bool converged = false;
  std::vector<Outlier> outliers;  // |residual| > 3 robust sigma and > scale, worst first
};

// Errors: fewer measurements than two more than parameters (says how many are missing), values that
// are not positive, a model that fails.
sim::Result<FitResult> fit_parameters(const FitProblem& problem);

}  // namespace railyard::calibrate
