// probe_gloo: Gloo's collectives over TCP, on processors alone. Rows:
//
//   gloo.operation  labels operation, algorithm, ranks: time of one call after a barrier, the
//                   slowest rank's; moved_bytes = bytes, of AllGather the gathered vector
//   gloo.processor  the same labels and the bytes: processor time of one call, us, of the rank that
//                   needs most; what the kernel does in interrupts is not in it
//   gloo.connect    making the full mesh of connections
//
// Between hosts every rank is started with --rank, --world and --address, or by a launcher that
// says so in the environment. --ranks N starts N processes on this host instead.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <utility>

#include "calibrate/probes/common/agreement.h"
#include "calibrate/probes/common/args.h"
#include "calibrate/probes/common/child.h"
#include "calibrate/probes/common/error.h"
#include "calibrate/probes/common/report.h"
#include "calibrate/probes/common/threads.h"
#include "calibrate/probes/gloo/group.h"

namespace railyard::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMeetingTimeout = 60;
constexpr double kMostSamples = 200, kFewestSamples = 5;

struct Options {
  Identity who;
  Sizes sizes{1024, 8192, 65536, 524288, 4194304, 16777216};
  std::vector<std::string> only;  // "AllReduce/segmented-ring", ...; empty: all
  std::string own_address, interface, json;
  std::int64_t ranks = 0;
  double seconds = 0.2;
  double pause = 0;  // before every call, so that nothing of the one before is still at work
};

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// User and system time of this process.
double processor_microseconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto microseconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return microseconds(use.ru_utime) + microseconds(use.ru_stime);
}

double sample(GlooGroup& group, double pause, const std::function<void()>& call) {
  if (pause > 0) std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  group.barrier();
  const Clock::time_point start = Clock::now();
  call();
  return microseconds_since(start);
}

std::string full_name(const GlooAlgorithm& algorithm) {
  return algorithm.operation + "/" + algorithm.name;
}

struct Cell {
  const GlooAlgorithm& algorithm;
  std::int64_t bytes;
  double seconds, pause;
};

void measure_cell(GlooGroup& group, Store& store, const Cell& of, Report& report) {
  const GlooAlgorithm& algorithm = of.algorithm;
  const std::int64_t bytes = of.bytes;
  const std::function<void()> call = group.prepare(algorithm, static_cast<std::size_t>(bytes));
  if (!call) return;
  const std::string cell = full_name(algorithm) + "/" + std::to_string(bytes);
  sample(group, of.pause, call);
  const double once = std::max(sample(group, of.pause, call), 1.0);
  const auto wanted =
      static_cast<std::int64_t>(std::clamp(of.seconds * 1e6 / once, kFewestSamples, kMostSamples));
  const std::int64_t count = number_of_first(store, cell, wanted);
  std::vector<double> samples;
  const double before = processor_microseconds();
  for (std::int64_t i = 0; i < count; ++i) samples.push_back(sample(group, of.pause, call));
  const double busy = (processor_microseconds() - before) / static_cast<double>(count);
  Labels labels{{"operation", algorithm.operation},
                {"algorithm", algorithm.name},
                {"ranks", std::to_string(group.ranks())}};
  report.rows.push_back(
      {"gloo.operation", labels, bytes, bytes, summarize(slowest(store, cell, samples)), {}, ""});
  labels["bytes"] = std::to_string(bytes);
  report.rows.push_back({"gloo.processor",
                         labels,
                         0,
                         0,
                         {},
                         slowest(store, cell + "/processor", {busy}).front(),
                         "us"});
}

bool wanted(const std::vector<std::string>& only, const GlooAlgorithm& algorithm) {
  return only.empty() || std::find(only.begin(), only.end(), full_name(algorithm)) != only.end();
}

void check_names(const std::vector<std::string>& only) {
  std::string known;
  for (const GlooAlgorithm& algorithm : gloo_algorithms())
    known += (known.empty() ? "" : ", ") + full_name(algorithm);
  for (const std::string& name : only)
    if ((", " + known + ", ").find(", " + name + ", ") == std::string::npos)
      throw UsageError("--only has no '" + name + "'; there are " + known);
}

void measure(Store& store, const GlooDevice& device, const Options& options, Report& report) {
  const Clock::time_point start = Clock::now();
  GlooGroup group(store, device);
  report.rows.push_back({"gloo.connect",
                         {{"ranks", std::to_string(group.ranks())}},
                         0,
                         0,
                         summarize({microseconds_since(start)}),
                         {},
                         ""});
  for (const GlooAlgorithm& algorithm : gloo_algorithms())
    for (const std::int64_t bytes : options.sizes)
      if (wanted(options.only, algorithm))
        measure_cell(group, store, {algorithm, bytes, options.seconds, options.pause}, report);
  group.barrier();  // nobody takes its connections down while others still use them
}

void run_rank(const Options& options, Report& report) {
  // Before the ranks meet, so that a wrong interface makes nobody wait.
  const GlooDevice device = make_gloo_device(options.own_address, options.interface);
  std::unique_ptr<StoreServer> server;
  if (options.who.rank == 0)
    server = std::make_unique<StoreServer>(Endpoint{"", options.who.meeting.port});
  Store store(options.who, kMeetingTimeout);
  measure(store, device, options, report);
}

// Every rank a process of its own on this host; rank 0's findings are the report's.
void run_ranks(const Options& options, int argc, char** argv, Report& report) {
  const std::int64_t port = [] { return local_port(listen_on({"127.0.0.1", 0})); }();
  std::vector<ChildResult> results(static_cast<std::size_t>(options.ranks));
  Threads threads;
  for (std::size_t rank = 0; rank < results.size(); ++rank)
    threads.start([&, rank] {
      std::vector<std::string> arguments(argv + 1, argv + argc);
      for (const std::string& word :
           {std::string("--ranks"), std::string("0"), std::string("--rank"), std::to_string(rank),
            std::string("--world"), std::to_string(options.ranks), std::string("--address"),
            std::string("127.0.0.1"), std::string("--port"), std::to_string(port),
            std::string("--own-address"), std::string("127.0.0.1")})
        arguments.push_back(word);
      results[rank] = run_child(arguments, {}, 600);
    });
  threads.join();
  for (std::size_t rank = 0; rank < results.size(); ++rank)
    if (results[rank].status != 0)
      throw ProbeError("rank " + std::to_string(rank) + " ended with status " +
                       std::to_string(results[rank].status));
  add_lines(results[0].lines, report);
}

void run(int argc, char** argv) {
  Options options;
  Args args("probe_gloo", "Gloo's collectives over TCP");
  args.number("--ranks", "start so many processes on this host", &options.ranks);
  args.sizes("--sizes", "bytes of the vector", &options.sizes);
  args.seconds("--seconds", "time for each cell", &options.seconds);
  args.seconds("--pause", "before every call", &options.pause);
  args.words("--only", "operation/algorithm pairs to measure, all by default", &options.only);
  args.text("--own-address", "this host's address", &options.own_address);
  args.text("--interface", "or its network interface", &options.interface);
  args.text("--json", "write the results to this file", &options.json);
  options.who.add_arguments(args);
  if (!args.parse(argc, argv)) return;
  check_names(options.only);
  if (options.ranks == 0) options.who.complete();
  if (options.ranks == 0 && options.who.world < 2)
    throw UsageError("give --ranks N for one host, or --rank, --world and --address");
  if (options.ranks != 0 && (options.ranks < 2 || options.ranks > 256))
    throw UsageError("--ranks is 2 to 256");
  Report report = new_report("probe_gloo", argc, argv);
  report.software["gloo"] = gloo_version();
  if (options.ranks > 0) {
    run_ranks(options, argc, argv, report);
  } else {
    const bool child = std::getenv(kRowsVariable) != nullptr;
    if (child) report.devices.clear();
    run_rank(options, report);
    if (send_to_parent(report) || options.who.rank != 0) return;
  }
  add_fits(report, "gloo.operation");
  publish(report, options.json);
}

}  // namespace
}  // namespace railyard::probe

int main(int argc, char** argv) {
  return railyard::probe::run_probe("probe_gloo", [&] { railyard::probe::run(argc, argv); });
}
