// The parts of an imported scenario's text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/traces/ddp_step.h"
#include "calibrate/traces/replay_step.h"
#include "models/ddp/buckets.h"
#include "models/nn/network.h"

namespace railyard::cli {

// A quoted YAML string of at most 80 characters.
std::string yaml_quoted(std::string_view text);
// "12.345us", "1.2346ms": to the nanosecond below a millisecond, to 100 ns above.
std::string yaml_time(std::int64_t ns);
// The comment lines that open the file.
std::string yaml_comment(std::string_view text);

// What the scenario's ddp: block is made of.
struct DdpParts {
  const calibrate::TracedDdp* traced = nullptr;
  const models::NetworkSpec* network = nullptr;
  const models::BucketOptions* buckets = nullptr;
};
std::string ddp_yaml(const DdpParts& parts);

std::string replay_yaml(const calibrate::TracedReplay& replay, std::string_view name);

// The ranks.groups: block of a replay's groups in a world of so many ranks, and the name each has
// in the scenario ("world" where it is all of them). Notes what had to be assumed.
struct GroupNames {
  std::vector<std::string> names;  // by group
  std::string yaml;                // empty: no group but the world
  std::vector<std::string> notes;
};
GroupNames name_groups(const std::vector<calibrate::ReplayGroup>& groups, std::int64_t world);

}  // namespace railyard::cli
