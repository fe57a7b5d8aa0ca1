// A transformer as one rank of a model-parallel job computes it: its layers with a tensor-parallel
// role each, and their work and parameters divided accordingly.
//
// Roles are told by the names of the modules, as tensor-parallel plans of the Hugging Face models
// and of torchtitan do ("*.q_proj": colwise); known are those of GPT-2, Llama and Mixtral, and
// networks of one's own with such names. A transformer block is what shares a number in its name
// ("layers.3.mlp.up_proj"). Column-parallel layers of one block that follow each other are one
// GEMM, as Megatron's linear_qkv and its gated linear_fc1 are, and so are the local experts of a
// layer (grouped GEMM).
//
//   role                         work of a rank                     parameters
//   column, row, core attention, 1 / (t c)                          1 / t (biases of `row` whole)
//   inner
//   sequence (norm, add, router) 1 / c, with sequence parallelism   whole
//                                1 / (t c)
//   expert                       1 / (t c), even load               local experts' / et
//   embedding, output, loss      1 / (t c)                          rows 1 / t, padded to 128 t
//
// t tensor, c context, et expert tensor parallel sizes.
#pragma once

#include <cstdint>
#include <vector>

#include "models/megatron/parallel_ranks.h"
#include "models/nn/network.h"

namespace railyard::models {

enum class ShardRole : std::uint8_t {
  embedding,       // of the vocabulary
  sequence,        // every rank has all weights; with sequence parallelism a part of the tokens
  column,          // weight divided by its outputs
  core_attention,  // heads divided
  inner,           // elementwise between column and row
  row,             // weight divided by its inputs
  expert_column,
  expert_inner,
  expert_row,
  output,  // column-parallel logits
  loss     // vocabulary-parallel cross entropy
};

struct ParameterShard {
  std::uint32_t index = 0;    // in the network
  std::int64_t elements = 0;  // on this rank
  bool expert = false;
  bool sequence = false;  // with sequence parallelism its gradient is summed over the tp group
};

struct LayerShard {
  ShardRole role = ShardRole::sequence;
  std::int64_t block = -1;  // its transformer block; -1 before the first, the count behind the last
  Layer layer{};            // the work of this rank for one sample; has no parameters
  std::vector<ParameterShard> parameters{};
};

struct ShardedModel {
  std::vector<LayerShard> units;  // execution order
  std::int64_t blocks = 0;
  std::int64_t tokens = 0;         // of a sample
  std::int64_t hidden = 0;         // elements of a token between blocks
  std::int64_t key_width = 0;      // of K (and V), of the whole model
  std::int64_t experts = 0;        // of an MoE layer
  std::int64_t top_k = 0;          // experts per token
  bool learned_positions = false;  // their embedding stands between the vocabulary's and the blocks
  bool tied = false;               // output layer and embedding share their weight
};

// capacity_factor 0: dropless, else every expert computes ceil(tokens x top_k / experts x factor).
struct ShardOptions {
  ParallelSizes sizes;
  double capacity_factor = 0;
};

// Errors name the key of Megatron's argument that does not fit, or no key where the network is no
// transformer. Cost: O(layers).
Result<ShardedModel> shard(const NeuralNetwork& network, const ShardOptions& options);

}  // namespace railyard::models
