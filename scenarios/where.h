// Where the user wrote what an error is about. Checks that need the built topology run long after
// the file was read; its tree still knows the lines.
//
//   if (root >= ranks) return where(scenario, "collectives[2].root").error("...");
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "scenarios/decode.h"
#include "scenarios/scenario.h"

namespace railyard::scenarios {

// The node that a dotted path names ("ranks.groups.dp[3]"), or the nearest one above it that was
// written. Without a document: a place without a line, called by the whole path.
Place where(const Scenario& scenario, std::string_view path);

// An error of another folder, at a path. If the error itself names a key of what stands there
// (Error::where), it is placed at that key.
Error at_path(const Scenario& scenario, std::string_view path, const Error& error);

// An error of a collective call: what it says of the algorithm or protocol is placed at the choice
// that serves calls of `size`, the rest at `path`.
Error at_call(const Scenario& scenario, std::string_view path, sim::Bytes size, const Error& error);

// expand_traffic() of the scenario, its errors at the flow or pattern that they are about.
Result<std::vector<Flow>> traffic_of(const Scenario& scenario, std::size_t ranks);

}  // namespace railyard::scenarios
