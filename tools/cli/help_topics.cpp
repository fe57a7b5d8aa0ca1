#include "tools/cli/help_topics.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "models/nn/catalogue.h"
#include "scenarios/document.h"
#include "scenarios/profile.h"
#include "sim/field_table.h"
#include "sim/parameters.h"
#include "tools/cli/table.h"
#include "topologies/machine.h"

namespace railyard::cli {
namespace {

namespace fs = std::filesystem;

std::string machines() {
  Table table(
      {{"machine", Align::left}, {"GPUs"}, {"NICs"}, {"profile", Align::left}, {"", Align::left}});
  for (const std::string_view name : topologies::machine_names()) {
    const auto machine = topologies::find_machine(name);
    if (!machine.ok()) continue;
    const topologies::MachineSpec& spec = machine.value();
    table.add({std::string(name), spec.flat ? "any" : std::to_string(spec.gpus.size()),
               std::to_string(spec.nics.size()), spec.profile, spec.title});
  }
  Table aliases({{"other name", Align::left}, {"of", Align::left}});
  for (const topologies::MachineAlias& alias : topologies::machine_aliases())
    aliases.add({std::string(alias.name), std::string(alias.machine)});
  return "Machines for `cluster: {machine: ...}` (GPUs and NICs per node):\n\n" + table.text() +
         "\n" + aliases.text() + "\n`railyard topo show MACHINE` shows what is inside.\n";
}

std::string models() {
  Table table({{"model", Align::left}, {"", Align::left}});
  for (const models::ModelDescription& model : models::model_descriptions())
    table.add({std::string(model.name), std::string(model.summary)});
  return "Models for `ddp: {model: ...}`:\n\n" + table.text();
}

template <typename Member>
std::string_view unit_of() {
  if constexpr (std::is_same_v<Member, sim::Duration>) return "time (1.5us)";
  if constexpr (std::is_same_v<Member, sim::Bandwidth>) return "rate (25GB/s)";
  if constexpr (std::is_same_v<Member, sim::Bytes>) return "size (80GB)";
  if constexpr (std::is_same_v<Member, sim::FlopsRate>) return "rate (312TFLOP/s)";
  return "number";
}

template <typename Struct, typename Member>
std::string_view unit_of(const sim::Field<Struct, Member>& /*field*/) {
  return unit_of<Member>();
}

template <typename Struct>
std::string group(std::string_view path) {
  Table table({{"", Align::left}, {"", Align::left}, {"", Align::left}});
  sim::for_each_field<Struct>([&](const auto& field) {
    table.add({std::string(field.name), std::string(unit_of(field)), std::string(field.doc)});
  });
  return fmt::format("\n{}\n{}", path, table.text());
}

std::string parameters() {
  std::string text =
      "Parameters: what links, protocols, GPUs and hosts cost. A machine's profile holds all of\n"
      "them; `parameters:` in a scenario, or --set parameters.gpu.sms=100, overrides single "
      "ones.\n";
  text += group<sim::GpuParameters>("parameters.gpu");
  text += group<sim::HostParameters>("parameters.host");
  text += group<sim::NetworkParameters>("parameters.network");
  text += group<sim::LinkParameters>(
      fmt::format("parameters.links.CLASS    ({})", sim::enum_names<sim::LinkClass>()));
  text += group<sim::ProtocolParameters>(
      fmt::format("parameters.protocols.PROTOCOL    ({})", sim::enum_names<sim::Protocol>()));
  text += "\nShipped profiles:";
  for (const std::string& name : scenarios::shipped_profiles()) text += " " + name;
  return text + "\n";
}

std::string scenario_text(const fs::path& path, std::string_view key) {
  const auto document = scenarios::load_document(path.string(), {});
  if (!document.ok()) return "";
  const scenarios::Node* node = document.value().root.find(key);
  return node == nullptr ? "" : node->scalar;
}

std::string shipped_scenarios() {
  std::vector<fs::path> paths;
  std::error_code failed;
  const std::string directory = scenarios::data_directory() + "/scenarios";
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed))
    if (at->path().extension() == ".yaml") paths.push_back(at->path());
  std::sort(paths.begin(), paths.end());
  Table table({{"scenario", Align::left}, {"", Align::left}});
  for (const fs::path& path : paths)
    table.add({path.stem().string(), scenario_text(path, "description")});
  return fmt::format(
      "Scenarios shipped in {}:\n\n{}\nTheir names work without a path: railyard run {}\n",
      directory, table.text(), paths.empty() ? "NAME" : paths.front().stem().string());
}

std::string statuses() {
  return "Exit status:\n\n"
         "    0  done\n"
         "    1  bad input: a file or value that cannot be used, a limit that was met\n"
         "    2  usage: the command line itself\n"
         "    3  the simulated job would hang; who waits for whom is printed\n"
         "   70  a fault of railyard; please report it\n"
         "  130  interrupted by Ctrl-C or SIGTERM; a second one ends the program at once\n";
}

}  // namespace

const std::vector<HelpTopic>& help_topics() {
  static const std::vector<HelpTopic> topics{
      {"scenarios", "the scenarios that come with railyard", shipped_scenarios},
      {"machines", "the machine catalogue", machines},
      {"models", "the networks that DDP scenarios can train", models},
      {"parameters", "every parameter of a profile, with its unit", parameters},
      {"status", "what the exit status says", statuses}};
  return topics;
}

sim::Result<std::string> help_topic(std::string_view name) {
  std::vector<std::string_view> names;
  for (const HelpTopic& topic : help_topics()) {
    if (topic.name == name) return topic.text();
    names.push_back(topic.name);
  }
  std::string list;
  for (const std::string_view each : names)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", each);
  return sim::bad_input(fmt::format("no help on '{}'{} (topics: {}; commands: run, explore, topo)",
                                    name, sim::did_you_mean(name, names), list));
}

std::string help_topics_footer() {
  std::string text = "Topics:\n";
  for (const HelpTopic& topic : help_topics())
    text += fmt::format("  railyard help {:<12} {}\n", topic.name, topic.summary);
  return text;
}

}  // namespace railyard::cli
