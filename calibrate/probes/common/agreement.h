// What the ranks of a measurement must agree on, over the store they met in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/probes/common/store.h"

namespace railyard::probe {

// Rank 0's number, at every rank: how many samples to take, say, so that all make the same calls.
std::int64_t number_of_first(Store& store, const std::string& name, std::int64_t mine);

// Of each sample the largest over all ranks: an operation ends when its last rank does.
std::vector<double> slowest(Store& store, const std::string& name,
                            const std::vector<double>& samples);

}  // namespace railyard::probe
