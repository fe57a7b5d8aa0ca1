// A measured run: one nccl-tests sweep (or the like) of one platform, in the YAML form of the
// reference set:
//
//   id: h100-1n8g-allreduce
//   platform: {...}                    scenarios/platform.h
//   collective: AllReduce
//   datatype: float
//   env: {NCCL_ALGO: Ring}             or as words of a text: {command: "-x NCCL_ALGO=Ring ..."}
//   status: healthy
//   rows: [[bytes, time_us, algbw, busbw], ...]    out of place; null where the source has none
//   rows_in_place: [...]
//
// A prediction may use platform, env, collective and datatype; other keys say where the figures
// come from and are passed over. Sizes are nccl-tests' "size" column (AllGather and ReduceScatter:
// the total over the ranks).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/validation/score.h"
#include "scenarios/platform.h"
#include "scenarios/scenario.h"
#include "sim/result.h"

namespace railyard::cli {

struct MeasuredRun {
  std::string id;
  scenarios::Platform platform;
  std::string collective;
  std::string datatype;
  std::map<std::string, std::string> env;
  std::string status;                                 // healthy, degraded, fault, odd
  std::vector<calibrate::MeasuredRow> rows;           // out of place, ascending sizes
  std::vector<calibrate::MeasuredRow> rows_in_place;  // ascending sizes
  std::string path;                                   // of the file
  std::vector<std::string> notes;                     // rows left out, sizes that go down
};

// Errors name file, line, column and key. O(file).
sim::Result<MeasuredRun> read_measured_run(const std::string& path);
sim::Result<MeasuredRun> measured_run_from_text(std::string_view text, const std::string& name);

// The files of a folder whose names, without .yaml, match the pattern (* and ?; empty: all).
sim::Result<std::vector<std::string>> measured_run_files(const std::string& folder,
                                                         std::string_view pattern);

// The rows that a run is measured by: out of place, else in place; and those of them that are
// spikes.
const std::vector<calibrate::MeasuredRow>& scored_rows(const MeasuredRun& run);
std::vector<std::size_t> spike_rows(const MeasuredRun& run);

// Why a run is tabled apart; empty for one that counts.
std::string set_apart(const MeasuredRun& run);

// The scenario of a run: its platform, version, environment, collective and sizes.
sim::Result<scenarios::Scenario> scenario_of(const MeasuredRun& run,
                                             const std::vector<std::string>& sets);

}  // namespace railyard::cli
