#include "calibrate/probes/tcp/session.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "calibrate/probes/common/error.h"
#include "calibrate/probes/tcp/stream.h"

namespace railyard::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kPatience = 30;  // seconds to wait for the other side
constexpr std::int64_t kWindows = 20;
constexpr std::int64_t kMostTrips = 4000;
constexpr char kGreeting[] = "railyard tcp 1";

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// ---- the listener's side ------------------------------------------------------------------------

void serve_echo(const Socket& listener, const std::string& size) {
  const std::int64_t bytes = parse_size(size);
  if (bytes < 1 || bytes > (std::int64_t{1} << 30))
    throw ProbeError("the connector asked for an echo of " + size + " bytes");
  const Socket data = accept_from(listener, kPatience);
  std::vector<char> buffer(static_cast<std::size_t>(bytes));
  while (data.receive_all(buffer.data(), buffer.size()))
    data.send_all(buffer.data(), buffer.size());
}

void serve_stream(const Socket& listener, const Socket& control, const std::string& request) {
  const StreamCell cell = stream_cell_of(request);
  std::vector<Socket> data;
  for (std::int64_t i = 0; i < cell.sockets; ++i) data.push_back(accept_from(listener, kPatience));
  receive_stream(data, cell, [&](const std::vector<Reading>& readings) {
    control.send_text(to_text(readings));
  });
}

void serve_connections(const Socket& listener, const std::string& count) {
  const std::int64_t connections = std::min(parse_size(count), std::int64_t{10000});
  for (std::int64_t i = 0; i < connections; ++i) accept_from(listener, kPatience);
}

// ---- the connector's side -----------------------------------------------------------------------

void measure_connect(const Endpoint& listener, const Socket& control, Report& report) {
  constexpr std::int64_t kConnections = 50;
  control.send_text("connect");
  control.send_text(std::to_string(kConnections));
  std::vector<double> samples;
  for (std::int64_t i = 0; i < kConnections; ++i) {
    const Clock::time_point start = Clock::now();
    const Socket socket = connect_to(listener, kPatience);
    samples.push_back(microseconds_since(start));
  }
  report.rows.push_back({"tcp.connect", {}, 0, 0, summarize(samples), {}, ""});
}

double trip(const Socket& socket, std::vector<char>& buffer) {
  const Clock::time_point start = Clock::now();
  socket.send_all(buffer.data(), buffer.size());
  if (!socket.receive_all(buffer.data(), buffer.size()))
    throw ProbeError("the listener closed the connection");
  return microseconds_since(start) / 2;
}

void measure_pingpong(const Endpoint& listener, const Socket& control, std::int64_t bytes,
                      double seconds, Report& report) {
  control.send_text("echo");
  control.send_text(std::to_string(bytes));
  const Socket data = connect_to(listener, kPatience);
  data.set_timeout(kPatience);
  std::vector<char> buffer(static_cast<std::size_t>(bytes), 'r');
  for (int i = 0; i < 5; ++i) trip(data, buffer);
  std::vector<double> samples;
  const Clock::time_point start = Clock::now();
  while (samples.size() < 5 || (microseconds_since(start) < seconds * 1e6 &&
                                samples.size() < static_cast<std::size_t>(kMostTrips)))
    samples.push_back(trip(data, buffer));
  report.rows.push_back({"tcp.pingpong", {}, bytes, bytes, summarize(samples), {}, ""});
}

void add_stream_row(const StreamCell& cell, const std::vector<Reading>& readings, Report& report) {
  std::vector<double> samples;
  for (const Reading& reading : readings) {
    if (reading.bytes <= 0 || reading.nanoseconds <= 0) continue;
    samples.push_back(static_cast<double>(reading.nanoseconds) / 1e3 *
                      static_cast<double>(cell.bytes) / static_cast<double>(reading.bytes));
  }
  const Labels labels = {{"sockets", std::to_string(cell.sockets)},
                         {"threads", std::to_string(cell.threads)}};
  if (samples.empty())
    report.notes.push_back("no data arrived in time: " + to_text(cell));
  else
    report.rows.push_back(
        {"tcp.stream", labels, cell.bytes, cell.bytes, summarize(samples), {}, ""});
}

void measure_stream(const Endpoint& listener, const Socket& control, const StreamCell& cell,
                    Report& report) {
  control.send_text("stream");
  control.send_text(to_text(cell));
  std::vector<Socket> data;
  for (std::int64_t i = 0; i < cell.sockets; ++i) {
    data.push_back(connect_to(listener, kPatience));
    data.back().set_timeout(kPatience);
  }
  std::string readings;
  send_stream(data, cell, [&] {
    if (!control.receive_text(readings)) throw ProbeError("the listener has gone");
  });
  add_stream_row(cell, readings_of(readings), report);
}

}  // namespace

void serve_session(const Socket& listener, const Socket& control) {
  control.send_text(kGreeting);
  std::string verb, request;
  while (control.receive_text(verb) && control.receive_text(request)) {
    if (verb == "echo") {
      serve_echo(listener, request);
    } else if (verb == "stream") {
      serve_stream(listener, control, request);
    } else if (verb == "connect") {
      serve_connections(listener, request);
    } else {
      throw ProbeError("the connector asked for '" + verb + "'");
    }
  }
}

void run_session(const Endpoint& listener, const TcpPlan& plan, Report& report) {
  const Socket control = connect_to(listener, kPatience);
  control.set_timeout(kPatience + 10 * plan.seconds);
  std::string greeting;
  if (!control.receive_text(greeting, sizeof kGreeting) || greeting != kGreeting)
    throw ProbeError("at " + listener.address + " no probe_tcp listens");
  measure_connect(listener, control, report);
  for (const std::int64_t bytes : plan.pingpong_sizes)
    measure_pingpong(listener, control, bytes, plan.seconds, report);
  const auto total_us = static_cast<std::int64_t>(plan.seconds * 1e6);
  for (const std::int64_t sockets : plan.sockets) {
    for (const std::int64_t threads : plan.threads) {
      if (threads > sockets) continue;
      for (const std::int64_t bytes : plan.stream_sizes)
        measure_stream(listener, control,
                       {sockets, threads, bytes, std::max(total_us / kWindows, std::int64_t{1}),
                        kWindows, total_us / 4},
                       report);
    }
  }
  add_fits(report, "tcp.pingpong");
  add_fits(report, "tcp.stream");
}

}  // namespace railyard::probe
