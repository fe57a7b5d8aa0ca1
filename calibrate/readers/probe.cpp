#include "calibrate/readers/probe.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "calibrate/readers/probe_json.h"

namespace railyard::calibrate {
namespace {

using probe_json::Item;

constexpr std::int64_t kNewestSchema = 1;

sim::Result<ProbeTime> time_of(const Item& item) {
  ProbeTime time;
  RAILYARD_ASSIGN(time.median, item.number("median"));
  RAILYARD_ASSIGN(time.p10, item.number("p10"));
  RAILYARD_ASSIGN(time.p90, item.number("p90"));
  RAILYARD_ASSIGN(time.min, item.number("min"));
  RAILYARD_ASSIGN(time.max, item.number("max"));
  RAILYARD_ASSIGN(time.count, item.count("count"));
  if (time.min <= 0) return item.error("a time of 0 or less");
  if (time.count < 1) return item.error("a summary of no samples");
  const double ordered[] = {time.min, time.p10, time.median, time.p90, time.max};
  if (!std::is_sorted(std::begin(ordered), std::end(ordered)))
    return item.error("min, p10, median, p90 and max are not in order");
  return time;
}

sim::Result<ProbeRow> row_of(const Item& item) {
  ProbeRow row;
  RAILYARD_ASSIGN(row.kind, item.text("kind"));
  RAILYARD_ASSIGN(row.labels, item.labels("labels"));
  if (row.kind.empty()) return item.error("a row needs a kind");
  const bool has_time = item.has("time_us"), has_value = item.has("value");
  if (has_time == has_value) return item.error("a row has either time_us or value");
  if (has_value) {
    RAILYARD_ASSIGN(row.value, item.number("value"));
    RAILYARD_ASSIGN(row.unit, item.text("unit"));
    return row;
  }
  RAILYARD_ASSIGN(row.bytes, item.count("bytes"));
  RAILYARD_ASSIGN(row.moved_bytes, item.count("moved_bytes"));
  RAILYARD_ASSIGN(const Item time, item.object("time_us"));
  RAILYARD_ASSIGN(row.time_us, time_of(time));
  return row;
}

sim::Result<ProbeFit> fit_of(const Item& item) {
  ProbeFit fit;
  RAILYARD_ASSIGN(fit.kind, item.text("kind"));
  RAILYARD_ASSIGN(fit.labels, item.labels("labels"));
  RAILYARD_ASSIGN(fit.latency_us, item.number("latency_us"));
  RAILYARD_ASSIGN(fit.bytes_per_second, item.number("bytes_per_second"));
  RAILYARD_ASSIGN(fit.worst_error, item.number("worst_error"));
  RAILYARD_ASSIGN(fit.points, item.count("points"));
  if (fit.latency_us < 0 || fit.bytes_per_second <= 0)
    return item.error("a fit needs a latency of 0 or more and a bandwidth above 0");
  return fit;
}

sim::Result<ProbeDevice> device_of(const Item& item) {
  ProbeDevice device;
  RAILYARD_ASSIGN(device.kind, item.text("kind"));
  RAILYARD_ASSIGN(device.name, item.text("name"));
  RAILYARD_ASSIGN(device.facts, item.labels("facts"));
  return device;
}

// Every element of the list `key`, by `read`.
template <typename T, typename Read>
sim::Result<std::vector<T>> all_of(const Item& item, const char* key, const Read& read) {
  RAILYARD_ASSIGN(const std::vector<Item> elements, item.list(key));
  std::vector<T> values;
  for (const Item& element : elements) {
    RAILYARD_ASSIGN(T value, read(element));
    values.push_back(std::move(value));
  }
  return values;
}

sim::Result<void> check_schema(const Item& top) {
  if (!top.has("schema")) return top.error("not a probe's report: there is no \"schema\"");
  RAILYARD_ASSIGN(const std::string schema, top.text("schema"));
  if (schema != "railyard-probe")
    return top.error("not a probe's report: the schema is " + probe_json::quoted(schema));
  RAILYARD_ASSIGN(const std::int64_t version, top.count("schema_version"));
  if (version < 1 || version > kNewestSchema)
    return top.error("schema_version " + std::to_string(version) + " is not known, only up to " +
                     std::to_string(kNewestSchema));
  return {};
}

sim::Result<ProbeReport> report_of(const Item& top) {
  RAILYARD_TRY(check_schema(top));
  const auto text = [](const Item& item) { return item.as_text(); };
  ProbeReport report;
  RAILYARD_ASSIGN(report.tool, top.text("tool"));
  RAILYARD_ASSIGN(report.version, top.text("version"));
  RAILYARD_ASSIGN(report.host, top.text("host"));
  RAILYARD_ASSIGN(report.started, top.text("started"));
  RAILYARD_ASSIGN(report.command, all_of<std::string>(top, "command", text));
  RAILYARD_ASSIGN(report.software, top.labels("software"));
  RAILYARD_ASSIGN(report.devices, all_of<ProbeDevice>(top, "devices", device_of));
  RAILYARD_ASSIGN(report.notes, all_of<std::string>(top, "notes", text));
  RAILYARD_ASSIGN(report.rows, all_of<ProbeRow>(top, "rows", row_of));
  RAILYARD_ASSIGN(report.fits, all_of<ProbeFit>(top, "fits", fit_of));
  return report;
}

}  // namespace

double ProbeRow::bytes_per_second() const {
  return time_us && moved_bytes > 0 ? static_cast<double>(moved_bytes) / time_us->median * 1e6 : 0;
}

sim::Result<ProbeReport> read_probe(std::string_view text, std::string_view name) {
  RAILYARD_ASSIGN(const nlohmann::json document, probe_json::parse(text, name));
  RAILYARD_ASSIGN(ProbeReport report, report_of(Item(document, std::string(name))));
  report.source = name;
  return report;
}

sim::Result<ProbeReport> read_probe_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!(text << file.rdbuf())) return sim::Error{sim::ErrorCode::io, "cannot be read", path};
  return read_probe(text.str(), path);
}

}  // namespace railyard::calibrate
