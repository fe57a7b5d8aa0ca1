#include "tools/cli/calibrate_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "calibrate/readers/any_log.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/format.h"
#include "tools/cli/json_parts.h"
#include "topologies/import/text_file.h"

namespace railyard::cli {
namespace {

using calibrate::AnyLog;
using calibrate::Identified;
using calibrate::LogSection;
using calibrate::Measurement;
using calibrate::Note;
using sim::Result;

constexpr std::size_t kMaxLogBytes = std::size_t{4} << 30U;  // traces are large
constexpr std::size_t kShownSections = 8, kShownNotes = 20;

struct File {
  std::string path;
  Identified kind;
  AnyLog log;
};

Result<File> read_file(const std::string& path) {
  RAILYARD_ASSIGN(const std::string text, topologies::read_text_file(path, kMaxLogBytes));
  RAILYARD_ASSIGN(AnyLog log, calibrate::read_any_log(text, path));
  return File{path, calibrate::identify(text), std::move(log)};
}

std::string size_text(std::int64_t bytes) { return human(sim::bytes(bytes)); }

std::string section_text(const LogSection& section) {
  std::string text = section.test.empty() ? "test not named" : section.test;
  if (section.collective) {
    text += fmt::format(": {}", sim::to_text(*section.collective));
    if (!section.collective_from.empty()) text += fmt::format(" (by {})", section.collective_from);
  }
  if (section.ranks > 0) text += fmt::format(", {} ranks", section.ranks);
  if (section.nodes > 0)
    text += fmt::format(" on {} node{}", section.nodes, section.nodes == 1 ? "" : "s");
  for (const std::string& device : section.devices) text += ", " + device;
  text += fmt::format("; {} row{}", section.rows, section.rows == 1 ? "" : "s");
  if (section.least_bytes)
    text +=
        fmt::format(", {} to {}", size_text(*section.least_bytes), size_text(*section.most_bytes));
  for (const std::string& detail : section.details) text += "; " + detail;
  return text;
}

std::string notes_text(const std::vector<Note>& notes, const std::string& path) {
  std::string text;
  for (std::size_t i = 0; i < notes.size() && i < kShownNotes; ++i)
    text += notes[i].line == 0
                ? fmt::format("  note: {}\n", notes[i].text)
                : fmt::format("  note: {}:{}: {}\n", path, notes[i].line, notes[i].text);
  if (notes.size() > kShownNotes)
    text += fmt::format("  and {} more notes (--json has them all)\n", notes.size() - kShownNotes);
  return text;
}

std::string usable_text(std::size_t measurements) {
  return fmt::format("  {} measurement{} can be used\n", measurements,
                     measurements == 1 ? "" : "s");
}

std::string file_text(const File& file) {
  const auto sections = calibrate::sections_of(file.log);
  std::string text =
      fmt::format("{}: {} (line {}: \"{}\")\n", file.path, calibrate::describe(file.kind.kind),
                  file.kind.line, file.kind.text);
  for (std::size_t i = 0; i < sections.size() && i < kShownSections; ++i)
    text += "  " + section_text(sections[i]) + "\n";
  if (sections.size() > kShownSections)
    text += fmt::format("  and {} more tables\n", sections.size() - kShownSections);
  text += usable_text(calibrate::measurements(file.log).size());
  return text + notes_text(calibrate::notes_of(file.log), file.path);
}

// The traces of one job, merged: also of a single one, whose notes say what is missing.
std::optional<calibrate::KinetoMerge> merged(const std::vector<File>& files) {
  std::vector<calibrate::KinetoTrace> traces;
  for (const File& file : files)
    if (const auto* trace = std::get_if<calibrate::KinetoTrace>(&file.log))
      traces.push_back(*trace);
  if (traces.empty()) return std::nullopt;
  return calibrate::merge_kineto(traces);
}

template <typename T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json known(std::int64_t count) { return count < 0 ? Json(nullptr) : Json(count); }

Json section_json(const LogSection& section) {
  Json out;
  out["test"] = section.test;
  out["collective"] = section.collective ? Json(sim::to_text(*section.collective)) : Json(nullptr);
  out["collective_from"] = section.collective_from;
  out["ranks"] = known(section.ranks);
  out["nodes"] = known(section.nodes);
  out["devices"] = section.devices;
  out["rows"] = section.rows;
  out["least_bytes"] = known(section.least_bytes);
  out["most_bytes"] = known(section.most_bytes);
  out["details"] = section.details;
  out["line"] = section.line;
  return out;
}

Json measurement_json(const Measurement& m) {
  Json out;
  out["kind"] = sim::to_text(m.kind);
  out["test"] = m.test;
  if (m.collective) out["collective"] = sim::to_text(*m.collective);
  if (m.kind == calibrate::MeasurementKind::message) out["pattern"] = sim::to_text(m.pattern);
  out["bytes"] = known(m.bytes);
  out["us"] = known(m.us);
  out["gb_per_s"] = known(m.gb_per_s);
  out["ranks"] = known(m.ranks);
  out["nodes"] = known(m.nodes);
  if (m.kind == calibrate::MeasurementKind::collective) {
    out["in_place"] = m.in_place;
    out["datatype"] = m.datatype;
    out["redop"] = m.redop;
  }
  if (m.kind == calibrate::MeasurementKind::copy) {
    out["from"] = m.from;
    out["to"] = m.to;
    out["bidirectional"] = m.bidirectional;
  }
  out["shared"] = m.shared;
  out["devices"] = m.devices;
  out["line"] = m.line;
  return out;
}

Json notes_json(const std::vector<Note>& notes) {
  Json out = Json::array();
  for (const Note& note : notes) out.push_back({{"line", note.line}, {"text", note.text}});
  return out;
}

Json measurements_json(const std::vector<Measurement>& all) {
  Json out = Json::array();
  for (const Measurement& m : all) out.push_back(measurement_json(m));
  return out;
}

Json file_json(const File& file) {
  Json out;
  out["file"] = file.path;
  out["kind"] = sim::to_text(file.kind.kind);
  out["line"] = file.kind.line;
  out["sections"] = Json::array();
  for (const LogSection& section : calibrate::sections_of(file.log))
    out["sections"].push_back(section_json(section));
  out["measurements"] = measurements_json(calibrate::measurements(file.log));
  out["notes"] = notes_json(calibrate::notes_of(file.log));
  return out;
}

}  // namespace

CalibrateReadReport calibrate_read_report(const CalibrateReadArguments& arguments) {
  CalibrateReadReport report;
  std::vector<File> files;
  Json out;
  out["files"] = Json::array();
  for (const std::string& path : arguments.files) {
    Result<File> file = read_file(path);
    if (!file.ok()) {
      report.complaints.push_back(file.error().text());
      out["files"].push_back({{"file", path}, {"error", file.error().text()}});
      continue;
    }
    if (arguments.json)
      out["files"].push_back(file_json(file.value()));
    else
      report.text += file_text(file.value());
    files.push_back(std::move(file).value());
  }
  if (const auto merge = merged(files)) {
    const auto all = calibrate::measurements(*merge);
    out["merged_traces"] = {{"measurements", measurements_json(all)},
                            {"notes", notes_json(merge->notes)}};
    if (!arguments.json)
      report.text += fmt::format(
                         "all traces, the shortest of the ranks for each call: {} calls, "
                         "{} measurements can be used\n",
                         merge->calls.size(), all.size()) +
                     notes_text(merge->notes, {});
  }
  if (arguments.json) report.text = dump(out);
  return report;
}

int calibrate_read_command(const CalibrateReadArguments& arguments) {
  const CalibrateReadReport report = calibrate_read_report(arguments);
  std::fwrite(report.text.data(), 1, report.text.size(), stdout);
  for (const std::string& complaint : report.complaints) complain(complaint);
  return finish_output(report.complaints.empty() ? kDone : kBadInput);
}

}  // namespace railyard::cli
