#include "calibrate/probes/common/report.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <thread>
#include <utility>

#include "calibrate/probes/common/error.h"
#include "calibrate/probes/common/json_text.h"

namespace railyard::probe {
namespace {

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// The processor's name as Linux gives it; Arm's kernels give none.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  }
  return "unknown processor";
}

Device this_host() {
  Device host{"host", processor_name(), {}};
  utsname system{};
  if (uname(&system) == 0) host.facts = {{"kernel", system.release}, {"machine", system.machine}};
  host.facts["processors"] = std::to_string(std::thread::hardware_concurrency());
  return host;
}

std::string key(const std::string& name, const std::string& value) {
  return json_string(name) + ": " + value;
}

std::string labels_json(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels)
    text += (text.empty() ? "" : ", ") + key(name, json_string(value));
  return "{" + text + "}";
}

// "[a, b]" over lines, one element each.
template <typename Items, typename Format>
std::string list_json(const Items& items, const Format& format) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "\n  " : ",\n  ") + format(item);
  return "[" + text + (text.empty() ? "]" : "\n ]");
}

std::string summary_json(const Summary& time) {
  return "{" + key("median", json_number(time.median)) + ", " + key("p10", json_number(time.p10)) +
         ", " + key("p90", json_number(time.p90)) + ", " + key("min", json_number(time.min)) +
         ", " + key("max", json_number(time.max)) + ", " +
         key("count", std::to_string(time.count)) + "}";
}

std::string row_json(const Row& row) {
  const std::string head =
      "{" + key("kind", json_string(row.kind)) + ", " + key("labels", labels_json(row.labels));
  if (row.value)
    return head + ", " + key("value", json_number(*row.value)) + ", " +
           key("unit", json_string(row.unit)) + "}";
  return head + ", " + key("bytes", std::to_string(row.bytes)) + ", " +
         key("moved_bytes", std::to_string(row.moved_bytes)) + ", " +
         key("time_us", summary_json(row.time_us)) + "}";
}

std::string fit_json(const Fit& fit) {
  return "{" + key("kind", json_string(fit.kind)) + ", " + key("labels", labels_json(fit.labels)) +
         ", " + key("latency_us", json_number(fit.line.latency_us)) + ", " +
         key("bytes_per_second", json_number(fit.line.bytes_per_second)) + ", " +
         key("worst_error", json_number(fit.line.worst_error)) + ", " +
         key("points", std::to_string(fit.line.points)) + "}";
}

std::string device_json(const Device& device) {
  return "{" + key("kind", json_string(device.kind)) + ", " +
         key("name", json_string(device.name)) + ", " + key("facts", labels_json(device.facts)) +
         "}";
}

std::string labels_text(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) text += (text.empty() ? "" : " ") + name + "=" + value;
  return text;
}

void print_row(const Row& row, std::FILE* out) {
  const std::string labels = labels_text(row.labels);
  if (row.value) {
    std::fprintf(out, "  %-52s %14g %s\n", labels.c_str(), *row.value, row.unit.c_str());
    return;
  }
  const Summary& time = row.time_us;
  std::fprintf(out, "  %-52s %12lld %11.3f %11.3f %11.3f %7lld", labels.c_str(),
               static_cast<long long>(row.bytes), time.median, time.p10, time.p90,
               static_cast<long long>(time.count));
  if (row.moved_bytes > 0 && time.median > 0)
    std::fprintf(out, " %9.3f", static_cast<double>(row.moved_bytes) / time.median / 1e3);
  std::fprintf(out, "\n");
}

void print_heading(const Row& row, std::FILE* out) {
  std::fprintf(out, "\n%s\n", row.kind.c_str());
  if (!row.value)
    std::fprintf(out, "  %-52s %12s %11s %11s %11s %7s %9s\n", "", "bytes", "median us", "p10 us",
                 "p90 us", "count", "GB/s");
}

}  // namespace

Report new_report(const std::string& tool, int argc, char** argv) {
  Report report;
  report.tool = tool;
  report.host = host_name();
  report.started = utc_now();
  report.command.assign(argv, argv + argc);
  report.devices.push_back(this_host());
  return report;
}

void add_fits(Report& report, const std::string& kind) {
  std::map<Labels, std::vector<TimedBytes>> groups;
  for (const Row& row : report.rows) {
    if (row.kind == kind && !row.value && row.moved_bytes > 0)
      groups[row.labels].push_back({static_cast<double>(row.moved_bytes), row.time_us.median});
  }
  for (const auto& [labels, points] : groups)
    if (const auto line = fit_line(points)) report.fits.push_back({kind, labels, *line});
}

std::string to_json(const Report& report) {
  const auto quoted = [](const std::string& text) { return json_string(text); };
  return "{\n " + key("schema", json_string("railyard-probe")) + ",\n " +
         key("schema_version", std::to_string(kSchemaVersion)) + ",\n " +
         key("tool", json_string(report.tool)) + ",\n " +
         key("version", json_string(RAILYARD_PROBES_VERSION)) + ",\n " +
         key("host", json_string(report.host)) + ",\n " +
         key("started", json_string(report.started)) + ",\n " +
         key("command", list_json(report.command, quoted)) + ",\n " +
         key("software", labels_json(report.software)) + ",\n " +
         key("devices", list_json(report.devices, device_json)) + ",\n " +
         key("notes", list_json(report.notes, quoted)) + ",\n " +
         key("rows", list_json(report.rows, row_json)) + ",\n " +
         key("fits", list_json(report.fits, fit_json)) + "\n}\n";
}

void print_table(const Report& report, std::FILE* out) {
  std::fprintf(out, "%s %s on %s, %s\n", report.tool.c_str(), RAILYARD_PROBES_VERSION,
               report.host.c_str(), report.started.c_str());
  for (const auto& [name, version] : report.software)
    std::fprintf(out, "  %s %s\n", name.c_str(), version.c_str());
  for (const Device& device : report.devices)
    std::fprintf(out, "  %s: %s  %s\n", device.kind.c_str(), device.name.c_str(),
                 labels_text(device.facts).c_str());
  const Row* previous = nullptr;
  for (const Row& row : report.rows) {
    if (previous == nullptr || previous->kind != row.kind) print_heading(row, out);
    print_row(row, out);
    previous = &row;
  }
  if (!report.fits.empty()) std::fprintf(out, "\nfits: time = latency + bytes / bandwidth\n");
  for (const Fit& fit : report.fits)
    std::fprintf(out, "  %-18s %-33s %11.3f us %11.4f GB/s, within %.1f %%\n", fit.kind.c_str(),
                 labels_text(fit.labels).c_str(), fit.line.latency_us,
                 fit.line.bytes_per_second / 1e9, 100 * fit.line.worst_error);
  for (const std::string& note : report.notes) std::fprintf(out, "note: %s\n", note.c_str());
}

void publish(const Report& report, const std::string& path) {
  print_table(report, stdout);
  std::fflush(stdout);
  if (path.empty()) return;
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) fail_with_errno("cannot write " + path);
  const std::string text = to_json(report);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) fail_with_errno("cannot write " + path);
}

}  // namespace railyard::probe
