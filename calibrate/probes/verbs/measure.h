// The measurements of probe_verbs, run by both of its ends in step. Rank 0 keeps the rows:
//
//   verbs.register    label memory: registering `bytes` of touched memory; verbs.deregister:
//   undoing verbs.queue_pair  making one connected queue pair, the exchange over TCP included
//   verbs.bandwidth   labels verb (write, read, send), memory, pairs, depth: time per message when
//                     rank 0 keeps `depth` of them in flight on each of so many pairs
//   verbs.latency     labels verb, memory: write and send: half a ping-pong, the write seen by
//                     polling its last byte; read: one whole read. Nothing is sent inline.
#pragma once

#include "calibrate/probes/common/args.h"
#include "calibrate/probes/common/report.h"
#include "calibrate/probes/verbs/queues.h"

namespace railyard::probe {

struct VerbsPlan {
  Sizes sizes{2, 256, 4096, 16384, 65536, 262144, 1048576, 8388608};
  Sizes pairs{1, 2, 4};
  Sizes depths{1, 8, 64};
  Sizes registered{4096, 65536, 1048576, 16777216, 268435456};
  std::vector<std::string> verbs{"write", "read", "send"};
  double seconds = 0.1;  // of each cell
  std::int64_t gpu = -1;
};

Verb verb_of(const std::string& name);  // throws UsageError
void measure_registration(const Adapter& adapter, const VerbsPlan& plan, Report& report);
void measure_bandwidth(const Adapter& adapter, Store& store, const VerbsPlan& plan, int gpu,
                       Report& report);
void measure_latency(const Adapter& adapter, Store& store, const VerbsPlan& plan, Report& report);

}  // namespace railyard::probe
