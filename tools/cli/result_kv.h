// Disaggregated serving in result.json, and its requests as a table of their own.
#pragma once

#include <string>

#include "scenarios/kv_result.h"
#include "tools/cli/json_parts.h"

namespace railyard::cli {

void add_kv(Json& out, const scenarios::KvResult& kv);
std::string requests_csv(const scenarios::KvResult& kv);

}  // namespace railyard::cli
