// kv: what is served, by which GPUs, to which requests. decode_kv.cpp lists the keys.
#pragma once

#include <cstdint>
#include <vector>

#include "models/kv/serving.h"
#include "models/nn/dtype.h"
#include "scenarios/decode.h"

namespace railyard::scenarios {

// How the cache goes between pools. `automatic`: NVLink within a node or domain, else RDMA.
enum class KvBackend { automatic, tcp, storage };

struct KvPoolSpec {
  std::uint32_t first_rank = 0;
  std::uint32_t instances = 0;
  std::uint32_t tensor_parallel = 1;
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
  KvBackend backend = KvBackend::automatic;
  std::uint32_t sockets = 1;
  sim::Bandwidth storage_bandwidth{};
  sim::Duration storage_latency{};
  models::KvTransferOptions transfer;
  std::vector<models::KvRequest> requests;  // by arrival
  std::int64_t longest_request = 0;         // tokens, input and output
};

Result<void> decode(const Place& place, KvSpec& out);

}  // namespace railyard::scenarios

template <>
struct railyard::sim::EnumTable<railyard::scenarios::KvBackend> {
  using KvBackend = railyard::scenarios::KvBackend;
  static constexpr std::string_view kind = "KV transfer back-end";
  static constexpr std::array entries{EnumEntry{KvBackend::automatic, "auto"},
                                      EnumEntry{KvBackend::tcp, "tcp"},
                                      EnumEntry{KvBackend::storage, "storage"}};
};
template <>
struct railyard::sim::EnumTable<railyard::models::TransferMode> {
  using TransferMode = railyard::models::TransferMode;
  static constexpr std::string_view kind = "transfer mode";
  static constexpr std::array entries{EnumEntry{TransferMode::pull, "pull"},
                                      EnumEntry{TransferMode::push, "push"}};
};
