// Which collective a table measured and how many ranks took part (nccl_tests_checks.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "calibrate/readers/nccl_tests_checks.h"

namespace railyard::calibrate {
namespace {

using sim::Collective;
using Evidence = NcclTestsEvidence;

struct Program {
  std::string_view name;
  Collective collective;
};
constexpr std::array kPrograms{Program{"all_reduce", Collective::all_reduce},
                               Program{"all_gather", Collective::all_gather},
                               Program{"reduce_scatter", Collective::reduce_scatter},
                               Program{"broadcast", Collective::broadcast},
                               Program{"reduce", Collective::reduce},
                               Program{"alltoall", Collective::all_to_all},
                               Program{"gather", Collective::gather},
                               Program{"scatter", Collective::scatter},
                               Program{"sendrecv", Collective::send_recv}};

// What the figures of the rows say; 0: nothing.
struct Figures {
  std::int64_t parts = 0;  // size / (count x element): 1 where count is the whole buffer
  double factor = 0;       // busbw / algbw
  double error = 0;        // of factor, from the rounding of both
};

Figures figures_of(const std::vector<NcclTestsRow>& rows) {
  Figures figures;
  double best = 0;
  for (const NcclTestsRow& row : rows) {
    const std::int64_t element = nccl_tests_type_size(row.datatype);
    if (figures.parts == 0 && element > 0 && row.count > 0 && row.bytes > 0 &&
        row.count <= row.bytes / element && row.bytes % (row.count * element) == 0)
      figures.parts = row.bytes / (row.count * element);
    for (const auto& half : {row.out_of_place, row.in_place}) {
      if (!half || half->algbw <= best) continue;
      best = half->algbw;
      figures.factor = half->busbw / half->algbw;
      figures.error = (0.5 + 0.5 * figures.factor) * (best < 1000 ? 0.01 : 0.1) / best;
    }
  }
  return figures;
}

// Collectives whose rows look like these, in the order of likelihood.
std::vector<Collective> possible(const NcclTestsTable& table, const Figures& figures) {
  const NcclTestsRow& row = table.rows.back();
  const bool reduces = !row.redop.empty(), rooted = row.root.has_value();
  const bool parted = figures.parts > 1;
  if (rooted && reduces) return {Collective::reduce};
  if (rooted) {
    if (figures.parts == 1) return {Collective::broadcast};
    return {Collective::gather, Collective::scatter};
  }
  if (!reduces) return {Collective::all_gather, Collective::all_to_all};
  if (parted) return {Collective::reduce_scatter};
  if (figures.factor == 0 || figures.error > 0.05)
    return {Collective::all_reduce, Collective::send_recv};
  if (figures.factor > 1 + 2 * figures.error) return {Collective::all_reduce};
  if (table.rank_count > 2) return {Collective::send_recv};
  return {Collective::all_reduce, Collective::send_recv};  // of 2 ranks: the same factor
}

std::string names_of(const std::vector<Collective>& collectives) {
  std::string names;
  for (const Collective each : collectives)
    names += (names.empty() ? "" : " or ") + std::string(to_text(each));
  return names;
}

bool has(const std::vector<Collective>& all, Collective one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// The collective whose program's name the file's name contains: "all_reduce", "allreduce", ...
std::optional<Collective> collective_of_file(std::string_view path) {
  std::string name;
  for (const char c : path.substr(path.find_last_of('/') + 1))
    if (c != '_' && c != '-') name += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  static constexpr std::array<std::pair<std::string_view, Collective>, 9> kNames{
      {{"allreduce", Collective::all_reduce},
       {"allgather", Collective::all_gather},
       {"reducescatter", Collective::reduce_scatter},
       {"broadcast", Collective::broadcast},
       {"alltoall", Collective::all_to_all},
       {"sendrecv", Collective::send_recv},
       {"reduce", Collective::reduce},
       {"gather", Collective::gather},
       {"scatter", Collective::scatter}}};
  for (const auto& [text, collective] : kNames)
    if (name.find(text) != std::string::npos) return collective;
  return std::nullopt;
}

void choose_collective(NcclTestsTable& table, const NcclTestsHints& hints, const Figures& figures,
                       Notes& notes) {
  const std::vector<Collective> candidates = possible(table, figures);
  const auto said = [&](std::optional<Collective> collective, Evidence evidence) {
    if (table.collective || !collective) return;
    table.collective = collective;
    table.collective_from = evidence;
  };
  if (table.program.empty() && !hints.command.empty()) {
    table.program = hints.command;
    said(collective_of_program(hints.command), Evidence::command);
  } else if (!table.program.empty()) {
    said(collective_of_program(table.program), Evidence::header);
  }
  if (!table.program.empty()) {
    if (!table.collective)
      notes.add(table.line,
                fmt::format("{} is no collective that can be simulated", excerpt(table.program)));
    else if (!has(candidates, *table.collective))
      notes.add(table.line, fmt::format("{} is announced, but columns and figures are those of {}",
                                        excerpt(table.program), names_of(candidates)));
    return;
  }
  if (hints.called && has(candidates, *hints.called)) said(hints.called, Evidence::nccl_lines);
  if (candidates.size() == 1) said(candidates.front(), Evidence::figures);
  const auto named = collective_of_file(hints.file_name);
  if (named && has(candidates, *named)) said(named, Evidence::file_name);
  if (!table.collective)
    notes.add(table.line, fmt::format("the log does not say which collective this is: {}",
                                      names_of(candidates)));
}

// The ranks that a ratio busbw / algbw belongs to; 0 if it fits no number of ranks.
std::int64_t ranks_of_factor(Collective collective, const Figures& figures) {
  double shortfall = 0;  // 1 - factor, as a share of one
  switch (collective) {
    case Collective::all_reduce: shortfall = 1 - figures.factor / 2; break;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::gather:
    case Collective::scatter:
    case Collective::all_to_all: shortfall = 1 - figures.factor; break;
    default: return 0;
  }
  if (figures.factor <= 0 || shortfall <= 0) return 0;
  const double ranks = 1 / shortfall;
  // The error of factor moves the ranks by error * ranks^2.
  if (figures.error * ranks * ranks > 0.3 || std::abs(ranks - std::round(ranks)) > 0.4) return 0;
  return static_cast<std::int64_t>(std::llround(ranks));
}

void count_listed(NcclTestsTable& table) {
  std::set<std::string> hosts;
  std::set<std::pair<std::string, std::int64_t>> processes;
  std::set<std::int64_t> groups;
  std::int64_t last = -1;
  for (const NcclTestsRank& rank : table.ranks) {
    hosts.insert(rank.host);
    processes.insert({rank.host, rank.pid});
    groups.insert(rank.group);
    last = std::max(last, rank.rank);
  }
  table.node_count = static_cast<std::int64_t>(hosts.size());
  table.process_count = static_cast<std::int64_t>(processes.size());
  table.group_count = static_cast<std::int64_t>(groups.size());
  if ((last + 1) % table.group_count != 0) return;  // torn lines: these numbers say nothing
  table.rank_count = (last + 1) / table.group_count;
  table.rank_count_from = Evidence::header;
}

void note_listed(NcclTestsTable& table, Notes& notes) {
  const auto listed = static_cast<std::int64_t>(table.ranks.size());
  const std::size_t line = table.ranks.front().line;
  if (listed < table.rank_count * table.group_count) {
    notes.add(line, fmt::format("{} of {} ranks are listed", listed,
                                table.rank_count * table.group_count));
    table.process_count = -1;
  }
  if (table.group_count > 1)
    notes.add(line, fmt::format("{} communicators of {} ranks run at the same time",
                                table.group_count, table.rank_count));
}

void infer_ranks(NcclTestsTable& table, const Figures& figures, Notes& notes) {
  std::int64_t ranks = figures.parts > 1 ? figures.parts : 0;
  if (ranks == 0 && table.collective) ranks = ranks_of_factor(*table.collective, figures);
  if (ranks == 0) {
    notes.add(table.line, "the log does not say how many ranks took part");
    return;
  }
  table.rank_count = ranks;
  table.rank_count_from = Evidence::figures;
  notes.add(table.line, fmt::format("{}; the figures are those of {}",
                                    table.ranks.empty() ? "no ranks are listed"
                                                        : "the ranks listed make no equal groups",
                                    ranks));
}

void compare_ranks(const NcclTestsTable& table, const Figures& figures, Notes& notes) {
  const std::int64_t seen =
      figures.parts > 1
          ? figures.parts
          : (table.collective ? ranks_of_factor(*table.collective, figures) : std::int64_t{0});
  if (seen != 0 && seen != table.rank_count)
    notes.add(table.line, fmt::format("{} ranks are listed, but the figures are those of {}",
                                      table.rank_count, seen));
}

}  // namespace

std::optional<Collective> collective_of_program(std::string_view program) {
  if (program.ends_with("_perf")) program.remove_suffix(5);
  for (const Program& each : kPrograms)
    if (each.name == program) return each.collective;
  return std::nullopt;
}

std::string nccl_version_of_code(std::int64_t code) {
  const std::int64_t base = code >= 10000 ? 10000 : 1000;
  return fmt::format("{}.{}.{}", code / base, code % base / 100, code % 100);
}

std::int64_t nccl_tests_type_size(std::string_view type) {
  if (type == "int8" || type == "uint8" || type.starts_with("f8") || type.starts_with("fp8"))
    return 1;
  if (type == "half" || type == "bfloat16") return 2;
  if (type == "float" || type == "int32" || type == "uint32") return 4;
  if (type == "double" || type == "int64" || type == "uint64") return 8;
  return 0;
}

void complete_nccl_tests(NcclTestsTable& table, const NcclTestsHints& hints, Notes& notes) {
  const Figures figures = figures_of(table.rows);
  if (!table.ranks.empty()) count_listed(table);
  choose_collective(table, hints, figures, notes);
  if (table.rank_count < 0) {
    infer_ranks(table, figures, notes);
  } else {
    note_listed(table, notes);
    compare_ranks(table, figures, notes);
  }
}

}  // namespace railyard::calibrate
