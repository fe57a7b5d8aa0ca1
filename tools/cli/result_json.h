// result.json: every number of a run, and everything needed to run it again. Two runs of the same
// program on the same input give the same bytes.
//
// Times are microseconds (keys end in _us, exact to the picosecond), sizes bytes (_bytes), rates
// 10^9 B/s (_gb_per_s). 64-bit hashes are hexadecimal text.
// "railyard_result" is the schema's version; keys are only added within a version.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/run.h"
#include "scenarios/scenario.h"

namespace railyard::cli {

inline constexpr int kResultVersion = 1;

// What every result.json starts with, and no other file.
inline constexpr std::string_view kResultMarker = "{\n  \"railyard_result\": ";

std::string result_json(const scenarios::Scenario& scenario, const scenarios::RunResult& result);

}  // namespace railyard::cli
