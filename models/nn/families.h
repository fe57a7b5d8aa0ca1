// Builders of the model families in the catalogue. Each returns the specification of one network;
// registration orders are those of torchvision, Hugging Face transformers and the DLRM reference.
// Dropout, masks and position-id buffers are left out.
#pragma once

#include <string>

#include "models/nn/network.h"

namespace railyard::models {

struct BuildContext {
  std::string name{};
  std::int64_t size = 0;  // tokens per sequence, or pixels per image side
  Dtype dtype = Dtype::fp32;
  bool causal_half = false;
};

NetworkSpec build_resnet18(const BuildContext& context);
NetworkSpec build_resnet50(const BuildContext& context);  // v1.5: the stride sits on the 3x3
NetworkSpec build_vgg16(const BuildContext& context);

struct BertShape {
  std::int64_t layers = 12;
  std::int64_t width = 768;
  bool pretraining = false;  // + masked-token head (decoder tied) and next-sentence head
};
NetworkSpec build_bert(const BuildContext& context, const BertShape& shape);

struct GptShape {
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t positions = 1024;
};
NetworkSpec build_gpt(const BuildContext& context, const GptShape& shape);

struct LlamaShape {
  std::int64_t layers = 32;
  std::int64_t width = 4096;
  std::int64_t key_width = 4096;
  std::int64_t hidden = 11008;
  std::int64_t vocabulary = 32000;
  std::int64_t experts = 0;  // 0: one dense MLP; else Mixtral's routed experts
  std::int64_t experts_per_token = 2;
};
NetworkSpec build_llama(const BuildContext& context, const LlamaShape& shape);

NetworkSpec build_vit_l_16(const BuildContext& context);
NetworkSpec build_dlrm(const BuildContext& context);

}  // namespace railyard::models
