// What perftest's text and JSON readers share.
#pragma once

#include <string>
#include <string_view>

#include "calibrate/readers/log_text.h"
#include "calibrate/readers/perftest.h"

namespace railyard::calibrate {

// GB/s of one unit of a bandwidth column: "Gb/sec", "MB/sec", "MiB/sec"; 0 for others.
double perftest_unit(std::string_view unit);

// Sets program, latency, bidirectional and round_trip from `test`.
void classify_perftest(PerftestTable& table);

// Notes for figures that disagree, and marks tables that are another's other end.
void check_perftest(std::vector<PerftestTable>& tables, Notes& notes);

sim::Result<PerftestLog> read_perftest_json(std::string_view text, std::string_view name);

}  // namespace railyard::calibrate
