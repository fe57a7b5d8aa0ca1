// A decoder as serving sees it: the bytes of its KV cache, and the work of a token.
//
//   KV bytes per token   2 x layers x kv_heads x head_dim x element (K and V);
//                        with latent attention (MLA) layers x latent_width x element
//   per rank of TP t     max(kv_heads / t, 1) heads: fewer heads than ranks are replicated; a
//                        latent cache is held whole by every rank
//   tokens               the prompt and the slot of the first output, rounded up to whole blocks
//   prefill              2 x active parameters per token, and for the causal attention of s tokens
//                        4 x layers x heads x head_dim x s^2 / 2
//   decode               a step reads every weight that its tokens use and the cache of its
//                        sequences
//
// Sources: vLLM (kv_cache_interface, 16-token blocks), the models' public configurations. Not valid
// for sliding windows and hybrid state-space layers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"
#include "sim/units.h"

namespace railyard::models {

struct KvModel {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t width = 0;  // hidden size
  std::int64_t heads = 0;  // of queries
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t latent_width = 0;  // MLA: what a layer caches per token; 0 = K and V
  std::int64_t parameters = 0;
  std::int64_t active_parameters = 0;  // that a token uses; = parameters for dense models
  std::int64_t experts = 0;            // 0: dense
  std::int64_t experts_per_token = 0;
};

// Of the table of public models; the error names the nearest.
sim::Result<KvModel> kv_model(std::string_view name);
std::vector<std::string_view> kv_model_names();

// Bytes of one token in all layers, on one rank of `tensor_parallel`.
sim::Bytes kv_bytes_per_token(const KvModel& model, std::int64_t tensor_parallel,
                              std::int64_t element_size);
// Separate memory regions of a rank's cache: K and V of each layer; one per layer with MLA.
std::int64_t kv_regions(const KvModel& model);
// What one rank of a decode instance takes from one rank of a prefill instance.
struct KvPiece {
  std::uint32_t from = 0;  // index in the prefill instance
  std::uint32_t to = 0;    // index in the decode instance
  sim::Bytes per_token{};  // of one region
  bool whole = false;      // the blocks of both ranks are moved as they are
  friend bool operator==(const KvPiece&, const KvPiece&) = default;
};

// By receiving rank, then by head. Of several copies of a head a rank takes the one that spreads
// the load: between equal instances rank r takes from rank r.
std::vector<KvPiece> kv_pieces(const KvModel& model, std::int64_t prefill_ranks,
                               std::int64_t decode_ranks, std::int64_t element_size);
std::int64_t blocks_of(std::int64_t tokens, std::int64_t block_tokens);

double prefill_flops(const KvModel& model, std::int64_t tokens);
double decode_flops(const KvModel& model, std::int64_t sequences, std::int64_t cached_tokens);
// Parameters that the tokens of one step touch: all of a dense model; of experts those that at
// least one token is routed to, taken as independent.
double touched_parameters(const KvModel& model, std::int64_t tokens);

// The division of heads over ranks must come out even, one way or the other.
sim::Result<void> check_tensor_parallel(const KvModel& model, std::int64_t tensor_parallel);

}  // namespace railyard::models
