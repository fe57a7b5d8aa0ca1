// A step of a sharded, pipelined or otherwise distributed training job on the terminal.
#include <fmt/format.h>

#include "scenarios/training_result.h"
#include "tools/cli/format.h"
#include "tools/cli/step_table.h"
#include "tools/cli/summary.h"
#include "tools/cli/table.h"

namespace railyard::cli {
namespace {

using scenarios::CallRow;
using scenarios::TrainingResult;

std::string rates(const TrainingResult& result) {
  std::string text;
  if (result.sequence_length > 0)
    text +=
        fmt::format("{} tokens/s; ", digits(result.samples_per_second * result.sequence_length));
  text += fmt::format("{:.1f} TFLOP/s per GPU, MFU {}", result.flops_per_gpu * 1e-12,
                      percent(result.mfu));
  return text;
}

std::string iterations(const TrainingResult& result, const SummaryStyle& style) {
  Table table({{""}, {""}, {"", Align::left}});
  for (std::size_t i = 0; i < result.iterations.size(); ++i)
    table.add({std::to_string(i + 1), human(result.iterations[i]),
               i + 1 == result.iterations.size() ? "taken as steady" : ""});
  return heading("Iterations", style) + table.text();
}

std::string calls(const TrainingResult& result, const SummaryStyle& style) {
  if (result.calls.empty()) return "";
  const TimeUnit unit = unit_for(result.step_time);
  Table table({{"collective", Align::left},
               {"group", Align::left},
               {"size"},
               {"n"},
               {"algorithm", Align::left},
               {"sent"},
               {"time"},
               {"waited"},
               {"exposed"},
               {"busbw"}});
  for (const CallRow& row : result.calls)
    table.add({row.message ? "message" : std::string(sim::to_text(row.collective)),
               fmt::format("{} ({})", row.group, row.ranks), human(row.size),
               std::to_string(row.count),
               fmt::format("{} {}", sim::to_text(row.algorithm), sim::to_text(row.protocol)),
               human(row.sent), unit(row.time), unit(row.waited), unit(row.exposed),
               fmt::format("{:.1f}", row.busbw)});
  return heading("Collectives of the steady iteration", style) + table.text() +
         wrap(fmt::format("  n calls; sent: by one rank; times in {}, of which waited for the last "
                          "rank, and "
                          "exposed with no kernel beside; busbw in GB/s",
                          unit.name),
              kWidth, "  ") +
         "\n";
}

std::string stages(const TrainingResult& result, const SummaryStyle& style) {
  if (result.stages.empty()) return "";
  const TimeUnit unit = unit_for(result.step_time);
  Table table({{"stage"}, {"rank"}, {"kernels"}, {"waits for stages"}, {"other comm"}, {"idle"}});
  for (std::size_t i = 0; i < result.stages.size(); ++i) {
    const scenarios::StageRow& row = result.stages[i];
    table.add({std::to_string(i), std::to_string(row.rank), unit(row.compute), unit(row.waited),
               unit(row.exposed), unit(row.idle)});
  }
  return heading("Pipeline stages in the steady iteration", style) + table.text() +
         wrap(fmt::format(
                  "  their first ranks; times in {}: kernels run; none does, and messages of "
                  "the stages beside it are awaited (bubble and transfer); other "
                  "collectives are exposed; nothing happens, as behind a stage's last message",
                  unit.name),
              kWidth, "  ") +
         "\n";
}

std::string memory(const TrainingResult& result, const SummaryStyle& style) {
  if (result.memory.empty()) return "";
  Table table({{"", Align::left}, {"GB"}});
  double sum = 0;
  for (const scenarios::MemoryRow& row : result.memory) {
    table.add({row.what, fmt::format("{:.2f}", row.bytes * 1e-9)});
    sum += row.bytes;
  }
  table.add({fmt::format("of {:.1f} GB, activations not counted", result.memory_capacity * 1e-9),
             fmt::format("{:.2f}", sum * 1e-9)});
  return heading("Memory of a GPU", style) + table.text();
}

}  // namespace

std::string summary_training(const TrainingResult& result, const SummaryStyle& style) {
  const std::string size = result.model_parameters > 0
                               ? fmt::format(", {} parameters", count(result.model_parameters))
                               : std::string();
  std::string text = fmt::format("{}: {}{}\n\n", result.scheme, result.model, size);
  text += step_table(result, "", "reductions still under way, optimizer");
  if (result.flops_per_gpu > 0) text += "  " + rates(result) + "\n";
  text += iterations(result, style);
  text += stages(result, style);
  text += calls(result, style);
  text += memory(result, style);
  return text;
}

}  // namespace railyard::cli
