// probe_verbs: what RDMA adapters do, between two hosts or within one. See measure.h for the rows.
//
// Between hosts both are started: --rank 0 and --rank 1, --world 2, --address the host of rank 0
// (by TCP; it is only the meeting place). --loopback runs both ends as threads of this process.
#include <algorithm>
#include <memory>

#include "calibrate/probes/common/error.h"
#include "calibrate/probes/common/threads.h"
#include "calibrate/probes/verbs/measure.h"

namespace railyard::probe {
namespace {

struct Options {
  Identity who;
  VerbsPlan plan;
  std::string device, peer_device, json;
  std::int64_t port = 1, gid_index = -1;
  bool loopback = false;
};

void check(const Options& options) {
  for (const Sizes* sizes :
       {&options.plan.sizes, &options.plan.pairs, &options.plan.depths, &options.plan.registered}) {
    const auto [least, most] = std::minmax_element(sizes->begin(), sizes->end());
    if (*least < 1 || *most > (std::int64_t{1} << 31) - 1)
      throw UsageError("sizes, pairs and depths are 1 or more, and below 2G");
  }
  for (const std::string& verb : options.plan.verbs) verb_of(verb);
}

// Everything that one end measures; both ends make the same calls in the same order.
void run_end(const Options& options, const std::string& device, Store& store, Report& report) {
  const Adapter adapter(device, static_cast<int>(options.port),
                        static_cast<int>(options.gid_index));
  report.devices.push_back(adapter.describe());
  store.barrier("opened");
  if (store.rank() == 0) measure_registration(adapter, options.plan, report);
  measure_latency(adapter, store, options.plan, report);
  measure_bandwidth(adapter, store, options.plan, -1, report);
  if (options.plan.gpu >= 0)
    measure_bandwidth(adapter, store, options.plan, static_cast<int>(options.plan.gpu), report);
}

void run_between(const Options& options, Report& report) {
  std::unique_ptr<StoreServer> server;
  if (options.who.rank == 0)
    server = std::make_unique<StoreServer>(Endpoint{"", options.who.meeting.port});
  Store store(options.who, 120);
  run_end(options, options.device, store, report);
}

void run_loopback(const Options& options, Report& report) {
  const StoreServer server({"127.0.0.1", 0});
  Report of_peer;
  Threads ends;
  for (std::int64_t rank = 0; rank < 2; ++rank)
    ends.start([&, rank] {
      Store store({rank, 2, rank, {"127.0.0.1", server.port()}}, 120);
      const std::string& device =
          rank == 0 || options.peer_device.empty() ? options.device : options.peer_device;
      run_end(options, device, store, rank == 0 ? report : of_peer);
    });
  ends.join();
}

void run(int argc, char** argv) {
  Options options;
  Args args("probe_verbs", "RDMA bandwidth, latency and registration");
  args.flag("--loopback", "both ends in this process", &options.loopback);
  args.text("--device", "the adapter; the first one where left out", &options.device);
  args.text("--peer-device", "with --loopback: the other end's adapter", &options.peer_device);
  args.number("--ib-port", "its port", &options.port);
  args.number("--gid-index", "-1: found", &options.gid_index);
  args.number("--gpu", "measure this GPU's memory too; -1: none", &options.plan.gpu);
  args.sizes("--sizes", "of messages", &options.plan.sizes);
  args.sizes("--pairs", "numbers of queue pairs", &options.plan.pairs);
  args.sizes("--depths", "requests in flight on each", &options.plan.depths);
  args.sizes("--register", "sizes to register", &options.plan.registered);
  args.words("--verbs", "what to measure", &options.plan.verbs);
  args.seconds("--seconds", "time for each cell", &options.plan.seconds);
  args.text("--json", "write the results to this file", &options.json);
  options.who.add_arguments(args);
  if (!args.parse(argc, argv)) return;
  check(options);
  // Whether there is a device at all is said first, by whichever end has none.
  Adapter(options.device, static_cast<int>(options.port), static_cast<int>(options.gid_index));
  options.who.complete();
  if (!options.loopback && options.who.world != 2)
    throw UsageError("give --loopback, or --rank 0 or 1, --world 2 and --address");
  Report report = new_report("probe_verbs", argc, argv);
  if (options.loopback)
    run_loopback(options, report);
  else
    run_between(options, report);
  if (!options.loopback && options.who.rank != 0) return;
  add_fits(report, "verbs.bandwidth");
  add_fits(report, "verbs.latency");
  add_fits(report, "verbs.register");
  publish(report, options.json);
}

}  // namespace
}  // namespace railyard::probe

int main(int argc, char** argv) {
  return railyard::probe::run_probe("probe_verbs", [&] { railyard::probe::run(argc, argv); });
}
