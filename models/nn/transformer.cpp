// BERT, GPT and ViT: post- and pre-norm blocks with biases everywhere.
#include <fmt/format.h>

#include "models/nn/builder.h"
#include "models/nn/families.h"

namespace railyard::models {
namespace {

// BERT pre-training predicts 20 of 128 or 80 of 512 tokens (max_predictions_per_seq).
std::int64_t masked_tokens(std::int64_t tokens) { return (tokens * 5 + 31) / 32; }

void register_bert_layer(NetworkBuilder& net, const std::string& name, std::int64_t width) {
  for (const char* part : {"attention.self.query", "attention.self.key", "attention.self.value",
                           "attention.output.dense"})
    net.linear(fmt::format("{}.{}", name, part), width, width);
  net.layer_norm(name + ".attention.output.LayerNorm", width);
  net.linear(name + ".intermediate.dense", width, 4 * width);
  net.linear(name + ".output.dense", 4 * width, width);
  net.layer_norm(name + ".output.LayerNorm", width);
}

void run_bert_layer(NetworkBuilder& net, const std::string& name, std::int64_t tokens,
                    std::int64_t width) {
  const std::int64_t elements = tokens * width;
  for (const char* part : {"query", "key", "value"})
    net.run_linear(fmt::format("{}.attention.self.{}", name, part), tokens);
  net.run_attention(name + ".attention.self",
                    {.tokens = tokens, .width = width, .key_width = width});
  net.run_linear(name + ".attention.output.dense", tokens);
  net.run_add(name + ".attention.output.add", elements);
  net.run_norm(name + ".attention.output.LayerNorm", elements);
  net.run_linear(name + ".intermediate.dense", tokens);
  net.run_elementwise(name + ".intermediate.gelu", 4 * elements, 4 * elements);
  net.run_linear(name + ".output.dense", tokens);
  net.run_add(name + ".output.add", elements);
  net.run_norm(name + ".output.LayerNorm", elements);
}

constexpr std::int64_t kBertVocabulary = 30522;

void register_bert_heads(NetworkBuilder& net, std::int64_t width) {
  net.parameter("cls.predictions.bias", {kBertVocabulary});
  net.linear("cls.predictions.transform.dense", width, width);
  net.layer_norm("cls.predictions.transform.LayerNorm", width);
  net.linear("cls.seq_relationship", width, 2);
}

void run_bert_heads(NetworkBuilder& net, std::int64_t tokens, std::int64_t width) {
  const std::int64_t rows = masked_tokens(tokens);
  net.run_linear("cls.predictions.transform.dense", rows);
  net.run_elementwise("cls.predictions.transform.gelu", rows * width, rows * width);
  net.run_norm("cls.predictions.transform.LayerNorm", rows * width);
  const Flops forward = sim::flops(2 * rows * width * kBertVocabulary);
  net.run({.name = "cls.predictions.decoder",
           .kind = LayerKind::gemm,
           .parameters = {"embeddings.word_embeddings.weight", "cls.predictions.bias"},
           .work = usual_work(LayerKind::gemm, forward, rows * width, rows * kBertVocabulary,
                              (width + 1) * kBertVocabulary)});
  net.run_linear("cls.seq_relationship", 1);
  net.run_elementwise("loss", rows * kBertVocabulary, rows * kBertVocabulary);
}

void register_gpt_block(NetworkBuilder& net, const std::string& name, std::int64_t width) {
  net.layer_norm(name + ".ln_1", width);
  net.linear(name + ".attn.c_attn", width, 3 * width);
  net.linear(name + ".attn.c_proj", width, width);
  net.layer_norm(name + ".ln_2", width);
  net.linear(name + ".mlp.c_fc", width, 4 * width);
  net.linear(name + ".mlp.c_proj", 4 * width, width);
}

void run_gpt_block(NetworkBuilder& net, const std::string& name, const AttentionShape& attention) {
  const std::int64_t tokens = attention.tokens;
  const std::int64_t elements = tokens * attention.width;
  net.run_norm(name + ".ln_1", elements);
  net.run_linear(name + ".attn.c_attn", tokens);
  net.run_attention(name + ".attn", attention);
  net.run_linear(name + ".attn.c_proj", tokens);
  net.run_add(name + ".attn.add", elements);
  net.run_norm(name + ".ln_2", elements);
  net.run_linear(name + ".mlp.c_fc", tokens);
  net.run_elementwise(name + ".mlp.gelu", 4 * elements, 4 * elements);
  net.run_linear(name + ".mlp.c_proj", tokens);
  net.run_add(name + ".mlp.add", elements);
}

void register_vit_layer(NetworkBuilder& net, const std::string& name, std::int64_t width) {
  net.layer_norm(name + ".ln_1", width);
  net.parameter(name + ".self_attention.in_proj_weight", {3 * width, width});
  net.parameter(name + ".self_attention.in_proj_bias", {3 * width});
  net.linear(name + ".self_attention.out_proj", width, width);
  net.layer_norm(name + ".ln_2", width);
  net.linear(name + ".mlp.0", width, 4 * width);
  net.linear(name + ".mlp.3", 4 * width, width);
}

void run_vit_layer(NetworkBuilder& net, const std::string& name, std::int64_t tokens,
                   std::int64_t width) {
  const std::int64_t elements = tokens * width;
  const std::int64_t weights = 3 * width * (width + 1);
  net.run_norm(name + ".ln_1", elements);
  net.run({.name = name + ".self_attention.in_proj",
           .kind = LayerKind::gemm,
           .parameters = {name + ".self_attention.in_proj_weight",
                          name + ".self_attention.in_proj_bias"},
           .work = usual_work(LayerKind::gemm, sim::flops(6 * tokens * width * width), elements,
                              3 * elements, weights)});
  net.run_attention(name + ".self_attention",
                    {.tokens = tokens, .width = width, .key_width = width});
  net.run_linear(name + ".self_attention.out_proj", tokens);
  net.run_add(name + ".self_attention.add", elements);
  net.run_norm(name + ".ln_2", elements);
  net.run_linear(name + ".mlp.0", tokens);
  net.run_elementwise(name + ".mlp.1", 4 * elements, 4 * elements);
  net.run_linear(name + ".mlp.3", tokens);
  net.run_add(name + ".mlp.add", elements);
}

// A learned tensor that joins the activations without arithmetic to speak of.
void run_learned(NetworkBuilder& net, const std::string& parameter, std::int64_t in,
                 std::int64_t out) {
  LayerWork work = usual_work(LayerKind::elementwise, {}, in, out, 0);
  std::int64_t elements = 1;
  for (const std::int64_t dimension : net.shape(parameter)) elements *= dimension;
  work.weight_elements = work.gradient_elements = elements;
  net.run(
      {.name = parameter, .kind = LayerKind::elementwise, .parameters = {parameter}, .work = work});
}

}  // namespace

NetworkSpec build_bert(const BuildContext& context, const BertShape& shape) {
  constexpr std::int64_t kPositions = 512;
  const std::int64_t elements = context.size * shape.width;
  NetworkBuilder net(context.name, context.dtype);
  net.embedding("embeddings.word_embeddings", kBertVocabulary, shape.width);
  net.embedding("embeddings.position_embeddings", kPositions, shape.width);
  net.embedding("embeddings.token_type_embeddings", 2, shape.width);
  net.layer_norm("embeddings.LayerNorm", shape.width);
  const auto layer = [](std::int64_t i) { return fmt::format("encoder.layer.{}", i); };
  for (std::int64_t i = 0; i < shape.layers; ++i) register_bert_layer(net, layer(i), shape.width);
  net.linear("pooler.dense", shape.width, shape.width);
  if (shape.pretraining) register_bert_heads(net, shape.width);

  // Run order differs from registration: the token types are added before the positions.
  for (const char* table : {"word_embeddings", "token_type_embeddings", "position_embeddings"})
    net.run_embedding(fmt::format("embeddings.{}", table), context.size);
  net.run_add("embeddings.add", elements);
  net.run_norm("embeddings.LayerNorm", elements);
  for (std::int64_t i = 0; i < shape.layers; ++i)
    run_bert_layer(net, layer(i), context.size, shape.width);
  net.run_linear("pooler.dense", 1);
  net.run_elementwise("pooler.tanh", shape.width, shape.width);
  if (shape.pretraining) run_bert_heads(net, context.size, shape.width);
  return std::move(net).spec();
}

NetworkSpec build_gpt(const BuildContext& context, const GptShape& shape) {
  constexpr std::int64_t kVocabulary = 50257;
  NetworkBuilder net(context.name, context.dtype);
  net.embedding("wte", kVocabulary, shape.width);
  net.embedding("wpe", shape.positions, shape.width);
  const auto block = [](std::int64_t i) { return fmt::format("h.{}", i); };
  for (std::int64_t i = 0; i < shape.layers; ++i) register_gpt_block(net, block(i), shape.width);
  net.layer_norm("ln_f", shape.width);

  const AttentionShape attention{.tokens = context.size,
                                 .width = shape.width,
                                 .key_width = shape.width,
                                 .half = context.causal_half};
  net.run_embedding("wte", context.size);
  net.run_embedding("wpe", context.size);
  net.run_add("embeddings.add", context.size * shape.width);
  for (std::int64_t i = 0; i < shape.layers; ++i) run_gpt_block(net, block(i), attention);
  net.run_norm("ln_f", context.size * shape.width);
  net.run_tied("lm_head", "wte.weight", context.size);
  net.run_elementwise("loss", context.size * kVocabulary, context.size * kVocabulary);
  return std::move(net).spec();
}

NetworkSpec build_vit_l_16(const BuildContext& context) {
  constexpr std::int64_t kLayers = 24;
  constexpr std::int64_t kWidth = 1024;
  constexpr std::int64_t kPatch = 16;
  constexpr std::int64_t kClasses = 1000;
  const std::int64_t patches = (context.size / kPatch) * (context.size / kPatch);
  const std::int64_t tokens = patches + 1;  // the class token
  NetworkBuilder net(context.name, context.dtype);
  net.parameter("class_token", {1, 1, kWidth});
  net.conv("conv_proj", 3, kWidth, kPatch, true);
  net.parameter("encoder.pos_embedding", {1, tokens, kWidth});
  const auto layer = [](std::int64_t i) {
    return fmt::format("encoder.layers.encoder_layer_{}", i);
  };
  for (std::int64_t i = 0; i < kLayers; ++i) register_vit_layer(net, layer(i), kWidth);
  net.layer_norm("encoder.ln", kWidth);
  net.linear("heads.head", kWidth, kClasses);

  net.run_conv("conv_proj", {3, context.size, context.size}, {kPatch, kPatch, 0});
  run_learned(net, "class_token", patches * kWidth, tokens * kWidth);
  run_learned(net, "encoder.pos_embedding", tokens * kWidth, tokens * kWidth);
  for (std::int64_t i = 0; i < kLayers; ++i) run_vit_layer(net, layer(i), tokens, kWidth);
  net.run_norm("encoder.ln", tokens * kWidth);
  net.run_linear("heads.head", 1);
  net.run_elementwise("loss", kClasses, kClasses);
  return std::move(net).spec();
}

}  // namespace railyard::models
