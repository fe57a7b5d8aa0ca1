// The tables of a run as CSV: a title line, commas, '.' as decimal point, RFC 4180 quotes where a
// value needs them. Columns carry their unit in the name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/run.h"

namespace railyard::cli {

// A value as a CSV cell.
std::string csv_cell(std::string_view text);
std::string csv_line(const std::vector<std::string>& cells);

std::string buckets_csv(const scenarios::DdpResult& ddp);
std::string collectives_csv(const std::vector<scenarios::CollectiveRow>& rows);
std::string links_csv(const std::vector<scenarios::LinkRow>& links);
std::string flows_csv(const std::vector<scenarios::FlowResult>& flows);

}  // namespace railyard::cli
