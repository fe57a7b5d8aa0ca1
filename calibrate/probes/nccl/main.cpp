// probe_nccl: NCCL's collectives under its own and under forced choices. See measure.h for the
// rows; every one carries the label setting, "default" or NCCL_ALGO/NCCL_PROTO.
//
// The process that is started sets nothing up: it runs itself once per setting, since NCCL reads
// its environment once. Between hosts every rank starts its children in the same order, and those
// meet at the port of --port plus the number of the setting.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "calibrate/probes/common/args.h"
#include "calibrate/probes/common/child.h"
#include "calibrate/probes/nccl/measure.h"

namespace railyard::probe::nccl {
namespace {

constexpr double kMeetingTimeout = 60;
constexpr int kFirstMultiRank = 23000;  // NCCL that lets ranks share a GPU

// A forced choice, and the operations for which that algorithm exists.
struct Setting {
  const char* name;  // "Ring/LL128"; no slash: NCCL's own choice
  std::vector<std::string> operations;
};

const std::vector<Setting>& settings() {
  static const std::vector<std::string> none;  // all that were asked for
  static const std::vector<std::string> reduce = {"AllReduce"};
  static const std::vector<std::string> switched = {"AllReduce", "AllGather", "ReduceScatter"};
  static const std::vector<std::string> ring = {"AllReduce", "AllGather", "ReduceScatter",
                                                "Broadcast"};
  static const std::vector<Setting> all = {
      {"default", none},           {"Ring/LL", ring},
      {"Ring/LL128", ring},        {"Ring/Simple", ring},
      {"Tree/LL", reduce},         {"Tree/LL128", reduce},
      {"Tree/Simple", reduce},     {"NVLS/Simple", switched},
      {"NVLSTree/Simple", reduce}, {"PAT/Simple", {"AllGather", "ReduceScatter"}}};
  return all;
}

const Setting& setting_of(const std::string& name) {
  for (const Setting& setting : settings())
    if (name == setting.name) return setting;
  throw UsageError("there is no setting '" + name + "'");
}

struct Options {
  Identity who;
  Plan plan;
  std::vector<std::string> settings;
  std::string library, json, child;
  std::int64_t gpus = 0, ranks_per_gpu = 1;
  double budget = 200, setting_timeout = 120;
  bool show_version = false;

  void add_to(Args& args);
};

void Options::add_to(Args& args) {
  for (const Setting& setting : nccl::settings()) settings.emplace_back(setting.name);
  for (const Operation& operation : operations()) plan.operations.emplace_back(operation.name);
  args.text("--nccl", "the library, where libnccl.so.2 is not found", &library);
  args.flag("--nccl-version", "only say which NCCL that is", &show_version);
  args.number("--gpus", "ranks of a single process; 0: one per GPU", &gpus);
  args.number("--ranks-per-gpu", "2 or more on one host: NCCL 2.30 or later", &ranks_per_gpu);
  args.sizes("--sizes", "bytes as nccl-tests counts them", &plan.sizes);
  args.words("--operations", "what to time", &plan.operations);
  args.words("--settings", "NCCL_ALGO/NCCL_PROTO to force", &settings);
  args.seconds("--seconds", "time for each cell", &plan.seconds);
  args.seconds("--setting-timeout", "end a setting that hangs after this time", &setting_timeout);
  args.seconds("--budget", "start no setting after this time", &budget);
  args.text("--json", "write the results to this file", &json);
  args.text("--child-of-setting", "used by the program itself", &child);
  who.add_arguments(args);
}

int device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess)
    throw ProbeError(std::string("no CUDA device: ") + cudaGetErrorString(status));
  if (count == 0) throw ProbeError("no CUDA device");
  return count;
}

void describe(int device, Report& report) {
  cudaDeviceProp properties{};
  PROBE_CUDA(cudaGetDeviceProperties(&properties, device));
  char bus_id[32] = {};
  PROBE_CUDA(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device));
  report.devices.push_back(
      {"gpu", properties.name, {{"index", std::to_string(device)}, {"bus_id", bus_id}}});
}

std::vector<int> devices_of(const Options& options, int count) {
  if (options.gpus > count)
    throw ProbeError("--gpus " + std::to_string(options.gpus) + ": this host has " +
                     std::to_string(count));
  std::vector<int> devices;
  const int used = options.gpus > 0 ? static_cast<int>(options.gpus) : count;
  for (int device = 0; device < used; ++device)
    devices.insert(devices.end(), static_cast<std::size_t>(options.ranks_per_gpu), device);
  return devices;
}

void hand_over(Report& report) {
  send_to_parent(report);
  report.software.clear();
  report.devices.clear();
  report.rows.clear();
  report.notes.clear();
}

// What went wrong is the last thing the parent hears. The process ends here and now: taking down
// communicators that others wait in could hang.
[[noreturn]] void give_up(const std::exception& error, Report& report) {
  report.notes.emplace_back(error.what());
  send_to_parent(report);
  std::_Exit(1);
}

void measure(Ranks& ranks, const Plan& plan, Report& report) {
  try {
    measure_creation(ranks, report);
    measure_operations(ranks, plan, report, hand_over);
  } catch (const std::exception& error) {
    give_up(error, report);
  }
  ranks.destroy();
}

std::size_t buffer_bytes(const Plan& plan) {
  return static_cast<std::size_t>(
      std::max(*std::max_element(plan.sizes.begin(), plan.sizes.end()), std::int64_t{4}));
}

void measure_alone(const Options& options, const Api& api, int count, Report& report) {
  const std::vector<int> devices = devices_of(options, count);
  for (int device = 0; device < count; ++device) describe(device, report);
  if (options.ranks_per_gpu > 1 && api.version < kFirstMultiRank)
    throw ProbeError("NCCL " + version_text(api.version) +
                     " takes one rank per GPU; several need 2.30 or later");
  Ranks ranks(api, devices, buffer_bytes(options.plan));
  measure(ranks, options.plan, report);
}

void measure_between(const Options& options, const Api& api, int count, Report& report) {
  const int device = static_cast<int>(options.who.local_rank % count);
  describe(device, report);
  std::unique_ptr<StoreServer> server;
  if (options.who.rank == 0)
    server = std::make_unique<StoreServer>(Endpoint{"", options.who.meeting.port});
  Store store(options.who, kMeetingTimeout);
  Ranks ranks(api, store, device, buffer_bytes(options.plan));
  measure(ranks, options.plan, report);
}

// A child's whole work: what it finds, and why it could find no more, goes to the parent.
void run_setting(const Options& options, Report& report) {
  if (std::getenv(kRowsVariable) == nullptr)
    throw UsageError("--child-of-setting is for the program itself");
  report.devices.clear();  // the parent has described the host already
  try {
    const int count = device_count();
    const Api api = load(options.library);
    report.software["nccl"] = version_text(api.version);
    report.software["nccl_library"] = api.path;
    if (options.who.world > 1)
      measure_between(options, api, count, report);
    else
      measure_alone(options, api, count, report);
  } catch (const std::exception& error) {
    give_up(error, report);
  }
  hand_over(report);
}

std::map<std::string, std::string> environment_of(const Options& options,
                                                  const std::string& setting) {
  std::map<std::string, std::string> environment;
  const std::size_t slash = setting.find('/');
  if (slash != std::string::npos)
    environment = {{"NCCL_ALGO", setting.substr(0, slash)},
                   {"NCCL_PROTO", setting.substr(slash + 1)}};
  if (options.ranks_per_gpu > 1) {
    // The ranks of a GPU wait for one another, so that all their blocks must fit on it at once.
    environment["NCCL_MULTI_RANK_GPU_ENABLE"] = "1";
    environment["NCCL_NVLS_ENABLE"] = "0";
    if (std::getenv("NCCL_MAX_CTAS") == nullptr) environment["NCCL_MAX_CTAS"] = "16";
  }
  return environment;
}

std::vector<std::string> arguments_of(const Options& options, const Setting& setting,
                                      std::size_t number, int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto add = [&](const char* name, const std::string& value) {
    arguments.emplace_back(name);
    arguments.push_back(value);
  };
  std::string names;
  for (const std::string& name : options.plan.operations) {
    const bool exists = setting.operations.empty() ||
                        std::find(setting.operations.begin(), setting.operations.end(), name) !=
                            setting.operations.end();
    if (exists) names += (names.empty() ? "" : ",") + name;
  }
  if (names.empty()) return {};
  add("--operations", names);
  add("--port", std::to_string(options.who.meeting.port + 1 + static_cast<std::int64_t>(number)));
  add("--child-of-setting", setting.name);
  return arguments;
}

// Adds a child's findings, each row with its setting.
void add_child(const ChildResult& child, const std::string& setting, Report& report) {
  Report found;
  add_lines(child.lines, found);
  for (Row& row : found.rows) {
    row.labels["setting"] = setting;
    report.rows.push_back(std::move(row));
  }
  for (const std::string& note : found.notes) report.notes.push_back(setting + ": " + note);
  if (child.timed_out) report.notes.push_back(setting + ": ended, it took too long");
  for (const auto& [name, version] : found.software) report.software[name] = version;
  if (report.devices.size() == 1)  // the host alone so far
    report.devices.insert(report.devices.end(), found.devices.begin(), found.devices.end());
}

void run_settings(const Options& options, int argc, char** argv, Report& report) {
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"})
    if (const char* value = std::getenv(name); value != nullptr)
      report.notes.push_back(std::string("default means ") + name + "=" + value +
                             ", which was set from outside");
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::milliseconds(static_cast<std::int64_t>(options.budget * 1e3));
  for (std::size_t i = 0; i < options.settings.size(); ++i) {
    const Setting& setting = setting_of(options.settings[i]);
    if (std::chrono::steady_clock::now() > deadline) {
      report.notes.push_back(std::string(setting.name) + ": left out, no time (--budget)");
      continue;
    }
    const std::vector<std::string> arguments = arguments_of(options, setting, i, argc, argv);
    if (arguments.empty()) continue;
    const ChildResult child =
        run_child(arguments, environment_of(options, setting.name), options.setting_timeout);
    const std::size_t notes = report.notes.size();
    add_child(child, setting.name, report);
    if (report.rows.empty() && child.status != 0)
      throw ProbeError(report.notes.size() > notes
                           ? report.notes.back().substr(std::string(setting.name).size() + 2)
                           : "a child ended with status " + std::to_string(child.status));
  }
}

void run(int argc, char** argv) {
  Options options;
  Args args("probe_nccl", "NCCL's collectives on this host or between hosts");
  options.add_to(args);
  if (!args.parse(argc, argv)) return;
  options.who.complete();
  for (const std::string& name : options.plan.operations) operation_of(name);
  for (const std::string& name : options.settings) setting_of(name);
  if (options.ranks_per_gpu < 1 || options.gpus < 0 ||
      (options.ranks_per_gpu > 1 && options.who.world > 1))
    throw UsageError("--ranks-per-gpu is 1 or more, and for a single process");
  if (options.show_version) {
    const Api api = load(options.library);
    std::printf("NCCL %s: %s\n", version_text(api.version).c_str(), api.path.c_str());
    return;
  }
  Report report = new_report("probe_nccl", argc, argv);
  if (!options.child.empty()) return run_setting(options, report);
  run_settings(options, argc, argv, report);
  if (options.who.rank == 0) {
    add_fits(report, "nccl.operation");
    publish(report, options.json);
  }
}

}  // namespace
}  // namespace railyard::probe::nccl

int main(int argc, char** argv) {
  return railyard::probe::run_probe("probe_nccl", [&] { railyard::probe::nccl::run(argc, argv); });
}
