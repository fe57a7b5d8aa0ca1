// Disaggregated serving: requests are prefilled by one pool of GPUs and decoded by another, and the
// KV cache goes between them as NIXL and the Mooncake Transfer Engine send it.
//
//   arrival    -> the prefill instance with the fewest tokens before it; first come, first served;
//   a
//                 batch is as many requests as fit max_batched_tokens (at least one)
//   prefill    a batch takes ServingCosts::prefill; the prompt's blocks stay until they were sent
//   transfer   the decode instance with the fewest sequences reserves blocks for prompt and output,
//              or the request waits. Then every decode rank gets its heads from one prefill rank:
//                pull   after prefill; the decode rank posts READs
//                push   each layer after it was computed; the prefill rank posts WRITEs
//              A rank's transfer engine is one thread: per request `request_overhead`, then one
//              descriptor (regions x blocks; contiguous blocks may be joined) per descriptor_cost.
//              Descriptors go on the wire as they are posted: the flow's rate is limited to
//              descriptor bytes / descriptor_cost and by its path, which it shares with everything
//              else. One ends when the last byte arrived. First use of a pair costs `handshake`.
//   decode     continuous batching: a step makes one token for every sequence (at most
//              max_sequences) and takes ServingCosts::decode; arrivals join between steps. The
//              first token is that of the first decode step, as with vLLM's connectors.
//
// TTFT = queue + prefill + wait for blocks + transfer + wait for the step + its time. Units:
// picoseconds, bytes. Cost: one event per step and batch, a few per rank and request.
//
// Not modelled: preemption (blocks are reserved for the whole output), prefix caches, chunked
// prefill mixed with decode, speculative decoding.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/kv/kv_model.h"
#include "sim/event_queue.h"
#include "sim/network.h"
#include "sim/trace.h"

namespace railyard::models {

struct KvRequest {
  sim::Time arrival{};
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
};

enum class TransferMode { pull, push };

struct KvTransferOptions {
  TransferMode mode = TransferMode::pull;
  std::int64_t block_tokens = 16;
  bool join_blocks = false;           // contiguous blocks of a region are one descriptor
  sim::Duration descriptor_cost{};    // of posting one
  sim::Duration request_overhead{};   // per request and rank: notification, lookup of blocks
  sim::Duration handshake{};          // first use of a pair of ranks: metadata, connection
  sim::Bytes registration_granule{};  // memory registered per registration_cost, once per rank
  sim::Duration registration_cost{};
};

// Ranks of the world.
struct KvInstance {
  std::vector<std::uint32_t> ranks;  // tensor-parallel group
};
struct KvPool {
  std::vector<KvInstance> instances;
  std::int64_t kv_tokens = 0;  // that fit an instance's memory
};

struct ServingOptions {
  KvModel model;
  std::int64_t element_size = 2;
  KvPool prefill;
  KvPool decode;
  std::int64_t max_batched_tokens = 8192;
  std::int64_t max_sequences = 256;
  KvTransferOptions transfer;
};

// What a batch costs. Called once per batch and step.
class ServingCosts {
 public:
  virtual ~ServingCosts() = default;
  [[nodiscard]] virtual sim::Duration prefill(const std::vector<std::int64_t>& tokens) = 0;
  [[nodiscard]] virtual sim::Duration decode(std::int64_t sequences,
                                             std::int64_t cached_tokens) = 0;
};

// How bytes go from one rank of the world to another.
struct KvPath {
  std::vector<sim::ResourceUse> uses;
  sim::Duration latency{};
  sim::Bandwidth cap{};  // of the back-end, 0 = none
};
using KvPaths = std::function<KvPath(std::uint32_t from, std::uint32_t to)>;

// Points in the life of a request.
struct RequestTimes {
  sim::Time prefill_start{};
  sim::Time prefill_end{};
  sim::Time transfer_start{};  // blocks were reserved
  sim::Time transfer_end{};
  sim::Time first_token{};
  sim::Time end{};
  std::uint32_t prefill_instance = 0;
  std::uint32_t decode_instance = 0;
  sim::Bytes moved{};
  std::int64_t descriptors = 0;
};

class Serving final : public sim::EventHandler, public sim::FlowListener {
 public:
  // What is pointed to must outlive the object.
  struct World {
    sim::EventQueue* queue;
    sim::Network* network;
    sim::Trace* trace;
    ServingCosts* costs;
    KvPaths paths;
    std::function<void()> finished{};  // called when the last request has ended; may be empty
  };
  Serving(ServingOptions options, std::vector<KvRequest> requests, World world);
  ~Serving() override;

  void start();
  [[nodiscard]] bool finished() const { return left_ == 0; }
  [[nodiscard]] const ServingOptions& options() const { return options_; }
  [[nodiscard]] const std::vector<KvRequest>& requests() const { return requests_; }
  [[nodiscard]] const std::vector<RequestTimes>& times() const { return times_; }
  // Time that an instance worked.
  [[nodiscard]] sim::Duration prefill_busy(std::size_t instance) const;
  [[nodiscard]] sim::Duration decode_busy(std::size_t instance) const;
  [[nodiscard]] std::int64_t decode_steps() const { return decode_steps_; }
  // Who waits for what, when the run ended with requests open; at most `limit` lines.
  [[nodiscard]] std::vector<std::string> waiting(std::size_t limit) const;

  void on_event(std::uint32_t code, std::uint32_t argument) override;
  void on_flow_done(std::uint32_t tag) override;

 private:
  struct Prefill;
  struct Decode;
  struct Part;
  struct Engine;

  void arrive(std::uint32_t request);
  void start_prefill(std::uint32_t instance);
  void end_prefill(std::uint32_t instance);
  void place(std::uint32_t request);
  void retry_waiting();
  void start_transfer(std::uint32_t request);
  void post(Engine& engine, std::uint32_t part);
  void part_done(std::uint32_t part);
  void start_step(std::uint32_t instance);
  void end_step(std::uint32_t instance);
  void schedule(sim::Time at, std::uint32_t code, std::uint32_t argument);
  [[nodiscard]] std::int64_t reserved_tokens(std::uint32_t request) const;
  std::uint32_t new_part(std::uint32_t request, std::uint32_t from, std::uint32_t to);

  ServingOptions options_;
  std::vector<KvRequest> requests_;
  World world_;
  std::vector<RequestTimes> times_;
  std::vector<std::uint32_t> parts_left_;  // by request
  std::vector<Prefill> prefill_;
  std::vector<Decode> decode_;
  std::vector<Engine> engines_;  // by rank of the world
  std::vector<Part> parts_;
  std::deque<std::uint32_t> waiting_;  // prefilled, no decode instance has room
  std::size_t left_ = 0;
  std::int64_t decode_steps_ = 0;
};

// Which prefill rank of an instance a decode rank gets its heads from, and how many ranks' worth:
// with T_p prefill and T_d decode ranks, decode rank d gets the part of heads it holds. Each pair
// moves `heads` heads of every layer.
struct HeadSource {
  std::uint32_t from = 0;  // index in the prefill instance
  std::int64_t heads = 0;  // 0 with MLA: the whole latent cache
};
std::vector<HeadSource> head_sources(const KvModel& model, std::int64_t prefill_ranks,
                                     std::int64_t decode_ranks, std::uint32_t decode_rank);

}  // namespace railyard::models
