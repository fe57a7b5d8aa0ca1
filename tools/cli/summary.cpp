#include "tools/cli/summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/workload.h"
#include "tools/cli/format.h"
#include "tools/cli/table.h"

namespace railyard::cli {
namespace {

using scenarios::IdleLinks;
using scenarios::LinkRow;
using scenarios::RunResult;
using scenarios::SensitivityRow;

constexpr std::size_t kShownWaits = 20;

double effect(const SensitivityRow& row) {
  if (row.base.count() == 0) return 0;
  return static_cast<double>(row.varied.count()) / static_cast<double>(row.base.count()) - 1;
}

std::string plural(std::size_t n, std::string_view what) {
  return fmt::format("{} {}{}", count(static_cast<std::int64_t>(n)), what, n == 1 ? "" : "s");
}

// What the numbers of the sensitivity table are changes of.
std::string_view objective_name(const scenarios::Scenario& scenario) {
  if (scenarios::trains(scenario)) return "step time";
  if (scenario.workload && scenario.workload->key() == "kv") return "median time to first token";
  return scenario.collectives.empty() ? "time until the last flow ends" : "total time";
}

// Links that read the same are shown once.
bool alike(const LinkRow& a, const LinkRow& b) {
  return a.link_class == b.link_class && a.rate == b.rate && human(a.bytes) == human(b.bytes) &&
         percent(a.utilization) == percent(b.utilization);
}

std::string idle_text(const IdleLinks& idle) {
  return fmt::format("{} of {} {} links", count(static_cast<std::int64_t>(idle.count)),
                     count(static_cast<std::int64_t>(idle.total)), sim::to_text(idle.link_class)) +
         (idle.example.empty() ? "" : fmt::format(" ({})", idle.example));
}

}  // namespace

std::string heading(std::string_view text, const SummaryStyle& style) {
  return style.bold ? fmt::format("\n\033[1m{}\033[0m\n", text) : fmt::format("\n{}\n", text);
}

std::string summary_title(const scenarios::Scenario& scenario, const RunResult& result,
                          const SummaryStyle& style) {
  const std::string title = scenario.description.empty()
                                ? scenario.name
                                : fmt::format("{}: {}", scenario.name, scenario.description);
  std::string text = wrap(title, kWidth, "  ");
  if (style.bold) text = fmt::format("\033[1m{}\033[0m", text);
  text += fmt::format("\n{} on {} of {}, parameters {}\n", plural(result.ranks, "rank"),
                      plural(result.nodes, "node"), result.machine, result.profile);
  return text;
}

std::string summary_late(const RunResult& result, const SummaryStyle& style) {
  if (result.late_ranks.empty()) return "";
  constexpr std::size_t kShown = 10;
  const std::size_t shown = std::min(kShown, result.late_ranks.size());
  Table table({{"rank"}, {"last to enter"}, {"median late"}, {"worst"}, {"all told"}});
  std::string causes;
  for (std::size_t i = 0; i < shown; ++i) {
    const scenarios::LateRank& row = result.late_ranks[i];
    table.add({std::to_string(row.rank), fmt::format("{} of {} calls", row.last_in, row.calls),
               human(row.median), human(row.worst), human(row.total)});
    if (!row.cause.empty())
      causes += wrap(fmt::format("  rank {}: {}", row.rank, row.cause), kWidth, "    ") + "\n";
  }
  std::string text =
      heading("Late ranks (behind the median rank, where they were the last to enter)", style) +
      table.text() + causes;
  if (result.late_ranks.size() > shown)
    text += fmt::format("  and {}\n", plural(result.late_ranks.size() - shown, "other"));
  return text;
}

std::string summary_host(const RunResult& result, const SummaryStyle& style) {
  if (result.host_losses.empty()) return "";
  Table table({{"lost to", Align::left}, {"host time"}, {"of rank"}});
  for (const scenarios::HostLoss& loss : result.host_losses)
    table.add({loss.what, human(loss.total), std::to_string(loss.rank)});
  return heading("Host time lost between steps (on the rank that lost most)", style) + table.text();
}

std::string summary_links(const RunResult& result, const SummaryStyle& style) {
  std::string text;
  if (!result.busiest_links.empty()) {
    Table table(
        {{"link", Align::left}, {"class", Align::left}, {"carried"}, {"can carry"}, {"used"}});
    const auto& links = result.busiest_links;
    for (std::size_t i = 0, next = 0; i < links.size(); i = next) {
      while (next < links.size() && alike(links[i], links[next])) ++next;
      const std::string more = next - i > 1 ? fmt::format(" and {} like it", next - i - 1) : "";
      table.add({links[i].name + more, std::string(sim::to_text(links[i].link_class)),
                 human(links[i].bytes), human(links[i].rate), percent(links[i].utilization)});
    }
    text += heading("Busiest links (used: share of what the link could carry in the whole run)",
                    style) +
            table.text();
  }
  std::string idle;
  for (const IdleLinks& row : result.idle_links)
    if (row.count > 0) idle += (idle.empty() ? "" : "; ") + idle_text(row);
  if (!idle.empty()) text += wrap("  Carried nothing: " + idle, kWidth, "    ") + "\n";
  return text;
}

std::string summary_sensitivity(const scenarios::Scenario& scenario,
                                const std::vector<SensitivityRow>& given,
                                const SummaryStyle& style) {
  if (given.empty()) return "";
  std::vector<SensitivityRow> rows = given;
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::abs(effect(a)) > std::abs(effect(b));
  });
  Table table({{"", Align::left}, {""}, {""}, {""}});
  std::string none;
  for (const SensitivityRow& row : rows) {
    if (row.varied == row.base) {
      none += (none.empty() ? "" : ", ") + row.what;
      continue;
    }
    const sim::Duration difference = row.varied - row.base;
    const sim::Duration size = difference.count() < 0 ? -difference : difference;
    table.add({row.what, fmt::format("{:+.0f} %", row.change * 100), change(effect(row)),
               (difference.count() < 0 ? "-" : "+") + human(size)});
  }
  std::string text = heading(fmt::format("What changes the {} ({}), each by itself",
                                         objective_name(scenario), human(rows.front().base)),
                             style) +
                     table.text();
  if (!none.empty()) text += wrap("  no effect: " + none, kWidth, "    ") + "\n";
  return text;
}

std::string summary_notes(const RunResult& result, const SummaryStyle& style) {
  if (result.notes.empty()) return "";
  std::string text = heading("Notes", style);
  for (const std::string& note : result.notes) text += wrap("  - " + note, kWidth, "    ") + "\n";
  return text;
}

std::string summary_hang(const RunResult& result) {
  std::string text = fmt::format("the simulated job would hang: {} never end{}\n",
                                 plural(result.unfinished.size(), "operation"),
                                 result.unfinished.size() == 1 ? "s" : "");
  for (std::size_t i = 0; i < std::min(kShownWaits, result.unfinished.size()); ++i)
    text += wrap("  " + result.unfinished[i], kWidth, "    ") + "\n";
  if (result.unfinished.size() > kShownWaits)
    text += fmt::format("  ... and {} more\n", result.unfinished.size() - kShownWaits);
  return text;
}

std::string summary(const scenarios::Scenario& scenario, const RunResult& result,
                    const SummaryStyle& style) {
  std::string text = summary_title(scenario, result, style);
  if (result.ddp) text += summary_ddp(*result.ddp, style);
  if (result.training) text += summary_training(*result.training, style);
  if (result.kv) text += summary_kv(*result.kv, style);
  text += summary_collectives(result, style);
  text += summary_flows(result, style);
  text += summary_late(result, style);
  text += summary_host(result, style);
  text += summary_links(result, style);
  text += summary_sensitivity(scenario, result.sensitivity, style);
  text += summary_notes(result, style);
  return text;
}

}  // namespace railyard::cli
