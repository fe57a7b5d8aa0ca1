// A tenth of the reference set, simulated: predictions stay as good as the README says.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/paths.h"
#include "tests/skip.h"
#include "tools/cli/validation.h"

namespace railyard::tests {
namespace {

constexpr std::int64_t kMostRanks = 16;  // larger ones take minutes in a build with assertions
constexpr std::int64_t kLongest = std::int64_t{256} << 20;

// Every tenth file by name whose job is small, whatever its status.
std::vector<cli::MeasuredRun> a_tenth(const std::string& folder) {
  std::vector<cli::MeasuredRun> runs;
  const auto files = cli::measured_run_files(folder, "");
  REQUIRE(files.ok());
  for (std::size_t i = 0; i < files.value().size(); i += 10) {
    auto run = cli::read_measured_run(files.value()[i]);
    REQUIRE(run.ok());
    const auto& platform = run.value().platform;
    if (platform.nodes.value_or(0) * platform.gpus_per_node.value_or(0) > kMostRanks) continue;
    for (auto* rows : {&run.value().rows, &run.value().rows_in_place})
      std::erase_if(*rows, [](const auto& row) { return row.size.raw() > kLongest; });
    if (!cli::scored_rows(run.value()).empty()) runs.push_back(std::move(run).value());
  }
  return runs;
}

}  // namespace

TEST_CASE("validate: a tenth of the reference set" * doctest::test_suite("samples")) {
  const std::string folder = std::string(RAILYARD_SHARED_DIR) + "/reference/measured";
  if (!std::filesystem::is_directory(folder)) RAILYARD_SKIP("no reference measurements here");
  std::vector<double> errors;
  std::size_t predicted = 0;
  for (const cli::MeasuredRun& run : a_tenth(folder)) {
    CAPTURE(run.id);
    const auto made = cli::predict(run, {});
    REQUIRE(made.ok());
    predicted += made.value().failed.empty() ? 1 : 0;
    if (!made.value().not_scored.empty()) continue;
    for (const cli::PredictedRow& row : made.value().rows) {
      CHECK(row.predicted_us > 0);
      if (!row.spike) errors.push_back(row.error());
    }
  }
  CHECK(predicted >= 10);
  const calibrate::ErrorSummary summary = calibrate::summarize(errors);
  CHECK(summary.count > 50);
  CHECK(summary.median < 0.12);
  CHECK(summary.p90 < 0.5);
}

}  // namespace railyard::tests
