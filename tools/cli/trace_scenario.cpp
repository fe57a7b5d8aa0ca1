// From a trace to a scenario.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "calibrate/traces/ddp_network.h"
#include "scenarios/scenario.h"
#include "tools/cli/trace_command.h"
#include "tools/cli/trace_yaml.h"
#include "topologies/machine.h"

namespace railyard::cli {
namespace {

using calibrate::ExecutionTrace;
using calibrate::GpuTrace;
using calibrate::TraceStep;
using sim::Result;

// By the GPU's name; the first that is part of it. What connects the GPUs is not in a trace.
struct MachineGuess {
  std::string_view device, machine;
};
constexpr std::array kGuesses{
    MachineGuess{"GB300", "gb300-nvl72"}, MachineGuess{"GB200", "gb200-nvl72"},
    MachineGuess{"B300", "hgx-b300"},     MachineGuess{"B200", "hgx-b200"},
    MachineGuess{"GH200", "gh200"},       MachineGuess{"H200", "hgx-h200"},
    MachineGuess{"H100", "hgx-h100"},     MachineGuess{"H800", "hgx-h800"},
    MachineGuess{"H20", "hgx-h20"},       MachineGuess{"A800", "a800-hgx"},
    MachineGuess{"A100", "dgx-a100"},     MachineGuess{"V100", "dgx-1v"},
    MachineGuess{"P100", "dgx-1p"}};

struct Cluster {
  std::string machine;
  std::int64_t ranks = 0, nodes = 1, per_node = 1;
  std::vector<std::string> notes;
};

std::string_view guess_machine(const std::vector<std::string>& devices) {
  for (const MachineGuess& guess : kGuesses)
    for (const std::string& device : devices)
      if (device.find(guess.device) != device.npos) return guess.machine;
  return {};
}

Result<Cluster> cluster_of(const TraceImportArguments& arguments, std::int64_t ranks,
                           const std::vector<std::string>& devices) {
  Cluster out;
  out.ranks = arguments.ranks > 0 ? arguments.ranks : ranks;
  if (out.ranks < 1)
    return sim::bad_input("the trace does not say how many ranks there were: --ranks N",
                          arguments.file);
  constexpr std::int64_t kMostRanks = 1'000'000;
  if (out.ranks > kMostRanks)
    return sim::bad_input(fmt::format("{} ranks are more than {}", out.ranks, kMostRanks),
                          arguments.file);
  out.machine = arguments.machine.empty() ? guess_machine(devices) : arguments.machine;
  if (out.machine.empty())
    return sim::bad_input(
        "no machine of the catalogue is known for the GPUs of the trace: "
        "--machine NAME",
        arguments.file);
  if (arguments.machine.empty())
    out.notes.push_back(
        fmt::format("the machine is a guess by the GPU's name ({}); the trace does "
                    "not say what connects the GPUs",
                    out.machine));
  RAILYARD_ASSIGN(const topologies::MachineSpec machine, topologies::find_machine(out.machine));
  out.per_node = static_cast<std::int64_t>(machine.gpus.size());
  out.nodes = (out.ranks + out.per_node - 1) / out.per_node;
  if (out.ranks > 1)
    out.notes.emplace_back(
        "ranks fill one node after the other; the trace does not say where they "
        "ran");
  return out;
}

std::string scenario_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  name = name.substr(0, name.find('.'));
  for (char& c : name)
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'))
      c = '-';
  return (name.empty() ? "trace" : name.substr(0, 60));
}

struct Head {
  std::string file, step, what;
  const Cluster* cluster = nullptr;
  const std::vector<std::string>* notes = nullptr;
  std::string groups;  // of ranks:
};

std::string head_yaml(const Head& head) {
  std::string text = yaml_comment(fmt::format("{}, {}: {}, by `railyard trace import`.",
                                              std::filesystem::path(head.file).filename().string(),
                                              head.step, head.what));
  if (!head.notes->empty()) text += "# What the trace does not say:\n";
  for (const std::string& note : *head.notes) text += yaml_comment("  - " + note);
  text += "railyard: 1\n";
  text += fmt::format("name: {}\n", yaml_quoted(scenario_name(head.file)));
  text += fmt::format("cluster: {{machine: {}, nodes: {}}}\n", head.cluster->machine,
                      head.cluster->nodes);
  const bool full = head.cluster->ranks == head.cluster->nodes * head.cluster->per_node;
  if (!full || !head.groups.empty()) text += "ranks:\n";
  if (!full) text += fmt::format("  count: {}\n", head.cluster->ranks);
  if (!head.groups.empty()) text += "  groups:\n" + head.groups;
  return text + "nccl: auto\n\n";
}

// A text that cannot be read back would be a fault of ours, or of values no run can take.
Result<ImportedScenario> checked(ImportedScenario out) {
  RAILYARD_TRY(scenarios::scenario_from_text(out.yaml, "imported scenario"));
  return out;
}

Result<TraceStep> chosen_step(const GpuTrace& trace, const std::string& name) {
  const calibrate::TraceSteps found = calibrate::find_steps(trace);
  if (name.empty()) return found.typical(trace);
  std::string known;
  for (const TraceStep& step : found.steps) {
    if (step.name == name) return step;
    if (known.size() < 200) known += (known.empty() ? "" : ", ") + step.name;
  }
  return sim::bad_input(fmt::format("there is no step '{}' (one of: {})", name, known),
                        trace.facts.source);
}

void note_waits(std::int64_t ns, std::vector<std::string>& notes) {
  constexpr std::int64_t kWorthSaying = 100'000;
  if (ns >= kWorthSaying)
    notes.push_back(fmt::format("{} in which the host waited for the GPU are left out of its time",
                                yaml_time(ns)));
}

Result<ImportedScenario> import_ddp(const GpuTrace& trace, const TraceStep& step,
                                    const TraceImportArguments& arguments) {
  RAILYARD_ASSIGN(const calibrate::TracedDdp traced, calibrate::ddp_step(trace, step));
  RAILYARD_ASSIGN(Cluster cluster,
                  cluster_of(arguments, trace.facts.world_size, trace.facts.devices));
  const std::string name = scenario_name(arguments.file) + " " + step.name;
  auto spec = calibrate::network_of(traced, name);
  if (!spec.ok()) return sim::bad_input(spec.error().message, arguments.file);
  RAILYARD_ASSIGN(const models::NeuralNetwork network, models::validate(spec.value()));
  auto buckets = calibrate::explain_buckets(traced, network);
  ImportedScenario out;
  out.notes = cluster.notes;
  out.notes.insert(out.notes.end(), traced.notes.begin(), traced.notes.end());
  note_waits(traced.waited_ns, out.notes);
  if (!buckets) {
    buckets.emplace();
    std::string sizes;
    for (const std::int64_t bytes : traced.buckets)
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(bytes);
    out.notes.push_back("no usual bucket_cap_mb gives the buckets of the trace (" + sizes +
                        " bytes): the default is set");
  }
  out.notes.emplace_back(
      "kernels ran as they did beside the trace's collectives; their slowdown "
      "there is part of their times");
  if (traced.optimizer_name != "Adam" && traced.optimizer_name != "AdamW")
    out.notes.emplace_back("whether the optimizer keeps a state: memory is counted without one");
  out.summary = fmt::format("a DDP step of {} layers, {} gradients, {} buckets on {} ranks",
                            traced.layers.size(), traced.gradient_elements.size(),
                            traced.buckets.size(), cluster.ranks);
  out.yaml = head_yaml({arguments.file, step.name, out.summary, &cluster, &out.notes, {}}) +
             ddp_yaml({&traced, &spec.value(), &*buckets});
  return checked(std::move(out));
}

struct ReplaySource {
  std::string step;
  std::int64_t ranks = -1;
  const std::vector<std::string>* devices = nullptr;
};

Result<ImportedScenario> import_replay(calibrate::TracedReplay replay, const ReplaySource& source,
                                       const TraceImportArguments& arguments) {
  std::int64_t ranks = source.ranks;
  for (const calibrate::ReplayGroup& group : replay.groups) ranks = std::max(ranks, group.size);
  RAILYARD_ASSIGN(Cluster cluster, cluster_of(arguments, ranks, *source.devices));
  GroupNames groups = name_groups(replay.groups, cluster.ranks);
  for (std::size_t g = 0; g < replay.groups.size(); ++g) replay.groups[g].name = groups.names[g];
  ImportedScenario out;
  out.notes = cluster.notes;
  for (const auto* notes : {&replay.notes, &groups.notes})
    out.notes.insert(out.notes.end(), notes->begin(), notes->end());
  if (cluster.ranks > 1)
    out.notes.emplace_back(
        "every rank runs what this one ran: what differed between ranks is not "
        "in the trace of one");
  const auto items = replay.forward.size() + replay.backward.size() + replay.after_backward.size();
  out.summary = fmt::format("a step of {} items to be replayed on {} ranks", items, cluster.ranks);
  out.yaml =
      head_yaml({arguments.file, source.step, out.summary, &cluster, &out.notes, groups.yaml}) +
      replay_yaml(replay, scenario_name(arguments.file) + " " + source.step);
  return checked(std::move(out));
}

Result<ImportedScenario> import_trace(const GpuTrace& trace,
                                      const TraceImportArguments& arguments) {
  if (const std::string why = trace.sampled(); !why.empty())
    return sim::bad_input(
        "the trace is not complete, and what is left out cannot be replayed: " + why,
        arguments.file);
  RAILYARD_ASSIGN(const TraceStep step, chosen_step(trace, arguments.step));
  if (step.first == step.last)
    return sim::bad_input(step.name + " launched nothing", arguments.file);
  const bool ddp = arguments.form == TraceForm::ddp ||
                   (arguments.form == TraceForm::automatic && calibrate::is_ddp(trace, step));
  if (ddp) {
    auto imported = import_ddp(trace, step, arguments);
    // A wrapped model whose step is not plain DDP can still be replayed.
    if (imported.ok() || arguments.form == TraceForm::ddp) return imported;
    calibrate::TracedReplay replay = calibrate::replay_step(trace, step);
    replay.notes.push_back("not as DDP: " + imported.error().message);
    return import_replay(std::move(replay),
                         {step.name, trace.facts.world_size, &trace.facts.devices}, arguments);
  }
  return import_replay(calibrate::replay_step(trace, step),
                       {step.name, trace.facts.world_size, &trace.facts.devices}, arguments);
}

Result<ImportedScenario> import_trace(const ExecutionTrace& trace,
                                      const TraceImportArguments& arguments) {
  if (arguments.form == TraceForm::ddp)
    return sim::bad_input("an execution trace has no times: it can be imported as a replay only",
                          arguments.file);
  const auto named =
      std::find_if(trace.steps.begin(), trace.steps.end(),
                   [&](const ExecutionTrace::Step& step) { return step.name == arguments.step; });
  if (!arguments.step.empty() && named == trace.steps.end())
    return sim::bad_input("there is no step '" + arguments.step + "'", arguments.file);
  const ExecutionTrace::Step& step = named == trace.steps.end() ? trace.steps.back() : *named;
  calibrate::TracedReplay replay = calibrate::replay_step(trace, step);
  if (replay.forward.empty())
    return sim::bad_input(step.name + " has no collective of known size", arguments.file);
  const std::vector<std::string> devices;
  return import_replay(std::move(replay), {step.name, trace.ranks, &devices}, arguments);
}

}  // namespace

Result<ImportedScenario> scenario_of(const AnyTrace& trace, const TraceImportArguments& arguments) {
  return std::visit([&](const auto& each) { return import_trace(each, arguments); }, trace);
}

}  // namespace railyard::cli
