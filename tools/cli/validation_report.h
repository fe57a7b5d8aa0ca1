// What `railyard validate` prints: tables by platform and band, the worst predictions, as text,
// JSON or a page with curves.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/validation.h"

namespace railyard::cli {

std::string validation_text(const std::vector<Prediction>& predictions, bool rows);
std::string validation_json(const std::vector<Prediction>& predictions);
// validation_html.cpp
std::string validation_html(const std::vector<Prediction>& predictions);

// The mechanism that most likely is missing where a prediction is far off, from what the row is:
// algorithm, protocol, size, network. A hint to look at, not a finding.
std::string likely_cause(const Prediction& prediction, const PredictedRow& row);

}  // namespace railyard::cli
