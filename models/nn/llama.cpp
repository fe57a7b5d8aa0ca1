// Llama 2 and 3, and Mixtral: RMS norms, rotary positions, grouped keys, gated MLP, no biases.
#include <fmt/format.h>

#include "models/nn/builder.h"
#include "models/nn/families.h"

namespace railyard::models {
namespace {

// Hugging Face registers attention, MLP, then both norms; they run norm first.
void register_layer(NetworkBuilder& net, const std::string& name, const LlamaShape& shape) {
  net.linear(name + ".self_attn.q_proj", shape.width, shape.width, false);
  net.linear(name + ".self_attn.k_proj", shape.width, shape.key_width, false);
  net.linear(name + ".self_attn.v_proj", shape.width, shape.key_width, false);
  net.linear(name + ".self_attn.o_proj", shape.width, shape.width, false);
  if (shape.experts == 0) {
    net.linear(name + ".mlp.gate_proj", shape.width, shape.hidden, false);
    net.linear(name + ".mlp.up_proj", shape.width, shape.hidden, false);
    net.linear(name + ".mlp.down_proj", shape.hidden, shape.width, false);
  } else {
    net.linear(name + ".block_sparse_moe.gate", shape.width, shape.experts, false);
  }
  for (std::int64_t expert = 0; expert < shape.experts; ++expert) {
    const std::string prefix = fmt::format("{}.block_sparse_moe.experts.{}", name, expert);
    net.linear(prefix + ".w1", shape.width, shape.hidden, false);
    net.linear(prefix + ".w2", shape.hidden, shape.width, false);
    net.linear(prefix + ".w3", shape.width, shape.hidden, false);
  }
  net.rms_norm(name + ".input_layernorm", shape.width);
  net.rms_norm(name + ".post_attention_layernorm", shape.width);
}

struct MlpNames {
  std::string gate;
  std::string up;
  std::string down;
};

void run_mlp(NetworkBuilder& net, const MlpNames& names, std::int64_t rows, std::int64_t hidden) {
  net.run_linear(names.gate, rows);
  net.run_linear(names.up, rows);
  net.run_elementwise(names.gate + ".swiglu", 2 * rows * hidden, rows * hidden);
  net.run_linear(names.down, rows);
}

// Every token goes to `experts_per_token` experts; the load is taken as even.
void run_experts(NetworkBuilder& net, const std::string& name, const LlamaShape& shape,
                 std::int64_t tokens) {
  const std::int64_t rows = (tokens * shape.experts_per_token + shape.experts - 1) / shape.experts;
  net.run_linear(name + ".block_sparse_moe.gate", tokens);
  for (std::int64_t expert = 0; expert < shape.experts; ++expert) {
    const std::string prefix = fmt::format("{}.block_sparse_moe.experts.{}", name, expert);
    run_mlp(net, {prefix + ".w1", prefix + ".w3", prefix + ".w2"}, rows, shape.hidden);
  }
  const std::int64_t routed = shape.experts_per_token * tokens * shape.width;
  net.run_elementwise(name + ".block_sparse_moe.combine", routed, tokens * shape.width);
}

void run_layer(NetworkBuilder& net, const std::string& name, const LlamaShape& shape,
               const AttentionShape& attention) {
  const std::int64_t tokens = attention.tokens;
  const std::int64_t elements = tokens * shape.width;
  net.run_norm(name + ".input_layernorm", elements);
  for (const char* part : {"q_proj", "k_proj", "v_proj"})
    net.run_linear(fmt::format("{}.self_attn.{}", name, part), tokens);
  const std::int64_t rotated = elements + tokens * shape.key_width;
  net.run_elementwise(name + ".self_attn.rotary", rotated, rotated);
  net.run_attention(name + ".self_attn", attention);
  net.run_linear(name + ".self_attn.o_proj", tokens);
  net.run_add(name + ".self_attn.add", elements);
  net.run_norm(name + ".post_attention_layernorm", elements);
  if (shape.experts > 0)
    run_experts(net, name, shape, tokens);
  else
    run_mlp(net, {name + ".mlp.gate_proj", name + ".mlp.up_proj", name + ".mlp.down_proj"}, tokens,
            shape.hidden);
  net.run_add(name + ".mlp.add", elements);
}

}  // namespace

NetworkSpec build_llama(const BuildContext& context, const LlamaShape& shape) {
  NetworkBuilder net(context.name, context.dtype);
  net.embedding("embed_tokens", shape.vocabulary, shape.width);
  const auto layer = [](std::int64_t i) { return fmt::format("layers.{}", i); };
  for (std::int64_t i = 0; i < shape.layers; ++i) register_layer(net, layer(i), shape);
  net.rms_norm("norm", shape.width);
  net.linear("lm_head", shape.width, shape.vocabulary, false);

  const AttentionShape attention{.tokens = context.size,
                                 .width = shape.width,
                                 .key_width = shape.key_width,
                                 .half = context.causal_half};
  net.run_embedding("embed_tokens", context.size);
  for (std::int64_t i = 0; i < shape.layers; ++i) run_layer(net, layer(i), shape, attention);
  net.run_norm("norm", context.size * shape.width);
  net.run_linear("lm_head", context.size);
  net.run_elementwise("loss", context.size * shape.vocabulary, context.size * shape.vocabulary);
  return std::move(net).spec();
}

}  // namespace railyard::models
