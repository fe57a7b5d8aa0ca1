#include "tools/cli/trace_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "calibrate/readers/log_kind.h"
#include "calibrate/traces/gunzip.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/text_output.h"
#include "topologies/import/text_file.h"

namespace railyard::cli {
namespace {

constexpr std::size_t kMostBytes = std::size_t{8} << 30;

// Chakra's own files begin with a length and protobuf's bytes.
bool is_binary(std::string_view text) {
  return text.substr(0, 4096).find('\0') != std::string_view::npos ||
         (!text.empty() && static_cast<unsigned char>(text.front()) < '\t');
}

}  // namespace

sim::Result<AnyTrace> parse_trace(std::string text, const std::string& name) {
  if (calibrate::is_gzip(text)) {
    RAILYARD_ASSIGN(text, calibrate::gunzip(text, name, kMostBytes));
  }
  if (is_binary(text))
    return sim::bad_input(
        "a binary file: a profiler trace or execution trace in JSON is expected (Chakra's protobuf "
        ".et is not read: name the JSON it was converted from)",
        name);
  if (calibrate::is_execution_trace(text)) {
    RAILYARD_ASSIGN(calibrate::ExecutionTrace trace, calibrate::read_execution_trace(text, name));
    return AnyTrace(std::move(trace));
  }
  RAILYARD_ASSIGN(calibrate::GpuTrace trace, calibrate::read_gpu_trace(text, name));
  return AnyTrace(std::move(trace));
}

sim::Result<AnyTrace> load_trace(const std::string& path) {
  RAILYARD_ASSIGN(std::string text, topologies::read_text_file(path, kMostBytes));
  return parse_trace(std::move(text), path);
}

int trace_show_command(const TraceShowArguments& arguments) {
  std::vector<AnyTrace> traces;
  int status = kDone;
  std::string text;
  for (const std::string& path : arguments.files) {
    auto trace = load_trace(path);
    if (!trace.ok()) {
      status = fail(trace.error());
      continue;
    }
    if (arguments.json)
      traces.push_back(std::move(trace).value());
    else
      text += (text.empty() ? "" : "\n") + trace_text(trace.value());
  }
  if (arguments.json) text = trace_json(traces);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return finish_output(status);
}

int trace_import_command(const TraceImportArguments& arguments) {
  const auto trace = load_trace(arguments.file);
  if (!trace.ok()) return fail(trace.error());
  const auto scenario = scenario_of(trace.value(), arguments);
  if (!scenario.ok()) return fail(scenario.error());
  if (arguments.output.empty()) {
    const std::string& yaml = scenario.value().yaml;
    std::fwrite(yaml.data(), 1, yaml.size(), stdout);
    return finish_output(kDone);
  }
  if (const auto written = write_text(arguments.output, scenario.value().yaml); !written.ok())
    return fail(written.error());
  std::string text = fmt::format("{}: {}\n", arguments.output, scenario.value().summary);
  for (const std::string& note : scenario.value().notes) text += "  " + note + "\n";
  text += fmt::format("  railyard run {}\n", arguments.output);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return finish_output(kDone);
}

}  // namespace railyard::cli
