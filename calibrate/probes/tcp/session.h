// The two ends of a TCP measurement.
//
// The connector drives: over a control connection it asks for one cell after the other, opens the
// cell's data connections, and gets the readings back. The listener serves one connector at a
// time. Rows, all of the connector's side:
//
//   tcp.connect    opening one more connection (bytes 0)
//   tcp.pingpong   half the round trip of a message of `bytes` on an idle connection
//   tcp.stream     labels sockets, threads: time per message of `bytes` while the connector's
//                  threads write such messages without pause, in turn to each of their sockets.
//                  The listener reads a byte counter at equal intervals after a warm-up, so that
//                  neither slow start nor a full token bucket on the way is counted.
#pragma once

#include <cstdint>
#include <string>

#include "calibrate/probes/common/args.h"
#include "calibrate/probes/common/report.h"
#include "calibrate/probes/common/socket.h"

namespace railyard::probe {

struct TcpPlan {
  Sizes pingpong_sizes{1, 64, 1024, 4096, 16384, 65536, 262144, 1048576};
  Sizes stream_sizes{1024, 8192, 65536, 524288, 4194304};
  Sizes sockets{1, 2, 4, 8};
  Sizes threads{1, 2, 4};
  double seconds = 0.4;  // of each cell, warm-up not counted
};

// Serves one connector from its control connection to its end.
void serve_session(const Socket& listener, const Socket& control);

// Runs every cell of the plan; adds rows, fits and notes.
void run_session(const Endpoint& listener, const TcpPlan& plan, Report& report);

}  // namespace railyard::probe
