// Profiles: files that hold the parameters of one platform. What they state and where each number
// comes from:
//
//   railyard_profile: 1
//   name: h100-hgx
//   gpu: {sms: 132, peak_fp16: 989.4TFLOP/s, hbm_bandwidth: 3.35TB/s, ...}
//   host: {...}            # the names of sim::FieldTable<...>
//   network: {...}
//   links: {nvlink: {efficiency: 0.8, latency: 1us}, pcie: {...}, ...}
//   protocols: {LL: {...}, LL128: {...}, Simple: {...}, plain: {...}}
//   provenance:
//     - {parameters: [gpu], origin: datasheet, source: "..."}      # a group or single parameters
//
// After reading, Parameters::provenance has exactly one entry per parameter, in table order: a
// parameter that the file leaves out keeps its default with origin `class`.
#pragma once

#include <string>
#include <vector>

#include "scenarios/decode.h"
#include "sim/parameters.h"

namespace railyard::scenarios {

inline constexpr int kProfileVersion = 1;

struct Profile {
  sim::Parameters parameters;
  SourceFile file;
};

Result<Profile> read_profile(const std::string& path);
Result<sim::Parameters> profile_from_text(std::string_view text, const std::string& name);

// The text of a profile file; read again, it gives the same parameters and provenance.
std::string write_profile(const sim::Parameters& parameters);

// The file of a profile: a bare name is a shipped profile, anything with a '/' or ending in .yaml
// is a path relative to the file in which `place` was written.
Result<std::string> find_profile(const Place& place, const std::string& name);
std::vector<std::string> shipped_profiles();

// A scenario's `parameters:` block: single values over a profile, recorded with Origin::scenario.
// The result is validated if `complete`; an error points at the value in the block.
Result<void> override_parameters(const Place& place, bool complete, sim::Parameters& parameters);

// Every dotted path, in table order: "gpu.sms", ..., "protocols.plain.wire_efficiency".
std::vector<std::string> parameter_paths();

}  // namespace railyard::scenarios
