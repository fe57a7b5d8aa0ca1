// probe_tcp: throughput and latency of TCP between two hosts. See session.h for what is measured.
#include <cstdio>

#include "calibrate/probes/common/args.h"
#include "calibrate/probes/common/error.h"
#include "calibrate/probes/common/report.h"
#include "calibrate/probes/common/socket.h"
#include "calibrate/probes/common/threads.h"
#include "calibrate/probes/tcp/session.h"

namespace railyard::probe {
namespace {

struct Options {
  bool listen = false, once = false, loopback = false;
  Endpoint at{"", 29500};
  TcpPlan plan;
  std::string json;
};

void check(const Options& options) {
  const int modes = int{options.listen} + int{options.loopback} + int{!options.at.address.empty()};
  if (modes != 1 && !(options.listen && !options.loopback))
    throw UsageError("give one of --listen, --connect HOST and --loopback");
  for (const Sizes* sizes : {&options.plan.pingpong_sizes, &options.plan.stream_sizes,
                             &options.plan.sockets, &options.plan.threads}) {
    for (const std::int64_t size : *sizes)
      if (size < 1) throw UsageError("sizes, sockets and threads are 1 or more");
  }
}

void serve(const Options& options) {
  const Socket listener = listen_on(options.at);
  std::printf("listening on port %lld\n", static_cast<long long>(local_port(listener)));
  std::fflush(stdout);
  do {
    const Socket control = accept_from(listener, -1);
    try {
      serve_session(listener, control);
      std::printf("served one connector\n");
    } catch (const ProbeError& error) {
      if (options.once) throw;
      std::printf("a session failed: %s\n", error.what());
    }
    std::fflush(stdout);
  } while (!options.once);
}

void run_loopback(const TcpPlan& plan, Report& report) {
  const Socket listener = listen_on({"127.0.0.1", 0});
  Threads server;
  server.start([&listener] { serve_session(listener, accept_from(listener, 30)); });
  run_session({"127.0.0.1", local_port(listener)}, plan, report);
  server.join();
}

void run(int argc, char** argv) {
  Options options;
  Args args("probe_tcp", "TCP throughput and latency between two hosts");
  args.flag("--listen", "serve connectors", &options.listen);
  args.flag("--once", "with --listen: end after the first connector", &options.once);
  args.text("--connect", "measure towards the listener on this host", &options.at.address);
  args.flag("--loopback", "both ends in this process", &options.loopback);
  args.text("--bind", "with --listen: only this address", &options.at.address);
  args.number("--port", "the listener's port", &options.at.port);
  args.sizes("--pingpong", "message sizes of the ping-pong", &options.plan.pingpong_sizes);
  args.sizes("--sizes", "message sizes of the streams", &options.plan.stream_sizes);
  args.sizes("--sockets", "numbers of connections", &options.plan.sockets);
  args.sizes("--threads", "numbers of threads that write to them", &options.plan.threads);
  args.seconds("--seconds", "time for each cell", &options.plan.seconds);
  args.text("--json", "write the results to this file", &options.json);
  if (!args.parse(argc, argv)) return;
  check(options);
  if (options.listen) return serve(options);
  Report report = new_report("probe_tcp", argc, argv);
  if (options.loopback) {
    run_loopback(options.plan, report);
  } else {
    run_session(options.at, options.plan, report);
  }
  publish(report, options.json);
}

}  // namespace
}  // namespace railyard::probe

int main(int argc, char** argv) {
  return railyard::probe::run_probe("probe_tcp", [&] { railyard::probe::run(argc, argv); });
}
