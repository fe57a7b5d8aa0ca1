#include "calibrate/fit/least_squares.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace railyard::calibrate {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using sim::Result;
using Values = FitProblem::Values;

constexpr double kFirstDamping = 1e-2;
constexpr double kMostDamping = 1e6;
constexpr double kFarthest = 2.3;  // |x|: a factor of ten from the prior
constexpr double kTwoSigma = 1.96;

double robust_sigma(const VectorXd& residuals) {
  std::vector<double> sizes(residuals.data(), residuals.data() + residuals.size());
  for (double& size : sizes) size = std::abs(size);
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::ranges::nth_element(sizes, middle);
  return 1.4826 * *middle;
}

class Solver {
 public:
  explicit Solver(const FitProblem& problem)
      : problem_(problem),
        free_(problem.parameters.size(), true),
        x_(VectorXd::Zero(static_cast<Eigen::Index>(problem.parameters.size()))) {}

  Result<FitResult> run() {
    RAILYARD_ASSIGN(residuals_, residuals_at(x_));
    FitResult out;
    out.cost_before = cost_of(residuals_, x_);
    RAILYARD_TRY(descend(out));
    RAILYARD_TRY(drop_undetermined(out));
    finish(out);
    return out;
  }

 private:
  [[nodiscard]] Values parameters_at(const VectorXd& x) const {
    Values values;
    for (std::size_t j = 0; j < problem_.parameters.size(); ++j)
      values.push_back(problem_.parameters[j].prior * std::exp(x(static_cast<Eigen::Index>(j))));
    return values;
  }

  [[nodiscard]] VectorXd logs(const Values& predicted) const {
    VectorXd r(static_cast<Eigen::Index>(problem_.measured.size()));
    for (std::size_t i = 0; i < problem_.measured.size(); ++i)
      r(static_cast<Eigen::Index>(i)) = std::log(predicted[i] / problem_.measured[i]);
    return r;
  }

  Result<VectorXd> residuals_at(const VectorXd& x) {
    RAILYARD_ASSIGN(const std::vector<Values> predicted, problem_.model({parameters_at(x)}));
    return logs(predicted.front());
  }

  [[nodiscard]] double cost_of(const VectorXd& residuals, const VectorXd& x) const {
    double cost = 0;
    for (const double r : residuals)
      cost += 2 * (std::sqrt(1 + std::pow(r / problem_.scale, 2)) - 1);
    for (Eigen::Index j = 0; j < x.size(); ++j) cost += std::pow(x(j) / width(j), 2);
    return cost;
  }

  [[nodiscard]] double width(Eigen::Index j) const {
    return problem_.parameters[static_cast<std::size_t>(j)].prior_width;
  }

  [[nodiscard]] double highest(Eigen::Index j) const {
    const FitParameter& parameter = problem_.parameters[static_cast<std::size_t>(j)];
    return parameter.most > 0 ? std::min(kFarthest, std::log(parameter.most / parameter.prior))
                              : kFarthest;
  }

  // All columns in one call of the model; those that are not free stay zero.
  Result<void> differentiate() {
    std::vector<Values> sets;
    std::vector<Eigen::Index> columns;
    std::vector<double> steps;
    for (Eigen::Index j = 0; j < x_.size(); ++j) {
      if (!free_[static_cast<std::size_t>(j)]) continue;
      VectorXd moved = x_;
      // Backwards where a step forwards would leave the range.
      steps.push_back(x_(j) + problem_.step > highest(j) ? -problem_.step : problem_.step);
      moved(j) += steps.back();
      sets.push_back(parameters_at(moved));
      columns.push_back(j);
    }
    RAILYARD_ASSIGN(const std::vector<Values> predicted, problem_.model(sets));
    jacobian_ = MatrixXd::Zero(residuals_.size(), x_.size());
    for (std::size_t k = 0; k < columns.size(); ++k)
      jacobian_.col(columns[k]) = (logs(predicted[k]) - residuals_) / steps[k];
    return {};
  }

  // Soft-L1 as weights: rho'(r) / r = 1 / sqrt(1 + (r / s)^2), over s^2.
  [[nodiscard]] VectorXd weights() const {
    const double s2 = problem_.scale * problem_.scale;
    return residuals_.unaryExpr([&](double r) { return 1 / (s2 * std::sqrt(1 + r * r / s2)); });
  }

  [[nodiscard]] MatrixXd normal_matrix(const VectorXd& weight) const {
    MatrixXd normal = jacobian_.transpose() * weight.asDiagonal() * jacobian_;
    for (Eigen::Index j = 0; j < x_.size(); ++j) normal(j, j) += 1 / std::pow(width(j), 2);
    return normal;
  }

  Result<void> descend(FitResult& out) {
    double cost = cost_of(residuals_, x_);
    double damping = kFirstDamping;
    for (int i = 0; i < problem_.max_iterations; ++i) {
      RAILYARD_TRY(differentiate());
      RAILYARD_ASSIGN(const double next, improve(cost, damping));
      ++out.iterations;
      if (problem_.progress) problem_.progress(out.iterations, next);
      const bool done = cost - next <= problem_.tolerance * cost;
      cost = next;
      if (!done) continue;
      out.converged = true;
      break;
    }
    out.cost = cost;
    return {};
  }

  // One step downhill, with more damping until it is one; the old cost when there is none.
  Result<double> improve(double cost, double& damping) {
    const VectorXd weight = weights();
    const MatrixXd normal = normal_matrix(weight);
    VectorXd gradient = jacobian_.transpose() * weight.asDiagonal() * residuals_;
    for (Eigen::Index j = 0; j < x_.size(); ++j) gradient(j) += x_(j) / std::pow(width(j), 2);
    for (; damping < kMostDamping; damping *= 4) {
      MatrixXd damped = normal;
      damped.diagonal() *= 1 + damping;
      VectorXd candidate = x_ - damped.ldlt().solve(gradient);
      for (Eigen::Index j = 0; j < x_.size(); ++j)
        candidate(j) = free_[static_cast<std::size_t>(j)]
                           ? std::clamp(candidate(j), -kFarthest, highest(j))
                           : 0.0;
      RAILYARD_ASSIGN(const VectorXd residuals, residuals_at(candidate));
      const double next = cost_of(residuals, candidate);
      if (!(next < cost)) continue;
      x_ = candidate;
      residuals_ = residuals;
      damping = std::max(damping / 8, 1e-6);
      return next;
    }
    damping = kFirstDamping;
    return cost;
  }

  // What the data tell of a parameter, with all others free, against what its prior does.
  [[nodiscard]] double information(Eigen::Index j) const {
    const double variance = normal_matrix(weights()).inverse()(j, j);
    return std::pow(width(j), 2) / variance - 1;
  }

  Result<void> drop_undetermined(FitResult& out) {
    RAILYARD_TRY(differentiate());
    bool dropped = false;
    for (Eigen::Index j = 0; j < x_.size(); ++j) {
      if (information(j) >= problem_.least_information) continue;
      free_[static_cast<std::size_t>(j)] = false;
      x_(j) = 0;
      dropped = true;
    }
    if (!dropped) return {};
    out.converged = false;
    RAILYARD_ASSIGN(residuals_, residuals_at(x_));
    RAILYARD_TRY(descend(out));
    return differentiate();
  }

  void finish(FitResult& out) const {
    const double sigma = robust_sigma(residuals_);
    // In units of the weights, which take every measurement to be good to `scale`.
    const double spread = std::max(sigma / problem_.scale, 0.05);
    const MatrixXd covariance = normal_matrix(weights()).inverse();
    const Values values = parameters_at(x_);
    for (std::size_t j = 0; j < values.size(); ++j) {
      const auto at = static_cast<Eigen::Index>(j);
      const double error = kTwoSigma * spread * std::sqrt(covariance(at, at));
      out.parameters.push_back({problem_.parameters[j].name, problem_.parameters[j].prior,
                                values[j], values[j] * std::exp(-error),
                                values[j] * std::exp(error), free_[j]});
    }
    for (std::size_t i = 0; i < problem_.measured.size(); ++i) {
      const double r = residuals_(static_cast<Eigen::Index>(i));
      out.predicted.push_back(problem_.measured[i] * std::exp(r));
      if (std::abs(r) > 3 * sigma && std::abs(r) > problem_.scale) out.outliers.push_back({i, r});
    }
    std::ranges::sort(out.outliers, [](const Outlier& a, const Outlier& b) {
      return std::abs(a.residual) > std::abs(b.residual);
    });
  }

  const FitProblem& problem_;
  std::vector<bool> free_;
  VectorXd x_;
  VectorXd residuals_;
  MatrixXd jacobian_;
};

}  // namespace

Result<FitResult> fit_parameters(const FitProblem& problem) {
  if (problem.parameters.empty()) return sim::bad_input("no parameter to fit");
  for (const FitParameter& parameter : problem.parameters)
    if (!(parameter.prior > 0) || !(parameter.prior_width > 0))
      return sim::bad_input(
          fmt::format("'{}' needs a positive prior to be fitted", parameter.name));
  if (problem.measured.size() < problem.parameters.size() + 2)
    return sim::bad_input(
        fmt::format("{} measurements are too few for {} parameters: {} more are needed",
                    problem.measured.size(), problem.parameters.size(),
                    problem.parameters.size() + 2 - problem.measured.size()));
  for (const double time : problem.measured)
    if (!(time > 0) || !std::isfinite(time))
      return sim::bad_input("a measured time is not positive");
  return Solver(problem).run();
}

}  // namespace railyard::calibrate
