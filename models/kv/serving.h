// Disaggregated serving: requests are prefilled by one pool of GPUs and decoded by another, and the
// KV cache goes between them as NIXL and the Mooncake Transfer Engine send it.
//
//   arrival    -> the prefill instance with the fewest tokens before it; first come, first served;
//              a batch is as many requests as fit max_batched_tokens (at least one)
//   prefill    a batch takes ServingCosts::prefill; the prompt's blocks stay until they were sent
//   transfer   the decode instance with the fewest sequences of those with room gives blocks for
//              prompt and output, or the request waits. Then every decode rank gets its heads from
//              the prefill ranks that hold them (kv_pieces):
//                pull   after prefill; the decode rank asks for all layers in one call
//                push   whenever layers_per_push layers were computed, the prefill rank sends them
//              What a call costs, and what of it is serial: transfers.h. How many work requests it
//              takes follows from the blocks that both caches happen to give: blocks.h.
//   decode     continuous batching: a step makes one token for every sequence (at most
//              max_sequences) and takes ServingCosts::decode; arrivals join between steps. The
//              first token is that of the first decode step, as with vLLM's connectors.
//
// TTFT = queue + prefill + wait for blocks + transfer + wait for the step + its time. Units:
// picoseconds, bytes. Cost: one event per step and batch, a few per call; O(blocks) per request.
//
// With `clients` > 0 the load is closed: so many clients, each of which sends its next request when
// the one before has ended; the requests' own arrivals are not looked at.
//
// Not modelled: preemption (blocks are reserved for the whole output), prefix caches, chunked
// prefill mixed with decode, speculative decoding.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "models/kv/blocks.h"
#include "models/kv/kv_model.h"
#include "models/kv/transfers.h"
#include "sim/event_queue.h"
#include "sim/trace.h"

namespace railyard::models {

struct KvRequest {
  sim::Time arrival{};
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
};

enum class TransferMode { pull, push };

// A tensor-parallel group, ranks of the world.
struct KvInstance {
  std::vector<std::uint32_t> ranks;
};
struct KvPool {
  std::vector<KvInstance> instances;
  std::int64_t blocks = 0;  // of an instance's cache
};

// How a piece goes: by the threads that ask for it, over so many ways at once (one per pair of
// NICs).
struct KvLink {
  std::uint32_t sender = 0;
  std::vector<std::uint32_t> ways;
};

struct ServingOptions {
  KvModel model;
  std::int64_t element_size = 2;
  std::int64_t block_tokens = 16;
  KvPool prefill;
  KvPool decode;
  std::int64_t max_batched_tokens = 8192;
  std::int64_t max_sequences = 256;
  TransferMode mode = TransferMode::pull;
  std::int64_t layers_per_push = 1;
  std::uint32_t clients = 0;
  // By prefill instance * decode instances + decode instance, then as kv_pieces() has them.
  std::vector<std::vector<KvLink>> links;
};

// What a batch costs. Called once per batch and step.
class ServingCosts {
 public:
  virtual ~ServingCosts() = default;
  [[nodiscard]] virtual sim::Duration prefill(const std::vector<std::int64_t>& tokens) = 0;
  [[nodiscard]] virtual sim::Duration decode(std::int64_t sequences,
                                             std::int64_t cached_tokens) = 0;
};

// Points in the life of a request.
struct RequestTimes {
  sim::Time arrival{};
  sim::Time prefill_start{};
  sim::Time prefill_end{};
  sim::Time transfer_start{};  // blocks were reserved
  sim::Time on_wire{};         // the first byte moved
  sim::Time transfer_end{};
  sim::Time first_token{};
  sim::Time end{};
  std::uint32_t prefill_instance = 0;
  std::uint32_t decode_instance = 0;
  sim::Bytes moved{};
  std::int64_t descriptors = 0;  // work requests of all its ranks
  sim::Duration posting{};       // host time of the descriptors of its slowest call
};

class Serving final : public sim::EventHandler, public KvCallListener {
 public:
  // What is pointed to must outlive the object.
  struct World {
    sim::EventQueue* queue;
    sim::Trace* trace;
    ServingCosts* costs;
    KvTransfers* transfers;
    std::function<void()> finished{};  // called when the last request has ended; may be empty
  };
  // Every request fits an empty cache of either pool.
  Serving(ServingOptions options, std::vector<KvRequest> requests, World world);

  void start();
  [[nodiscard]] bool finished() const { return left_ == 0; }
  [[nodiscard]] const ServingOptions& options() const { return options_; }
  [[nodiscard]] const std::vector<KvRequest>& requests() const { return requests_; }
  [[nodiscard]] const std::vector<RequestTimes>& times() const { return times_; }
  // Time that an instance worked.
  [[nodiscard]] sim::Duration prefill_busy(std::size_t instance) const;
  [[nodiscard]] sim::Duration decode_busy(std::size_t instance) const;
  [[nodiscard]] std::int64_t decode_steps() const { return decode_steps_; }
  // Sequences in a decode step, the mean over all steps.
  [[nodiscard]] double mean_batch() const;
  // Who waits for what, when the run ended with requests open; at most `limit` lines.
  [[nodiscard]] std::vector<std::string> waiting(std::size_t limit) const;

  void on_event(std::uint32_t code, std::uint32_t argument) override;
  void on_call_done(std::uint32_t request, const KvCallTimes& times) override;

 private:
  struct Prefill {
    explicit Prefill(std::int64_t blocks) : cache(blocks) {}
    KvBlockPool cache;
    std::deque<std::uint32_t> queue;
    std::vector<std::uint32_t> batch;  // under way
    std::int64_t queued_tokens = 0;    // of both
    sim::Time begin{};
    sim::Duration takes{};
    std::int64_t layers = 0;  // computed when the next event comes
    sim::Duration busy{};
  };
  struct Decode {
    explicit Decode(std::int64_t blocks) : cache(blocks) {}
    KvBlockPool cache;
    std::vector<std::uint32_t> running;
    std::vector<std::uint32_t> joining;  // transferred, wait for the next step
    std::int64_t placed = 0;             // sequences that have blocks here
    std::int64_t cached = 0;             // tokens of the running sequences
    bool stepping = false;
    sim::Duration busy{};
  };
  struct State {
    KvBlockList prefill_blocks;
    KvBlockList decode_blocks;
    std::vector<std::int64_t> descriptors;  // of one region, by piece
    std::int64_t layers_ready = 0;
    std::int64_t layers_sent = 0;
    std::int64_t open_calls = 0;
    std::int64_t made = 0;  // tokens
    bool placed = false;
    bool on_wire = false;
  };

  void arrive(std::uint32_t request);
  void arrive_next();
  void start_prefill(std::uint32_t instance);
  void start_batch(std::uint32_t instance);
  void schedule_layers(std::uint32_t instance);
  void layers_computed(std::uint32_t instance);
  void end_prefill(std::uint32_t instance);
  void place(std::uint32_t request);
  [[nodiscard]] bool try_place(std::uint32_t request);
  void retry_waiting();
  void count_descriptors(std::uint32_t request);
  void send_ready(std::uint32_t request);
  void add_parts(std::uint32_t request, std::size_t piece, std::int64_t regions,
                 std::vector<KvPart>& parts);
  void transferred(std::uint32_t request);
  void start_step(std::uint32_t instance);
  void end_step(std::uint32_t instance);
  void end_request(std::uint32_t request);
  void schedule(sim::Time at, std::uint32_t code, std::uint32_t argument);
  [[nodiscard]] std::size_t pair_of(std::uint32_t request) const;
  [[nodiscard]] std::int64_t prompt_blocks(std::uint32_t request) const;
  [[nodiscard]] std::int64_t all_blocks(std::uint32_t request) const;

  ServingOptions options_;
  std::vector<KvRequest> requests_;
  World world_;
  std::vector<KvPiece> pieces_;
  std::vector<RequestTimes> times_;
  std::vector<State> states_;
  std::vector<Prefill> prefill_;
  std::vector<Decode> decode_;
  std::vector<bool> met_;              // pairs of instances that know each other
  std::deque<std::uint32_t> waiting_;  // no decode instance has room
  std::size_t next_ = 0;               // of a closed load
  std::size_t left_ = 0;
  std::int64_t decode_steps_ = 0;
  std::int64_t decoded_ = 0;  // tokens
};

}  // namespace railyard::models
