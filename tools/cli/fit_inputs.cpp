#include "tools/cli/fit_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "calibrate/readers/nccl_tests.h"
#include "scenarios/document.h"

namespace railyard::cli {

using calibrate::NcclTestsTable;
using sim::Result;

namespace {

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return sim::bad_input("cannot be read", path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Result<void> check_device(const NcclTestsTable& table, const std::string& log,
                          std::string& device) {
  for (const calibrate::NcclTestsRank& rank : table.ranks) {
    if (rank.gpu.empty()) continue;
    if (device.empty()) device = rank.gpu;
    if (rank.gpu != device)
      return sim::bad_input(
          fmt::format("measured on '{}', the others on '{}': one profile serves one platform",
                      rank.gpu, device),
          fmt::format("{}:{}", log, rank.line));
  }
  return {};
}

// nccl-tests' words; types of one byte are all the same to a simulation.
std::string_view dtype_of(const NcclTestsTable& table) {
  const std::string& printed = table.rows.front().datatype;
  if (printed == "half") return "fp16";
  if (printed == "double") return "fp64";
  if (printed == "bfloat16") return "bf16";
  if (printed == "int64" || printed == "uint64") return "int64";
  if (printed == "int8" || printed == "uint8" || printed.starts_with("f8")) return "int8";
  return "fp32";
}

// The rows that have a time, as the reference set has them.
MeasuredRun measured(const NcclTestsTable& table, const std::string& log) {
  MeasuredRun run;
  run.id = log;
  run.path = log;
  run.collective = std::string(sim::to_text(*table.collective));
  run.datatype = table.rows.front().datatype;
  run.status = "healthy";
  run.platform.name = log;
  run.platform.predictable = true;
  run.platform.nccl_used = table.nccl;
  if (table.node_count > 0) run.platform.nodes = static_cast<std::uint32_t>(table.node_count);
  if (table.node_count > 0 && table.rank_count > 0)
    run.platform.gpus_per_node = static_cast<std::uint32_t>(table.rank_count / table.node_count);
  for (const calibrate::NcclTestsRow& row : table.rows) {
    if (row.out_of_place && row.out_of_place->us > 0 && row.bytes > 0)
      run.rows.push_back({sim::bytes(row.bytes), row.out_of_place->us});
    if (row.in_place && row.in_place->us > 0 && row.bytes > 0)
      run.rows_in_place.push_back({sim::bytes(row.bytes), row.in_place->us});
  }
  return run;
}

// Some logs do not tell their collective: then the scenario's, if it has one only.
Result<sim::Collective> stated_collective(const LogRequest& request, const NcclTestsTable& table) {
  RAILYARD_ASSIGN(const scenarios::Scenario scenario,
                  scenarios::read_scenario(request.scenario, {.sets = request.sets}));
  if (scenario.collectives.size() == 1) return scenario.collectives.front().collective;
  return sim::bad_input(
      "the log does not tell which collective this table is of, nor does the scenario with one "
      "entry in `collectives:`",
      fmt::format("{}:{}", request.log, table.line));
}

// --set arguments that make the scenario run what the table did.
std::vector<std::string> settings(const NcclTestsTable& table, const MeasuredRun& run) {
  std::string sizes;
  for (const auto& row : run.rows.empty() ? run.rows_in_place : run.rows)
    sizes += fmt::format("{}{}B", sizes.empty() ? "" : ", ", row.size.raw());
  std::vector<std::string> sets{
      fmt::format("collectives=[{{collective: {}, dtype: {}, sizes: [{}]}}]", run.collective,
                  dtype_of(table), sizes)};
  if (table.node_count > 0) {
    sets.push_back(fmt::format("cluster.nodes={}", table.node_count));
    if (table.rank_count > 0 && table.rank_count % table.node_count == 0)
      sets.push_back(fmt::format("ranks.gpus_per_node={}", table.rank_count / table.node_count));
  }
  const std::int64_t per_process = table.threads * table.gpus_per_thread;
  if (table.threads > 0 && table.gpus_per_thread > 0) {
    sets.push_back(fmt::format("ranks.gpus_per_process={}", per_process));
    sets.push_back(
        fmt::format("ranks.thread_per_gpu={}", table.threads > 1 && table.gpus_per_thread == 1));
  }
  return sets;
}

}  // namespace

Result<std::vector<LogInput>> log_inputs(const LogRequest& request, std::string& device) {
  const std::string& log = request.log;
  RAILYARD_ASSIGN(const std::string text, read_file(log));
  RAILYARD_ASSIGN(const calibrate::NcclTestsLog read, calibrate::read_nccl_tests(text, log));
  std::vector<LogInput> inputs;
  for (NcclTestsTable table : read.tables) {
    if (!table.collective) {
      RAILYARD_ASSIGN(table.collective, stated_collective(request, table));
    }
    RAILYARD_TRY(check_device(table, log, device));
    LogInput made{{}, measured(table, log)};
    for (auto* rows : {&made.run.rows, &made.run.rows_in_place})
      std::erase_if(*rows, [&](const calibrate::MeasuredRow& row) {
        return request.largest > 0 && row.size.raw() > request.largest;
      });
    if (made.run.rows.empty() && made.run.rows_in_place.empty())
      return sim::bad_input("no row of this table has a time that counts",
                            fmt::format("{}:{}", log, table.line));
    std::vector<std::string> all = settings(table, made.run);
    all.insert(all.end(), request.sets.begin(), request.sets.end());
    RAILYARD_ASSIGN(made.input.scenario, scenarios::read_scenario(request.scenario, {.sets = all}));
    made.input.name = log;
    made.input.rows = made.run.rows.empty() ? made.run.rows_in_place : made.run.rows;
    inputs.push_back(std::move(made));
  }
  return inputs;
}

Result<bool> is_scenario(const std::string& path) {
  RAILYARD_ASSIGN(const std::string text, read_file(path));
  RAILYARD_ASSIGN(const scenarios::Node root, scenarios::parse_yaml(text, path));
  return root.find("railyard") != nullptr;
}

}  // namespace railyard::cli
