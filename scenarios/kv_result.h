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

// One request; times from its arrival.
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
  sim::Duration transfer_alone{};  // first descriptor to last byte, hidden part included
  sim::Bytes moved{};
  std::int64_t descriptors = 0;
};

struct KvPoolRow {
  std::string what;  // "prefill 0"
  double utilization = 0;
};

struct KvResult {
  std::string model;
  std::string mode;                                  // "pull after prefill"
  std::string backend;                               // "RDMA"
  std::int64_t prefill_ranks = 0, decode_ranks = 0;  // per instance
  std::int64_t prefill_instances = 0, decode_instances = 0;
  std::int64_t prefill_capacity = 0, decode_capacity = 0;  // tokens of an instance's cache
  Quantiles ttft, queue, prefill, blocks, transfer, first_step, tpot, end_to_end, transfer_alone;
  double requests_per_second = 0;
  double output_tokens_per_second = 0;
  double transfer_gb_per_s = 0;  // moved / transfer_alone, median request
  sim::Bytes moved{};            // all requests
  std::int64_t descriptors = 0;
  std::int64_t decode_steps = 0;
  std::vector<KvPoolRow> pools;
  std::vector<KvRequestRow> requests;
};

}  // namespace railyard::scenarios
