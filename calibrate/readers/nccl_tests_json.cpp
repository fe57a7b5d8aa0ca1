#include "calibrate/readers/nccl_tests_json.h"

#include <fmt/format.h>

#include <utility>

#include "calibrate/readers/json_text.h"
#include "calibrate/readers/log_kind.h"
#include "calibrate/readers/nccl_tests_checks.h"

namespace railyard::calibrate {
namespace {

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.find_last_of('/') + 1));
}

std::int64_t number(const Json& object, std::string_view key) {
  return json_integer(object, key).value_or(-1);
}

void read_config(const Json& config, NcclTestsTable& table) {
  table.threads = number(config, "nthreads");
  table.gpus_per_thread = number(config, "ngpus");
  table.min_bytes = number(config, "minimum_bytes");
  table.max_bytes = number(config, "maximum_bytes");
  table.step_factor = number(config, "step_factor");
  table.step_bytes = number(config, "step_bytes");
  table.warmup = number(config, "warmup_iters");
  table.iterations = number(config, "iterations");
  table.aggregated = number(config, "aggregated_iterations");
  table.graph = number(config, "graph");
  if (const auto checked = json_integer(config, "validation")) table.validated = *checked != 0;
  for (const Json& device : json_at(config, "devices")) {
    NcclTestsRank rank;
    rank.rank = number(device, "rank");
    rank.group = json_integer(device, "group").value_or(0);
    rank.pid = number(device, "pid");
    rank.device = number(device, "device");
    rank.host = json_string(device, "hostname");
    rank.bus = json_string(device, "device_hex");
    rank.gpu = json_string(device, "device_info");
    if (rank.rank >= 0) table.ranks.push_back(std::move(rank));
  }
}

std::optional<NcclTestsHalf> read_half(const Json& half, const Json& iterations,
                                       NcclTestsTable& table) {
  const auto host = json_real(half, "cpu_time");
  const auto us = host ? host : json_real(half, "time");
  if (!us) return std::nullopt;
  table.host_times = table.host_times || host.has_value();
  NcclTestsHalf out{*us, json_real(half, "alg_bw").value_or(0),
                    json_real(half, "bus_bw").value_or(0), json_real(half, "nwrong"), std::nullopt};
  const auto value = [&](std::string_view key) { return json_real(iterations, key).value_or(0); };
  if (iterations.is_object())
    out.iterations =
        NcclTestsIterations{value("min_us"), value("max_us"), value("p99_us"), value("cv_pct")};
  return out;
}

void read_result(const Json& result, std::size_t index, NcclTestsTable& table, Notes& notes) {
  NcclTestsRow row;
  const auto bytes = json_integer(result, "size"), count = json_integer(result, "count");
  row.bytes = bytes.value_or(-1);
  row.count = count.value_or(-1);
  row.datatype = json_string(result, "type");
  row.redop = json_string(result, "redop");
  if (row.redop == "none") row.redop.clear();
  const auto root = json_integer(result, "root");
  if (root && *root >= 0) row.root = root;
  row.out_of_place =
      read_half(json_at(result, "out_of_place"), json_at(result, "out_of_place_per_iter"), table);
  row.in_place =
      read_half(json_at(result, "in_place"), json_at(result, "in_place_per_iter"), table);
  if (row.bytes < 0 || row.count < 0 || (!row.out_of_place && !row.in_place)) {
    notes.add(0, fmt::format("results[{}] has no size, count and time: left out", index));
    return;
  }
  table.rows.push_back(std::move(row));
}

}  // namespace

sim::Result<NcclTestsLog> read_nccl_tests_json(std::string_view text, std::string_view name) {
  const std::string file(name);
  RAILYARD_ASSIGN(const Json document, parse_json(text, file));
  const Json& results = json_at(document, "results");
  if (!results.is_array()) return sim::bad_input("nccl-tests' JSON without \"results\"", file);

  Notes notes;
  NcclTestsTable table;
  const Json& arguments = json_at(document, "args");
  if (arguments.is_array() && !arguments.empty() && arguments[0].is_string())
    table.program = base_name(arguments[0].get<std::string>());
  if (const auto code = json_integer(document, "nccl_version"); code && *code >= 1000)
    table.nccl = nccl_version_of_code(*code);
  read_config(json_at(document, "config"), table);
  for (std::size_t i = 0; i < results.size(); ++i) read_result(results[i], i, table, notes);
  if (table.rows.empty()) return sim::bad_input("\"results\" holds no row that can be read", file);

  const Json& bounds = json_at(document, "out_of_bounds");
  table.out_of_bounds = json_integer(bounds, "count");
  table.average_busbw = json_real(json_at(document, "average_bus_bandwidth"), "bandwidth");
  for (const Json& error : json_at(document, "errors"))
    if (error.is_string() && !error.get_ref<const std::string&>().empty())
      notes.add(0, "error at the end: " + excerpt(error.get<std::string>(), 200));
  complete_nccl_tests(table, {.command = {}, .called = {}, .file_name = name}, notes);
  check_nccl_tests(table, notes);
  NcclTestsLog log{file, {}, {}};
  log.tables.push_back(std::move(table));
  log.notes = notes.take();
  return log;
}

}  // namespace railyard::calibrate
