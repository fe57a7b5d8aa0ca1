#include "models/kv/kv_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/text.h"

namespace railyard::models {
namespace {

struct Entry {
  std::string_view name;
  std::int64_t layers, width, heads, kv_heads, head_dim, latent_width;
  std::int64_t parameters, active;
  std::int64_t experts, experts_per_token;
};

// From the models' config.json and cards. DeepSeek: kv_lora_rank 512 + rope 64.
constexpr std::array kModels{
    Entry{"llama2-7b", 32, 4096, 32, 32, 128, 0, 6'738'415'616, 6'738'415'616, 0, 0},
    Entry{"llama2-70b", 80, 8192, 64, 8, 128, 0, 68'976'648'192, 68'976'648'192, 0, 0},
    Entry{"llama3-8b", 32, 4096, 32, 8, 128, 0, 8'030'261'248, 8'030'261'248, 0, 0},
    Entry{"llama3-70b", 80, 8192, 64, 8, 128, 0, 70'553'706'496, 70'553'706'496, 0, 0},
    Entry{"llama3-405b", 126, 16384, 128, 8, 128, 0, 405'853'388'800, 405'853'388'800, 0, 0},
    Entry{"mixtral-8x7b", 32, 4096, 32, 8, 128, 0, 46'702'792'704, 12'879'925'248, 8, 2},
    Entry{"qwen3-8b", 36, 4096, 32, 8, 128, 0, 8'190'735'360, 8'190'735'360, 0, 0},
    Entry{"qwen3-235b", 94, 4096, 64, 4, 128, 0, 235'093'634'560, 22'000'000'000, 128, 8},
    Entry{"deepseek-v3", 61, 7168, 128, 128, 128, 576, 671'026'404'352, 37'000'000'000, 256, 8}};

}  // namespace

sim::Result<KvModel> kv_model(std::string_view name) {
  const auto found = std::ranges::find(kModels, name, &Entry::name);
  if (found == kModels.end()) {
    const auto names = kv_model_names();
    return sim::bad_input(fmt::format("no model '{}' is known{} (known: {})", name,
                                      sim::did_you_mean(name, names), fmt::join(names, ", ")),
                          "model");
  }
  return KvModel{std::string(found->name),
                 found->layers,
                 found->width,
                 found->heads,
                 found->kv_heads,
                 found->head_dim,
                 found->latent_width,
                 found->parameters,
                 found->active,
                 found->experts,
                 found->experts_per_token};
}

std::vector<std::string_view> kv_model_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kModels) names.push_back(entry.name);
  return names;
}

sim::Bytes kv_bytes_per_token(const KvModel& model, std::int64_t tensor_parallel,
                              std::int64_t element_size) {
  if (model.latent_width > 0) return sim::bytes(model.layers * model.latent_width * element_size);
  const std::int64_t heads = std::max<std::int64_t>(model.kv_heads / tensor_parallel, 1);
  return sim::bytes(2 * model.layers * heads * model.head_dim * element_size);
}

std::int64_t kv_regions(const KvModel& model) {
  return model.latent_width > 0 ? model.layers : 2 * model.layers;
}

std::int64_t blocks_of(std::int64_t tokens, std::int64_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

std::vector<KvPiece> kv_pieces(const KvModel& model, std::int64_t prefill_ranks,
                               std::int64_t decode_ranks, std::int64_t element_size) {
  std::vector<KvPiece> pieces;
  if (model.latent_width > 0) {
    for (std::int64_t to = 0; to < decode_ranks; ++to)
      pieces.push_back({static_cast<std::uint32_t>(to % prefill_ranks),
                        static_cast<std::uint32_t>(to),
                        sim::bytes(model.latent_width * element_size), true});
    return pieces;
  }
  const std::int64_t heads = model.kv_heads;
  const std::int64_t held = std::max<std::int64_t>(heads / decode_ranks, 1);
  const bool whole = held == std::max<std::int64_t>(heads / prefill_ranks, 1);
  const std::int64_t copies = std::max<std::int64_t>(prefill_ranks / heads, 1);
  for (std::int64_t to = 0; to < decode_ranks; ++to) {
    const std::int64_t first = to * heads / decode_ranks;
    for (std::int64_t h = first; h < first + held; ++h) {
      const auto from = static_cast<std::uint32_t>(h * prefill_ranks / heads + to % copies);
      const bool more = h > first && pieces.back().from == from;
      if (!more) pieces.push_back({from, static_cast<std::uint32_t>(to), {}, whole});
      pieces.back().per_token += sim::bytes(model.head_dim * element_size);
    }
  }
  return pieces;
}

double prefill_flops(const KvModel& model, std::int64_t tokens) {
  const auto s = static_cast<double>(tokens);
  const auto inner = static_cast<double>(model.layers * model.heads * model.head_dim);
  return 2 * static_cast<double>(model.active_parameters) * s + 2 * inner * s * s;
}

double decode_flops(const KvModel& model, std::int64_t sequences, std::int64_t cached_tokens) {
  const auto inner = static_cast<double>(model.layers * model.heads * model.head_dim);
  return 2 * static_cast<double>(model.active_parameters) * static_cast<double>(sequences) +
         4 * inner * static_cast<double>(cached_tokens);
}

double touched_parameters(const KvModel& model, std::int64_t tokens) {
  const auto all = static_cast<double>(model.parameters);
  if (model.experts == 0) return all;
  // active = shared + k/E of the experts' parameters.
  const double share =
      static_cast<double>(model.experts_per_token) / static_cast<double>(model.experts);
  const double routed = (all - static_cast<double>(model.active_parameters)) / (1 - share);
  const double missed = std::pow(1 - share, static_cast<double>(tokens));
  return all - routed * missed;
}

sim::Result<void> check_tensor_parallel(const KvModel& model, std::int64_t tensor_parallel) {
  if (model.heads % tensor_parallel != 0)
    return sim::bad_input(
        fmt::format("{} query heads do not divide over {} ranks", model.heads, tensor_parallel),
        "tensor_parallel");
  const bool even = model.kv_heads % tensor_parallel == 0 || tensor_parallel % model.kv_heads == 0;
  if (model.latent_width == 0 && !even)
    return sim::bad_input(
        fmt::format("{} KV heads can neither be divided over {} ranks nor replicated evenly",
                    model.kv_heads, tensor_parallel),
        "tensor_parallel");
  return {};
}

}  // namespace railyard::models
