// The summary of a run on the terminal: at most 100 columns, sections under headings, tables.
//
//   std::fputs(summary(scenario, result, {.bold = isatty(1)}).c_str(), stdout);
//
// Every section is a function of its own and returns "" where there is nothing to say.
#pragma once

#include <string>

#include "scenarios/run.h"
#include "scenarios/scenario.h"

namespace railyard::cli {

inline constexpr std::size_t kWidth = 100;

struct SummaryStyle {
  bool bold = false;  // headings, on a terminal
  bool full = false;  // every row of long tables
};

std::string summary(const scenarios::Scenario& scenario, const scenarios::RunResult& result,
                    const SummaryStyle& style);

std::string heading(std::string_view text, const SummaryStyle& style);

// What was simulated: name, ranks, machine, profile.
std::string summary_title(const scenarios::Scenario& scenario, const scenarios::RunResult& result,
                          const SummaryStyle& style);

std::string summary_ddp(const scenarios::DdpResult& ddp, const SummaryStyle& style);
std::string summary_training(const scenarios::TrainingResult& result, const SummaryStyle& style);
std::string summary_kv(const scenarios::KvResult& kv, const SummaryStyle& style);
std::string summary_collectives(const scenarios::RunResult& result, const SummaryStyle& style);
std::string summary_flows(const scenarios::RunResult& result, const SummaryStyle& style);

// Ranks that the others waited for; as torch.distributed.monitored_barrier would name them.
std::string summary_host(const scenarios::RunResult& result, const SummaryStyle& style);
std::string summary_late(const scenarios::RunResult& result, const SummaryStyle& style);
std::string summary_links(const scenarios::RunResult& result, const SummaryStyle& style);
// Each row one change and what it does to the scenario's objective, largest effect first.
std::string summary_sensitivity(const scenarios::Scenario& scenario,
                                const std::vector<scenarios::SensitivityRow>& rows,
                                const SummaryStyle& style);
std::string summary_notes(const scenarios::RunResult& result, const SummaryStyle& style);

// Who waits for whom, where the job never ends.
std::string summary_hang(const scenarios::RunResult& result);

}  // namespace railyard::cli
