// Applies a scenario's link changes (cluster.h) to a topology whose links are still all there.
//
// Cost: O((devices + links) x changes).
#pragma once

#include <string_view>
#include <vector>

#include "sim/result.h"
#include "sim/topology.h"
#include "topologies/cluster.h"

namespace railyard::topologies {

// Slows links in place and says which are left (empty = all). A pattern that matches nothing is an
// error that lists the nearest names.
sim::Result<std::vector<bool>> apply_changes(sim::Topology& topology,
                                             const std::vector<LinkChange>& changes);

// '*' matches any run of characters, everything else itself.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace railyard::topologies
