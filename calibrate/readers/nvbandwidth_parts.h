// What nvbandwidth's text and JSON readers share.
#pragma once

#include <string>
#include <string_view>

#include "calibrate/readers/nvbandwidth.h"

namespace railyard::calibrate {

// Sets direction, sides, unit and `shared` from name and description.
void classify_nvbandwidth(NvbandwidthTest& test);
// A note if the printed sum is not the cells'.
void check_nvbandwidth(const NvbandwidthTest& test, Notes& notes);

sim::Result<NvbandwidthLog> read_nvbandwidth_json(std::string_view text, std::string_view name);

}  // namespace railyard::calibrate
