// Pieces of JSON that run and explore both write.
#pragma once

#include <nlohmann/json.hpp>

#include "scenarios/run.h"
#include "scenarios/scenario.h"

namespace railyard::cli {

using Json = nlohmann::ordered_json;  // keys in the order written

// program version, scenario name and resolved text, seed, and the hash of every input.
void add_origin(Json& out, const scenarios::Scenario& scenario);

Json sensitivity_json(const std::vector<scenarios::SensitivityRow>& rows);

std::string_view outcome_name(const scenarios::RunResult& result);

// Indented by two, with a final newline. Bytes that are not UTF-8 are replaced.
std::string dump(const Json& json);

}  // namespace railyard::cli
