// probe_cuda: what one host's GPUs do. See session.h for what is measured.
#include "calibrate/probes/common/args.h"
#include "calibrate/probes/common/error.h"
#include "calibrate/probes/cuda/session.h"

namespace railyard::probe {
namespace {

struct Part {
  const char* name;
  void (*measure)(Session&);
};

constexpr Part kParts[] = {
    {"launches", measure_launches},     {"flags", measure_flags},
    {"copies", measure_engine_copies},  {"sm-copies", measure_sm_copies},
    {"reductions", measure_reductions}, {"interference", measure_interference}};

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (const Part& part : kParts) names.emplace_back(part.name);
  return names;
}

void (*measure_of(const std::string& name))(Session&) {
  for (const Part& part : kParts)
    if (name == part.name) return part.measure;
  throw UsageError("there is no part '" + name + "'");
}

void run(int argc, char** argv) {
  std::string json;
  double budget = 240;
  Effort effort;
  std::vector<std::string> names = part_names();
  Args args("probe_cuda", "launches, copies, flags and interference of this host's GPUs");
  args.words("--parts", "what to measure", &names);
  args.seconds("--seconds", "time for each cell", &effort.seconds);
  args.seconds("--budget", "start no cell after this time", &budget);
  args.text("--json", "write the results to this file", &json);
  if (!args.parse(argc, argv)) return;
  std::vector<void (*)(Session&)> parts;
  for (const std::string& name : names) parts.push_back(measure_of(name));

  Report report = new_report("probe_cuda", argc, argv);
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::milliseconds(static_cast<std::int64_t>(budget * 1000));
  Session session{report, 0, {}, effort, deadline};
  find_devices(session);
  try {
    for (const auto& part : parts) part(session);
  } catch (const ProbeError& error) {
    report.notes.push_back(std::string("ended early: ") + error.what());
    publish(report, json);  // what was measured until then
    throw;
  }
  if (session.left_out > 0)
    report.notes.push_back(std::to_string(session.left_out) +
                           " cells left out: the time given with --budget was up");
  publish(report, json);
}

}  // namespace
}  // namespace railyard::probe

int main(int argc, char** argv) {
  return railyard::probe::run_probe("probe_cuda", [&] { railyard::probe::run(argc, argv); });
}
