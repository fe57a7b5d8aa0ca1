// What a trace says, for people and for scripts.
#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/format.h"
#include "tools/cli/json_parts.h"
#include "tools/cli/table.h"
#include "tools/cli/trace_command.h"
#include "topologies/import/text_file.h"

namespace railyard::cli {
namespace {

using calibrate::CollectiveRow;
using calibrate::ExecutionTrace;
using calibrate::GpuTrace;
using calibrate::TraceStep;
using topologies::printable;

std::string ms(std::int64_t ns) { return fmt::format("{:.3f}", static_cast<double>(ns) / 1e6); }
double us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }
std::string known(std::int64_t n) { return n < 0 ? "?" : count(n); }

std::string_view words(calibrate::StepSource source) {
  switch (source) {
    case calibrate::StepSource::profiler: return "by ProfilerStep";
    case calibrate::StepSource::pattern: return "by the pattern that repeats";
    case calibrate::StepSource::whole: return "nothing tells iterations apart";
  }
  return "";
}

std::string who(const GpuTrace& trace) {
  std::string text = "a trace of the PyTorch profiler";
  if (trace.facts.rank >= 0) text += fmt::format(", rank {}", trace.facts.rank);
  if (trace.facts.world_size > 0) text += fmt::format(" of {}", trace.facts.world_size);
  if (!trace.facts.devices.empty()) text += ", " + printable(trace.facts.devices.front());
  if (!trace.facts.nccl.empty()) text += ", NCCL " + printable(trace.facts.nccl);
  return text;
}

std::vector<std::string> notes_of(const GpuTrace& trace) {
  std::vector<std::string> notes;
  for (const calibrate::Note& note : trace.facts.notes) notes.push_back(note.text);
  if (const std::string why = trace.sampled(); !why.empty())
    notes.push_back("not complete, so it cannot be imported: " + why);
  return notes;
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += "  " + wrap(note, 96, "    ") + "\n";
  return text.empty() ? text : "\nNotes\n" + text;
}

std::string steps_text(const calibrate::TraceSteps& found) {
  Table table({{"step", Align::left},
               {"duration ms"},
               {"compute"},
               {"communication"},
               {"overlap"},
               {"exposed"},
               {"idle"}});
  for (const TraceStep& step : found.steps)
    table.add({printable(step.name), ms(step.duration_ns()), ms(step.compute_ns),
               ms(step.communication_ns), ms(step.overlap_ns), ms(step.exposed_ns),
               ms(step.idle_ns)});
  return fmt::format("\nSteps ({})\n", words(found.source)) + table.text();
}

std::string collectives_text(const std::vector<CollectiveRow>& rows) {
  if (rows.empty()) return "";
  Table table({{"collective", Align::left},
               {"group", Align::left},
               {"ranks"},
               {"bytes"},
               {"type", Align::left},
               {"calls"},
               {"total ms"},
               {"shortest"},
               {"median"},
               {"busbw GB/s"}});
  for (const CollectiveRow& row : rows)
    table.add({printable(row.name), printable(row.group), known(row.ranks), known(row.bytes),
               printable(row.dtype), std::to_string(row.count), ms(row.total_ns),
               ms(row.shortest_ns), ms(row.median_ns),
               row.busbw > 0 ? fmt::format("{:.2f}", row.busbw) : "?"});
  return "\nCollectives (times include waiting for the last rank; busbw from the shortest)\n" +
         table.text();
}

std::string text_of(const GpuTrace& trace) {
  std::string text = fmt::format("{}: {}\n", trace.facts.source, who(trace));
  text += fmt::format("{} activities of the GPU, {} of them collectives\n", trace.activities.size(),
                      trace.facts.collectives.size());
  text += steps_text(calibrate::find_steps(trace));
  text += collectives_text(calibrate::collective_rows(trace));
  return text + notes_text(notes_of(trace));
}

std::string text_of(const ExecutionTrace& trace) {
  std::string text =
      fmt::format("{}: an execution trace of schema {}, {} nodes, {} collectives, no times\n",
                  trace.source, trace.schema, trace.nodes, trace.collectives.size());
  Table table({{"step", Align::left},
               {"collective", Align::left},
               {"group", Align::left},
               {"ranks"},
               {"bytes"},
               {"type", Align::left}});
  for (const ExecutionTrace::Step& step : trace.steps)
    for (std::size_t i = step.first; i < step.last; ++i) {
      const calibrate::KinetoCollective& call = trace.collectives[i];
      table.add({i == step.first ? printable(step.name) : "", printable(call.name),
                 printable(call.group), known(call.group_size), known(call.bytes.value_or(-1)),
                 printable(call.dtype)});
    }
  if (!table.empty()) text += "\nCollectives in program order\n" + table.text();
  return text + notes_text(trace.notes);
}

Json collective_json(const CollectiveRow& row) {
  return {{"name", row.name},
          {"group", row.group},
          {"ranks", row.ranks < 0 ? Json() : Json(row.ranks)},
          {"bytes", row.bytes < 0 ? Json() : Json(row.bytes)},
          {"dtype", row.dtype},
          {"calls", row.count},
          {"total_us", us(row.total_ns)},
          {"shortest_us", us(row.shortest_ns)},
          {"median_us", us(row.median_ns)},
          {"busbw_gb_per_s", row.busbw > 0 ? Json(row.busbw) : Json()}};
}

Json json_of(const GpuTrace& trace) {
  Json out;
  out["file"] = trace.facts.source;
  out["kind"] = "kineto";
  out["rank"] = trace.facts.rank < 0 ? Json() : Json(trace.facts.rank);
  out["world_size"] = trace.facts.world_size < 0 ? Json() : Json(trace.facts.world_size);
  out["devices"] = trace.facts.devices;
  out["nccl"] = trace.facts.nccl;
  out["complete"] = trace.sampled().empty();
  const calibrate::TraceSteps found = calibrate::find_steps(trace);
  out["steps_by"] = words(found.source);
  Json steps = Json::array();
  for (const TraceStep& step : found.steps)
    steps.push_back({{"name", step.name},
                     {"duration_us", us(step.duration_ns())},
                     {"compute_us", us(step.compute_ns)},
                     {"communication_us", us(step.communication_ns)},
                     {"overlap_us", us(step.overlap_ns)},
                     {"exposed_us", us(step.exposed_ns)},
                     {"idle_us", us(step.idle_ns)}});
  out["steps"] = std::move(steps);
  Json rows = Json::array();
  for (const CollectiveRow& row : calibrate::collective_rows(trace))
    rows.push_back(collective_json(row));
  out["collectives"] = std::move(rows);
  out["notes"] = notes_of(trace);
  return out;
}

Json json_of(const ExecutionTrace& trace) {
  Json out;
  out["file"] = trace.source;
  out["kind"] = "execution-trace";
  out["schema"] = trace.schema;
  out["nodes"] = trace.nodes;
  Json steps = Json::array();
  for (const ExecutionTrace::Step& step : trace.steps) {
    Json calls = Json::array();
    for (std::size_t i = step.first; i < step.last; ++i) {
      const calibrate::KinetoCollective& call = trace.collectives[i];
      calls.push_back({{"name", call.name},
                       {"group", call.group},
                       {"ranks", call.group_size},
                       {"bytes", call.bytes ? Json(*call.bytes) : Json()},
                       {"dtype", call.dtype}});
    }
    steps.push_back({{"name", step.name}, {"collectives", std::move(calls)}});
  }
  out["steps"] = std::move(steps);
  out["notes"] = trace.notes;
  return out;
}

}  // namespace

std::string trace_text(const AnyTrace& trace) {
  return std::visit([](const auto& each) { return text_of(each); }, trace);
}

std::string trace_json(const std::vector<AnyTrace>& traces) {
  Json list = Json::array();
  for (const AnyTrace& trace : traces)
    list.push_back(std::visit([](const auto& each) { return json_of(each); }, trace));
  return dump(list);
}

}  // namespace railyard::cli
