// The JSON file that nccl-tests writes with -J (2.17.7 and later): the same table as its text.
#pragma once

#include <string_view>

#include "calibrate/readers/nccl_tests.h"

namespace railyard::calibrate {

// Notes and measurements have no lines: the file is one line, "results[3]" says where.
sim::Result<NcclTestsLog> read_nccl_tests_json(std::string_view text, std::string_view name);

}  // namespace railyard::calibrate
