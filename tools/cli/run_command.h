// `railyard run SCENARIO`: estimate, simulate, print, write files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/run.h"
#include "scenarios/scenario.h"
#include "sim/units.h"

namespace railyard::cli {

enum class TextFormat { table, nccl_tests };

// What run and explore have in common.
struct SimulationArguments {
  std::string scenario;           // a path, or the name of a shipped scenario
  std::vector<std::string> sets;  // "path=value"
  std::optional<std::string> directory;
  bool json = false;
  bool quiet = false;
  sim::Bytes max_memory = sim::bytes(16'000'000'000);
  double max_events = 5e9;
};

struct RunArguments {
  SimulationArguments common;
  TextFormat format = TextFormat::table;
  bool replay = true;
  bool sensitivity = true;
  bool full = false;
  double timeout_seconds = 0;
  std::uint32_t ranks = 8;  // whose timeline is kept
};

int run_command(const RunArguments& arguments);

// The file that a SCENARIO argument means: the path, or where no such file exists and the argument
// is a bare name, the shipped scenario of that name.
std::string find_scenario(const std::string& argument);

// Reads the scenario; `more_sets` come after the user's own.
sim::Result<scenarios::Scenario> read(const SimulationArguments& arguments,
                                      const std::vector<std::string>& more_sets = {});

// Refuses what the limits do not allow, with the numbers and the options that raise them.
sim::Result<void> check_estimate(const scenarios::Estimate& estimate,
                                 const SimulationArguments& arguments);

}  // namespace railyard::cli

namespace railyard::sim {
template <>
struct EnumTable<cli::TextFormat> {
  static constexpr std::string_view kind = "output format";
  static constexpr std::array entries{EnumEntry{cli::TextFormat::table, "table"},
                                      EnumEntry{cli::TextFormat::nccl_tests, "nccl-tests"}};
};
}  // namespace railyard::sim
