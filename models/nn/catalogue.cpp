#include "models/nn/catalogue.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "models/nn/families.h"

namespace railyard::models {
namespace {

using sim::bad_input;

// 512 Ki tokens keep the largest model's training FLOPs per sequence below 2^63.
constexpr std::int64_t kLongestSequence = 524'288;
constexpr std::int64_t kSmallestImage = 32;
constexpr std::int64_t kLargestImage = 8'192;
constexpr std::int64_t kImageNetSide = 224;

enum class Input : std::uint8_t { image, patches, learned_positions, rotary, records };

struct Entry {
  std::string_view name;
  std::string_view summary;
  Input input;
  std::int64_t size;  // default; with learned positions also the largest
  NetworkSpec (*build)(const BuildContext&);
};

constexpr std::array kModels{
    Entry{"resnet18", "ResNet-18", Input::image, kImageNetSide, build_resnet18},
    Entry{"resnet50", "ResNet-50 v1.5", Input::image, kImageNetSide, build_resnet50},
    Entry{"vgg16", "VGG-16", Input::image, kImageNetSide, build_vgg16},
    Entry{"vit-l-16", "ViT-L/16", Input::patches, kImageNetSide, build_vit_l_16},
    Entry{"bert-base", "BERT-base with pooler", Input::learned_positions, 512,
          [](const BuildContext& c) { return build_bert(c, {.layers = 12, .width = 768}); }},
    Entry{"bert-large", "BERT-large with pooler", Input::learned_positions, 512,
          [](const BuildContext& c) { return build_bert(c, {.layers = 24, .width = 1024}); }},
    Entry{"bert-base-pretraining", "BERT-base with pre-training heads", Input::learned_positions,
          512,
          [](const BuildContext& c) {
            return build_bert(c, {.layers = 12, .width = 768, .pretraining = true});
          }},
    Entry{"bert-large-pretraining", "BERT-large with pre-training heads", Input::learned_positions,
          512,
          [](const BuildContext& c) {
            return build_bert(c, {.layers = 24, .width = 1024, .pretraining = true});
          }},
    Entry{"gpt2", "GPT-2 small, 124 M", Input::learned_positions, 1024,
          [](const BuildContext& c) { return build_gpt(c, {.layers = 12, .width = 768}); }},
    Entry{"gpt2-medium", "GPT-2 medium, 355 M", Input::learned_positions, 1024,
          [](const BuildContext& c) { return build_gpt(c, {.layers = 24, .width = 1024}); }},
    Entry{"gpt2-large", "GPT-2 large, 774 M", Input::learned_positions, 1024,
          [](const BuildContext& c) { return build_gpt(c, {.layers = 36, .width = 1280}); }},
    Entry{"gpt2-xl", "GPT-2 XL, 1.56 G", Input::learned_positions, 1024,
          [](const BuildContext& c) { return build_gpt(c, {.layers = 48, .width = 1600}); }},
    Entry{"gpt3-175b", "GPT-3 175B", Input::learned_positions, 2048,
          [](const BuildContext& c) {
            return build_gpt(c, {.layers = 96, .width = 12288, .positions = 2048});
          }},
    Entry{"llama2-7b", "Llama 2 7B", Input::rotary, 4096,
          [](const BuildContext& c) { return build_llama(c, {}); }},
    Entry{"llama2-70b", "Llama 2 70B", Input::rotary, 4096,
          [](const BuildContext& c) {
            return build_llama(c,
                               {.layers = 80, .width = 8192, .key_width = 1024, .hidden = 28672});
          }},
    Entry{"llama3-8b", "Llama 3 8B", Input::rotary, 8192,
          [](const BuildContext& c) {
            return build_llama(c, {.key_width = 1024, .hidden = 14336, .vocabulary = 128256});
          }},
    Entry{"llama3-70b", "Llama 3 70B", Input::rotary, 8192,
          [](const BuildContext& c) {
            return build_llama(c, {.layers = 80,
                                   .width = 8192,
                                   .key_width = 1024,
                                   .hidden = 28672,
                                   .vocabulary = 128256});
          }},
    Entry{"llama3-405b", "Llama 3 405B", Input::rotary, 8192,
          [](const BuildContext& c) {
            return build_llama(c, {.layers = 126,
                                   .width = 16384,
                                   .key_width = 1024,
                                   .hidden = 53248,
                                   .vocabulary = 128256});
          }},
    Entry{"mixtral-8x7b", "Mixtral 8x7B, 2 of 8 experts per token", Input::rotary, 4096,
          [](const BuildContext& c) {
            return build_llama(c, {.key_width = 1024, .hidden = 14336, .experts = 8});
          }},
    Entry{"dlrm", "DLRM of MLPerf training, 26 sparse tables", Input::records, 0, build_dlrm},
};

Result<std::int64_t> in_range(std::int64_t value, std::int64_t low, std::int64_t high,
                              const char* what) {
  if (value < low || value > high)
    return bad_input(fmt::format("{} {} is outside {}..{}", what, value, low, high));
  return value;
}

Result<std::int64_t> input_size(const Entry& entry, const ModelOptions& options) {
  const bool is_image = entry.input == Input::image || entry.input == Input::patches;
  const bool is_sequence = entry.input == Input::learned_positions || entry.input == Input::rotary;
  if (options.image_size && !is_image)
    return bad_input(fmt::format("model '{}' has no image size", entry.name));
  if (options.sequence_length && !is_sequence)
    return bad_input(fmt::format("model '{}' has no sequence length", entry.name));
  if (is_image) {
    const std::int64_t size = options.image_size.value_or(entry.size);
    if (entry.input == Input::patches && size % 16 != 0)
      return bad_input(fmt::format("image size {} is not a multiple of the patch size 16", size));
    return in_range(size, kSmallestImage, kLargestImage, "image size");
  }
  if (!is_sequence) return std::int64_t{0};
  const std::int64_t longest =
      entry.input == Input::learned_positions ? entry.size : kLongestSequence;
  return in_range(options.sequence_length.value_or(entry.size), 1, longest, "sequence length");
}

}  // namespace

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kModels) names.push_back(entry.name);
  return names;
}

std::vector<ModelDescription> model_descriptions() {
  std::vector<ModelDescription> descriptions;
  for (const Entry& entry : kModels)
    descriptions.push_back({.name = entry.name, .summary = entry.summary});
  return descriptions;
}

Result<NeuralNetwork> build_model(std::string_view name, const ModelOptions& options) {
  const auto* const entry = std::ranges::find_if(
      kModels, [&](const Entry& e) { return sim::equal_ignoring_case(e.name, name); });
  if (entry == kModels.end()) {
    const std::vector<std::string_view> names = model_names();
    return bad_input(fmt::format("unknown model '{}'{} (one of: {})", name,
                                 sim::did_you_mean(name, names), fmt::join(names, ", ")));
  }
  RAILYARD_ASSIGN(const std::int64_t size, input_size(*entry, options));
  return validate(entry->build({.name = std::string(entry->name),
                                .size = size,
                                .dtype = options.parameter_dtype,
                                .causal_half = options.causal_half}));
}

}  // namespace railyard::models
