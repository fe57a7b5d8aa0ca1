// An exploration as text, CSV and JSON. None of them depends on how it was run.
#pragma once

#include <string>
#include <string_view>

#include "tools/cli/ranking.h"
#include "tools/cli/study.h"
#include "tools/cli/summary.h"

namespace railyard::cli {

inline constexpr int kExploreVersion = 1;
inline constexpr std::string_view kExploreMarker = "{\n  \"railyard_explore\": ";

struct ExploreReport {
  const Study& study;
  const Ranking& ranking;
  PointResult detail;  // of the recommended point, with its sensitivity
};

// The ranked table, what failed, the recommendation and what bounds it.
std::string explore_text(const ExploreReport& report, const SummaryStyle& style);

// Just the recommendation: one paragraph.
std::string recommendation(const Study& study, const Ranking& ranking);

std::string explore_csv(const Study& study, const Ranking& ranking);
std::string explore_json(const ExploreReport& report);

}  // namespace railyard::cli
