// kv: what is served, by which GPUs, to which requests. decode_kv.cpp lists the keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/kv/serving.h"
#include "models/nn/dtype.h"
#include "scenarios/decode.h"
#include "scenarios/scenario.h"

namespace railyard::scenarios {

// The NICs that a rank's transfers use: those nearest to its GPU, or all of its node by turns.
enum class KvNics { nearest, all };

struct KvPoolSpec {
  std::uint32_t first_rank = 0;
  std::uint32_t instances = 0;
  std::uint32_t tensor_parallel = 1;

  [[nodiscard]] std::uint32_t end_rank() const { return first_rank + instances * tensor_parallel; }
};

// What the scenario says in place of the library's own costs.
struct KvCostOverrides {
  std::optional<sim::Duration> handshake;
  std::optional<sim::Duration> request_overhead;
  std::optional<sim::Duration> descriptor_cost;
  std::optional<sim::Bytes> slice;
  std::optional<sim::Duration> slice_cost;
  std::optional<std::uint32_t> threads;
  std::optional<bool> join_blocks;
  std::optional<bool> synchronous;
};

struct KvTransferSpec {
  models::TransferMode mode = models::TransferMode::pull;
  models::KvLibrary library = models::KvLibrary::nixl;
  models::KvBackend backend = models::KvBackend::automatic;
  KvNics nics = KvNics::nearest;
  std::int64_t block_tokens = 16;
  std::int64_t layers_per_push = 1;
  KvCostOverrides costs;
  std::uint32_t sockets = 2;
  sim::Bandwidth storage_bandwidth{};       // writing
  sim::Bandwidth storage_read_bandwidth{};  // 0: as writing
  sim::Duration storage_latency{};
  // Before the first request: every rank registers its cache, once.
  sim::Bytes registration_granule{};
  sim::Duration registration_cost{};
};

struct KvSpec {
  models::KvModel model;
  models::Dtype dtype = models::Dtype::bf16;
  KvPoolSpec prefill;
  KvPoolSpec decode;
  std::int64_t max_batched_tokens = 8192;
  std::int64_t max_sequences = 256;
  double memory_utilization = 0.9;
  sim::Duration step_overhead{};
  KvTransferSpec transfer;
  std::vector<models::KvRequest> requests;  // by arrival; see kv_requests()
  std::string trace;                        // the file that has them
  std::uint32_t clients = 0;                // of a closed load
  std::vector<CollectiveRun> beside;        // again and again until the last request has ended
};

Result<void> decode(const Place& place, KvSpec& out);

// Those that were drawn, or the trace's.
Result<std::vector<models::KvRequest>> kv_requests(const Scenario& scenario, const KvSpec& spec);

// The library's costs on a back-end, as the scenario changes them.
models::KvTransferCosts transfer_costs(const KvTransferSpec& spec, models::KvBackend backend,
                                       const sim::NetworkParameters& network);

}  // namespace railyard::scenarios

template <>
struct railyard::sim::EnumTable<railyard::scenarios::KvNics> {
  using KvNics = railyard::scenarios::KvNics;
  static constexpr std::string_view kind = "choice of NICs";
  static constexpr std::array entries{EnumEntry{KvNics::nearest, "nearest"},
                                      EnumEntry{KvNics::all, "all"}};
};
template <>
struct railyard::sim::EnumTable<railyard::models::TransferMode> {
  using TransferMode = railyard::models::TransferMode;
  static constexpr std::string_view kind = "transfer mode";
  static constexpr std::array entries{EnumEntry{TransferMode::pull, "pull"},
                                      EnumEntry{TransferMode::push, "push"}};
};
