// `railyard trace show FILE... [--json]` and `railyard trace import FILE [-o SCENARIO.yaml]`:
// profiler traces (Kineto, plain or gzip) and execution traces (PyTorch's JSON).
//
// show: the steps with what the GPU did in each, the collectives, and what the trace cannot say.
// import: the typical step as a scenario that `railyard run` and `explore` take: a `ddp:` block
// with measured layers where the trace is of DistributedDataParallel, else a `replay:`. What had to
// be assumed stands at the head of the file and on the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "calibrate/traces/execution_trace.h"
#include "calibrate/traces/gpu_trace.h"
#include "calibrate/traces/steps.h"
#include "sim/enum_table.h"
#include "sim/result.h"

namespace railyard::cli {

struct TraceShowArguments {
  std::vector<std::string> files;
  bool json = false;
};

enum class TraceForm { automatic, ddp, replay };

struct TraceImportArguments {
  std::string file;
  std::string output;       // empty: standard output
  std::string machine;      // a catalogue machine; empty: guessed by the GPU's name
  std::string step;         // "ProfilerStep#4"; empty: the typical one
  std::uint32_t ranks = 0;  // 0: what the trace says
  TraceForm form = TraceForm::automatic;
};

using AnyTrace = std::variant<calibrate::GpuTrace, calibrate::ExecutionTrace>;

// Reads, unpacks and recognises. Error: neither kind of trace.
sim::Result<AnyTrace> load_trace(const std::string& path);
sim::Result<AnyTrace> parse_trace(std::string text, const std::string& name);

// Both for one trace; the JSON is one object.
std::string trace_text(const AnyTrace& trace);
std::string trace_json(const std::vector<AnyTrace>& traces);

struct ImportedScenario {
  std::string yaml;
  std::string summary;             // one line
  std::vector<std::string> notes;  // what could not be known
};
sim::Result<ImportedScenario> scenario_of(const AnyTrace& trace,
                                          const TraceImportArguments& arguments);

int trace_show_command(const TraceShowArguments& arguments);
int trace_import_command(const TraceImportArguments& arguments);

}  // namespace railyard::cli

namespace railyard::sim {
template <>
struct EnumTable<cli::TraceForm> {
  static constexpr std::string_view kind = "form of scenario";
  static constexpr std::array entries{EnumEntry{cli::TraceForm::automatic, "auto"},
                                      EnumEntry{cli::TraceForm::ddp, "ddp"},
                                      EnumEntry{cli::TraceForm::replay, "replay"}};
};
}  // namespace railyard::sim
