// What disaggregated serving did, in the terms of an inference team.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/units.h"

namespace railyard::scenarios {

struct Quantiles {
  sim::Duration p50{};
  sim::Duration p90{};
  sim::Duration p99{};
  sim::Duration mean{};
};

// One request; times from its arrival. ttft = queue + prefill + blocks + transfer + first_step.
struct KvRequestRow {
  sim::Duration arrival{};  // from the start of the run
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::uint32_t prefill_instance = 0;
  std::uint32_t decode_instance = 0;
  sim::Duration queue{};  // before prefill
  sim::Duration prefill{};
  sim::Duration blocks{};      // waited for room in the decode pool
  sim::Duration transfer{};    // not hidden behind prefill
  sim::Duration first_step{};  // until the first token was out
  sim::Duration ttft{};
  sim::Duration tpot{};  // per further token
  sim::Duration end_to_end{};
  // All of the transfer, hidden part included, = setup + wire.
  sim::Duration transfer_alone{};
  sim::Duration setup{};    // thread, call, handshake, first descriptor, transfers before it
  sim::Duration wire{};     // first byte to last
  sim::Duration posting{};  // host time of the descriptors, beside the wire
  sim::Bytes moved{};
  std::int64_t descriptors = 0;
};

struct KvPoolRow {
  std::string what;  // "prefill 0"
  double utilization = 0;
};

// A collective that ran beside the serving, again and again.
struct KvBesideRow {
  std::string what;  // "AllReduce 64MiB decode"
  std::size_t ranks = 0;
  std::int64_t calls = 0;
  sim::Duration mean{};   // with the KV traffic
  sim::Duration alone{};  // without
};

struct KvResult {
  std::string model;
  std::string mode;                                  // "pull after prefill"
  std::string library;                               // "nixl"
  std::string backends;                              // "rdma (32 pairs of ranks)"
  std::int64_t prefill_ranks = 0, decode_ranks = 0;  // per instance
  std::int64_t prefill_instances = 0, decode_instances = 0;
  std::int64_t prefill_capacity = 0, decode_capacity = 0;  // tokens of an instance's cache
  sim::Bytes token{};                   // in the cache of an instance, copies of heads included
  sim::Bytes token_of_rank{};           // prefill
  std::int64_t registered_regions = 0;  // of a rank
  sim::Bytes registered{};              // of the rank with the most
  sim::Duration registration{};         // of that rank, before the first request
  Quantiles ttft, queue, prefill, blocks, transfer, first_step, tpot, end_to_end;
  Quantiles transfer_alone, setup, wire;
  double requests_per_second = 0;
  double output_tokens_per_second = 0;
  double transfer_gb_per_s = 0;  // of a request, moved / transfer_alone, the median
  sim::Bytes moved{};            // all requests
  std::int64_t descriptors = 0;
  std::int64_t calls = 0;
  std::int64_t decode_steps = 0;
  double mean_batch = 0;  // sequences in a decode step
  std::vector<KvPoolRow> pools;
  std::vector<KvBesideRow> beside;
  std::vector<KvRequestRow> requests;
};

}  // namespace railyard::scenarios
