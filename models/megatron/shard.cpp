#include "models/megatron/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <set>

namespace railyard::models {
namespace {

// make_vocab_size_divisible_by of Megatron's arguments.
constexpr std::int64_t kVocabularyMultiple = 128;

struct NamedRole {
  std::string_view suffix;
  ShardRole role;
};
constexpr std::array kPlan{
    NamedRole{".q_proj", ShardRole::column},    NamedRole{".k_proj", ShardRole::column},
    NamedRole{".v_proj", ShardRole::column},    NamedRole{".o_proj", ShardRole::row},
    NamedRole{".gate_proj", ShardRole::column}, NamedRole{".up_proj", ShardRole::column},
    NamedRole{".down_proj", ShardRole::row},    NamedRole{".w1", ShardRole::column},
    NamedRole{".w3", ShardRole::column},        NamedRole{".w2", ShardRole::row},
    NamedRole{".c_attn", ShardRole::column},    NamedRole{".c_fc", ShardRole::column},
    NamedRole{".c_proj", ShardRole::row},       NamedRole{".gate_proj.swiglu", ShardRole::inner},
    NamedRole{".w1.swiglu", ShardRole::inner},  NamedRole{".gelu", ShardRole::inner},
    NamedRole{".rotary", ShardRole::inner},     NamedRole{"embed_tokens", ShardRole::embedding},
    NamedRole{"wte", ShardRole::embedding},     NamedRole{"lm_head", ShardRole::output},
    NamedRole{"loss", ShardRole::loss}};

ShardRole expert_role(ShardRole role) {
  switch (role) {
    case ShardRole::column: return ShardRole::expert_column;
    case ShardRole::row: return ShardRole::expert_row;
    default: return ShardRole::expert_inner;
  }
}

ShardRole role_of(const Layer& layer) {
  ShardRole role = ShardRole::sequence;
  if (layer.kind == LayerKind::attention) role = ShardRole::core_attention;
  const auto named = std::ranges::find_if(
      kPlan, [&](const NamedRole& entry) { return layer.name.ends_with(entry.suffix); });
  if (named != kPlan.end()) role = named->role;
  return layer.name.find(".experts.") == std::string::npos ? role : expert_role(role);
}

// The first part of a dotted name that is a number.
std::optional<std::int64_t> block_number(const std::string& name) {
  std::size_t at = 0;
  while (at < name.size()) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    const std::string_view part = std::string_view(name).substr(at, end - at);
    if (!part.empty() && part.size() < 9 &&
        std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; }))
      return std::stoll(std::string(part));
    at = end + 1;
  }
  return std::nullopt;
}

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// work x part / whole, rounded up so that little work stays work.
LayerWork divided(LayerWork work, double factor) {
  const auto scale = [&](std::int64_t& value) {
    value = static_cast<std::int64_t>(std::ceil(static_cast<double>(value) * factor));
  };
  const auto scale_flops = [&](Flops& value) {
    value =
        sim::flops(static_cast<std::int64_t>(std::ceil(static_cast<double>(value.raw()) * factor)));
  };
  scale_flops(work.forward_flops);
  scale_flops(work.dgrad_flops);
  scale_flops(work.wgrad_flops);
  for (std::int64_t* value : {&work.forward_elements, &work.dgrad_elements, &work.wgrad_elements})
    scale(*value);
  return work;
}

void add(LayerWork& sum, const LayerWork& more) {
  sum.forward_flops += more.forward_flops;
  sum.dgrad_flops += more.dgrad_flops;
  sum.wgrad_flops += more.wgrad_flops;
  sum.forward_elements += more.forward_elements;
  sum.dgrad_elements += more.dgrad_elements;
  sum.wgrad_elements += more.wgrad_elements;
  sum.weight_elements += more.weight_elements;
  sum.gradient_elements += more.gradient_elements;
}

class Sharding {
 public:
  Sharding(const NeuralNetwork& network, const ShardOptions& options)
      : network_(network), sizes_(options.sizes), factor_(options.capacity_factor) {}

  Result<ShardedModel> run() && {
    RAILYARD_TRY(find_shape());
    RAILYARD_TRY(check());
    for (const Layer& layer : network_.layers()) add_layer(layer);
    return std::move(model_);
  }

 private:
  // Sizes that the sharding needs, read off the layers.
  Result<void> find_shape() {
    std::set<std::int64_t> numbers;
    for (const Layer& layer : network_.layers()) {
      if (const auto number = block_number(layer.name)) numbers.insert(*number);
      if (layer.kind == LayerKind::norm) read_norm(layer);
      if (layer.name.ends_with("wpe")) model_.learned_positions = true;
      if (layer.name.ends_with(".k_proj")) model_.key_width = outputs(layer);
      if (layer.name.ends_with("lm_head"))
        model_.tied = std::ranges::any_of(layer.parameters, [&](std::uint32_t p) {
          return network_.parameters()[p].name.find("lm_head") == std::string::npos;
        });
      if (layer.name.ends_with(".w1") && block_number(layer.name) == 0) read_expert(layer);
    }
    model_.blocks = static_cast<std::int64_t>(numbers.size());
    if (model_.key_width == 0) model_.key_width = model_.hidden;
    const bool counted =
        !numbers.empty() && *numbers.begin() == 0 && *numbers.rbegin() + 1 == model_.blocks;
    if (!counted || model_.hidden == 0 || model_.tokens == 0)
      return sim::bad_input(fmt::format("{} is no transformer that can be cut: numbered blocks "
                                        "(layers.0, layers.1, ...) with norms of known size are "
                                        "expected",
                                        network_.name()),
                            "model");
    if (model_.experts > 0)
      model_.top_k = (top_k_rows_ * model_.experts + model_.tokens - 1) / model_.tokens;
    return {};
  }

  void read_norm(const Layer& layer) {
    if (layer.parameters.empty()) return;
    model_.hidden = network_.parameters()[layer.parameters.front()].elements;
    model_.tokens = layer.work.forward_elements / 2 / model_.hidden;
  }

  void read_expert(const Layer& layer) {
    ++model_.experts;
    const Parameter& weight = network_.parameters()[layer.parameters.front()];
    top_k_rows_ = layer.work.forward_flops.raw() / (2 * weight.elements);
  }

  [[nodiscard]] std::int64_t outputs(const Layer& layer) const {
    const Parameter& weight = network_.parameters()[layer.parameters.front()];
    return weight.shape.size() == 2 ? weight.shape[0] : model_.hidden;
  }

  Result<void> check() const {
    const auto divides = [](const char* key, std::int64_t part, const char* what,
                            std::int64_t whole) -> Result<void> {
      if (whole % part == 0) return {};
      return sim::bad_input(fmt::format("{} does not divide the {} {}", part, whole, what), key);
    };
    RAILYARD_TRY(
        divides("tensor_model_parallel_size", sizes_.tensor, "elements of a token", model_.hidden));
    RAILYARD_TRY(divides("tensor_model_parallel_size", sizes_.tensor, "elements of a key",
                         model_.key_width));
    const std::int64_t chunks = sizes_.pipeline * sizes_.virtual_pipeline;
    RAILYARD_TRY(divides(sizes_.virtual_pipeline > 1 ? "virtual_pipeline_model_parallel_size"
                                                     : "pipeline_model_parallel_size",
                         chunks, "transformer blocks", model_.blocks));
    if (sizes_.context > 1)
      RAILYARD_TRY(divides("context_parallel_size", 2 * sizes_.context,
                           "tokens of a sequence (2 x context parallel is what Megatron wants)",
                           model_.tokens));
    if (sizes_.sequence_parallel)
      RAILYARD_TRY(divides("sequence_parallel", sizes_.tensor, "tokens of a rank's sequence",
                           model_.tokens / sizes_.context));
    if (sizes_.expert > 1 && model_.experts == 0)
      return sim::bad_input(fmt::format("{} has no experts", network_.name()),
                            "expert_model_parallel_size");
    if (sizes_.expert > 1)
      RAILYARD_TRY(divides("expert_model_parallel_size", sizes_.expert, "experts", model_.experts));
    return check_measured();
  }

  [[nodiscard]] Result<void> check_measured() const {
    const bool measured = std::ranges::any_of(
        network_.layers(), [](const Layer& layer) { return layer.measured.has_value(); });
    if (measured && sizes_.tensor * sizes_.context > 1)
      return sim::bad_input(
          "layers with measured times are cut into stages only: the times of their "
          "parts were not measured",
          sizes_.tensor > 1 ? "tensor_model_parallel_size" : "context_parallel_size");
    return {};
  }

  void add_layer(const Layer& layer) {
    const ShardRole role = role_of(layer);
    LayerShard unit;
    unit.role = role;
    unit.block = block_of(layer);
    unit.layer = layer;
    unit.layer.parameters.clear();
    unit.layer.work = work_of(layer, role);
    const bool gone = role >= ShardRole::expert_column && role <= ShardRole::expert_row;
    for (const std::uint32_t p : layer.parameters) {
      if (gone && !local_expert(layer)) break;
      unit.parameters.push_back(parameter_of(p, role));
    }
    if (LayerShard* same = to_fuse(unit)) {
      add(same->layer.work, unit.layer.work);
      fuse_parameters(unit, *same);
      return;
    }
    blocks_done_ = std::max(blocks_done_, unit.block);
    model_.units.push_back(std::move(unit));
  }

  // One weight (and one bias) of a fused linear layer; every expert keeps its own.
  static void fuse_parameters(const LayerShard& unit, LayerShard& same) {
    const bool one =
        unit.role == ShardRole::column && unit.parameters.size() == same.parameters.size();
    for (std::size_t i = 0; i < unit.parameters.size(); ++i)
      if (one)
        same.parameters[i].elements += unit.parameters[i].elements;
      else
        same.parameters.push_back(unit.parameters[i]);
  }

  [[nodiscard]] std::int64_t block_of(const Layer& layer) const {
    if (const auto number = block_number(layer.name)) return *number;
    return blocks_done_ < 0 ? -1 : model_.blocks;
  }

  // The experts of this rank: the first ones, as rank 0 has them; the load is even.
  [[nodiscard]] bool local_expert(const Layer& layer) const {
    const std::size_t at = layer.name.find(".experts.") + 9;
    return std::stoll(layer.name.substr(at)) < model_.experts / sizes_.expert;
  }

  // A unit that the new one is one GEMM (or elementwise kernel) with.
  LayerShard* to_fuse(const LayerShard& unit) {
    const bool expert = unit.role >= ShardRole::expert_column && unit.role <= ShardRole::expert_row;
    if (unit.layer.measured || !(expert || unit.role == ShardRole::column)) return nullptr;
    for (auto other = model_.units.rbegin(); other != model_.units.rend(); ++other) {
      if (other->block != unit.block) return nullptr;
      if (other->role == unit.role) return &*other;
      if (!expert) return nullptr;  // column layers with something between them are two
    }
    return nullptr;
  }

  [[nodiscard]] LayerWork work_of(const Layer& layer, ShardRole role) const {
    const auto c = static_cast<double>(sizes_.context);
    const auto t = static_cast<double>(sizes_.tensor);
    const bool whole = role == ShardRole::sequence && !sizes_.sequence_parallel;
    LayerWork work = layer.work;
    if (layer.kind == LayerKind::gemm) work = gemm_work(layer, role);
    work = divided(work, 1 / (whole ? c : t * c) * expert_load(role));
    const auto weight = [&](std::int64_t elements) {
      if (role == ShardRole::sequence) return elements;
      if (role >= ShardRole::expert_column && role <= ShardRole::expert_row)
        return elements / (sizes_.expert * sizes_.expert_tensor);
      return elements / sizes_.tensor;
    };
    work.weight_elements = weight(work.weight_elements);
    work.gradient_elements = weight(work.gradient_elements);
    return work;
  }

  [[nodiscard]] double expert_load(ShardRole role) const {
    const bool expert = role >= ShardRole::expert_column && role <= ShardRole::expert_row;
    return expert && factor_ > 0 ? factor_ : 1.0;
  }

  // The side of a GEMM that tensor parallelism does not divide weighs t times as much in what a
  // rank reads and writes.
  [[nodiscard]] LayerWork gemm_work(const Layer& layer, ShardRole role) const {
    LayerWork work = layer.work;
    if (layer.parameters.empty() || role == ShardRole::sequence) return work;
    const Parameter& weight = network_.parameters()[layer.parameters.front()];
    if (weight.shape.size() != 2 || weight.elements == 0) return work;
    const std::int64_t rows = work.forward_flops.raw() / (2 * weight.elements);
    const bool expert = role == ShardRole::expert_column || role == ShardRole::expert_row;
    const std::int64_t t = expert ? sizes_.expert_tensor : sizes_.tensor;
    const bool by_inputs = role == ShardRole::row || role == ShardRole::expert_row;
    const std::int64_t more = (t - 1) * rows * (by_inputs ? weight.shape[0] : weight.shape[1]);
    work.forward_elements += more;
    work.dgrad_elements += more;
    work.wgrad_elements += more;
    return work;
  }

  [[nodiscard]] ParameterShard parameter_of(std::uint32_t index, ShardRole role) const {
    const Parameter& parameter = network_.parameters()[index];
    ParameterShard out{index, parameter.elements, false, false};
    const bool vector = parameter.shape.size() == 1;
    switch (role) {
      case ShardRole::sequence: out.sequence = true; break;
      case ShardRole::embedding:
      case ShardRole::output: out.elements = vocabulary_part(parameter); break;
      case ShardRole::row:
        if (!vector) out.elements /= sizes_.tensor;
        break;
      case ShardRole::expert_column:
      case ShardRole::expert_row:
      case ShardRole::expert_inner:
        out.expert = true;
        out.elements /= sizes_.expert_tensor;
        break;
      default: out.elements /= sizes_.tensor;
    }
    return out;
  }

  [[nodiscard]] std::int64_t vocabulary_part(const Parameter& parameter) const {
    if (parameter.shape.size() != 2) return parameter.elements / sizes_.tensor;
    const std::int64_t rows = round_up(parameter.shape[0], kVocabularyMultiple * sizes_.tensor);
    return rows / sizes_.tensor * parameter.shape[1];
  }

  const NeuralNetwork& network_;
  ParallelSizes sizes_;
  double factor_;
  ShardedModel model_;
  std::int64_t top_k_rows_ = 0;  // of one expert and sample
  std::int64_t blocks_done_ = -1;
};

}  // namespace

Result<ShardedModel> shard(const NeuralNetwork& network, const ShardOptions& options) {
  return Sharding(network, options).run();
}

}  // namespace railyard::models
