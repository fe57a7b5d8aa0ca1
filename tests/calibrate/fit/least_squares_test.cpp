#include "calibrate/fit/least_squares.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace railyard;
using namespace railyard::calibrate;
using Values = FitProblem::Values;

namespace {

// time(size) = latency + size / rate, the alpha-beta model: both parameters are known exactly.
FitProblem alpha_beta(const std::vector<double>& sizes, const std::vector<double>& measured) {
  FitProblem problem;
  problem.parameters = {{"latency", 5, 1.0}, {"rate", 20, 1.0}};
  problem.measured = measured;
  problem.model = [sizes](const std::vector<Values>& sets) -> sim::Result<std::vector<Values>> {
    std::vector<Values> out;
    for (const Values& p : sets) {
      out.emplace_back();
      for (const double size : sizes) out.back().push_back(p[0] + size / p[1]);
    }
    return out;
  };
  return problem;
}

const std::vector<double> kSizes{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

std::vector<double> exact(double latency, double rate) {
  std::vector<double> times;
  for (const double size : kSizes) times.push_back(latency + size / rate);
  return times;
}

}  // namespace

TEST_CASE("fit: exact data give the parameters back") {
  FitProblem problem = alpha_beta(kSizes, exact(8, 50));
  for (FitParameter& parameter : problem.parameters) parameter.prior_width = 10;  // hardly a prior
  const auto fit = fit_parameters(problem);
  REQUIRE(fit.ok());
  CHECK(fit.value().converged);
  CHECK(fit.value().parameters[0].value == doctest::Approx(8).epsilon(0.01));
  CHECK(fit.value().parameters[1].value == doctest::Approx(50).epsilon(0.01));
  CHECK(fit.value().parameters[0].determined);
  CHECK(fit.value().cost < 0.01 * fit.value().cost_before);
  CHECK(fit.value().outliers.empty());
}

TEST_CASE("fit: a spike is listed, not followed") {
  std::vector<double> measured = exact(8, 50);
  measured[6] *= 5;
  const auto fit = fit_parameters(alpha_beta(kSizes, measured));
  REQUIRE(fit.ok());
  CHECK(fit.value().parameters[0].value == doctest::Approx(8).epsilon(0.1));
  CHECK(fit.value().parameters[1].value == doctest::Approx(50).epsilon(0.1));
  REQUIRE(fit.value().outliers.size() == 1);
  CHECK(fit.value().outliers[0].index == 6);
  CHECK(fit.value().outliers[0].residual == doctest::Approx(-std::log(5)).epsilon(0.1));
}

TEST_CASE("fit: what the data do not determine stays at its prior and says so") {
  // Small sizes only: size / rate is at most 0.2 of a latency of 8.
  const std::vector<double> sizes{1, 2, 4, 8};
  std::vector<double> measured;
  for (const double size : sizes) measured.push_back(8 + size / 50);
  FitProblem problem = alpha_beta(sizes, measured);
  problem.parameters[1].prior_width = 0.2;
  const auto fit = fit_parameters(problem);
  REQUIRE(fit.ok());
  CHECK(fit.value().parameters[0].determined);
  CHECK_FALSE(fit.value().parameters[1].determined);
  CHECK(fit.value().parameters[1].value == 20);
}

TEST_CASE("fit: confidence holds the truth and widens with noise") {
  std::vector<double> quiet = exact(8, 50);
  std::vector<double> noisy = quiet;
  for (std::size_t i = 0; i < noisy.size(); ++i) {
    quiet[i] *= 1 + 0.01 * std::sin(3.0 * static_cast<double>(i));
    noisy[i] *= 1 + 0.08 * std::sin(3.0 * static_cast<double>(i));
  }
  const auto a = fit_parameters(alpha_beta(kSizes, quiet));
  const auto b = fit_parameters(alpha_beta(kSizes, noisy));
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  for (const auto* fit : {&a, &b}) {
    CHECK(fit->value().parameters[0].low < 8);
    CHECK(fit->value().parameters[0].high > 8);
    CHECK(fit->value().parameters[1].low < 50);
    CHECK(fit->value().parameters[1].high > 50);
  }
  CHECK(b.value().parameters[0].high / b.value().parameters[0].low >
        2 * a.value().parameters[0].high / a.value().parameters[0].low - 1);
}

TEST_CASE("fit: refusals name what is wrong") {
  CHECK(fit_parameters({}).error().message == "no parameter to fit");
  const auto few = fit_parameters(alpha_beta({1, 2}, {8, 9}));
  CHECK(few.error().message == "2 measurements are too few for 2 parameters: 2 more are needed");
  const auto zero = fit_parameters(alpha_beta({1, 2, 4, 8}, {8, 0, 9, 10}));
  CHECK(zero.error().message == "a measured time is not positive");
  FitProblem no_prior = alpha_beta(kSizes, exact(8, 50));
  no_prior.parameters[1].prior = 0;
  CHECK(fit_parameters(no_prior).error().message == "'rate' needs a positive prior to be fitted");
  FitProblem failing = alpha_beta(kSizes, exact(8, 50));
  failing.model = [](const std::vector<Values>&) -> sim::Result<std::vector<Values>> {
    return sim::bad_input("the model fails");
  };
  CHECK(fit_parameters(failing).error().message == "the model fails");
}
