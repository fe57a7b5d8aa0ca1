// Profiles: files that hold the parameters of one platform. What they state and where each number
// comes from:
//
//   railyard_profile: 1
//   name: h100-hgx
//   base: class-hopper     # a shipped profile or a path: its values and origins stand where this
//                          # file states nothing
//   partial: true          # states only some parameters: a base of others, or behind others
//   gpu: {sms: 132, peak_fp16: 989.4TFLOP/s, hbm_bandwidth: 3.35TB/s, ...}
//   host: {...}            # the names of sim::FieldTable<...>
//   network: {...}
//   links: {nvlink: {efficiency: 0.8, latency: 1us}, pcie: {...}, ...}
//   protocols: {LL: {...}, LL128: {...}, Simple: {...}, plain: {...}}
//   fitted_runs: [id, ...]  # measurements that numbers of this file were fitted to
//   validated: [{collective: AllReduce, band: M, count: 20, median: 0.04, p90: 0.1}, ...]
//   provenance:
//     - {parameters: [gpu], origin: datasheet, source: "..."}      # a group or single parameters
//
// A scenario may name a list, `profile: [gh200, net-ib]`: every file states its values over those
// before it; the first is complete. Files that are based on themselves are an error.
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
  std::vector<SourceFile> bases;  // that it is based on, the nearest first
};

Result<Profile> read_profile(const std::string& path);
// The file at `path` over what `below` holds.
Result<Profile> read_profile_over(const std::string& path, sim::Parameters below);
// With `read_files` false, `base:` is an error.
Result<sim::Parameters> profile_from_text(std::string_view text, const std::string& name,
                                          bool read_files = true);

// The text of a profile file; read again, it gives the same parameters and provenance.
std::string write_profile(const sim::Parameters& parameters);

// Only some of its parameters: a profile over `base`, or a part to be named behind others.
std::string write_profile_part(const sim::Parameters& parameters,
                               const std::vector<std::string>& paths, const std::string& base);

// The file of a profile: a bare name is a shipped profile, anything with a '/' or ending in .yaml
// is a path relative to the file in which `place` was written.
Result<std::string> find_profile(const Place& place, const std::string& name);
std::vector<std::string> shipped_profiles();  // the complete ones

bool is_shipped_profile(const std::string& name);  // partial ones too; no path

// A scenario's `parameters:` block: single values over a profile, recorded with Origin::scenario.
// The result is validated if `complete`; an error points at the value in the block.
Result<void> override_parameters(const Place& place, bool complete, sim::Parameters& parameters);

// Every dotted path, in table order: "gpu.sms", ..., "protocols.plain.wire_efficiency".
std::vector<std::string> parameter_paths();

}  // namespace railyard::scenarios
