// What a stage 3 program consists of, from the network and the options.
#include <fmt/format.h>

#include <algorithm>

#include "models/zero/buckets.h"
#include "models/zero/optimizer_step.h"
#include "models/zero/stage3.h"

namespace railyard::models {
namespace {

using sim::Collective;

constexpr std::int64_t kQuantizedGroup = 8000;  // CUDAQuantizer.target_group_size, elements
constexpr std::int64_t kScale = 4;              // bytes of a scale

std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

struct Builder {
  const NeuralNetwork& network;
  const ZeroOptions& options;
  const KernelModel& kernels;
  sim::Trace& trace;
  Stage3Program& program;

  [[nodiscard]] std::int64_t param() const { return element_size(options.param_dtype); }
  [[nodiscard]] std::int64_t sent() const { return element_size(options.communication_data_type); }
  [[nodiscard]] std::int64_t elements(std::uint32_t p) const {
    return network.parameters()[p].elements;
  }
  // ds_tensor.ds_numel: a rank's part, padding included.
  [[nodiscard]] std::int64_t part(std::uint32_t p) const {
    return ceil_div(elements(p), options.data_parallel);
  }
  [[nodiscard]] sim::Kernel move(std::int64_t size, const std::string& name) const {
    return named(kernels.move(sim::bytes(size)), trace.name(name));
  }
  [[nodiscard]] NamedCall call(const GroupCall& what, const std::string& name) const {
    return {program.calls.add(what),
            trace.name(fmt::format("{} {}", sim::to_text(what.collective), name))};
  }
  // "fc1.weight", "fc1.weight + 3".
  [[nodiscard]] std::string name_of(const std::vector<std::uint32_t>& parameters) const {
    const std::string& first = network.parameters()[parameters.front()].name;
    return parameters.size() == 1 ? first : fmt::format("{} + {}", first, parameters.size() - 1);
  }
  [[nodiscard]] std::int64_t copy_bytes(std::uint32_t p) const {
    return part(p) * options.data_parallel / options.zero_hpz_partition_size;
  }

  [[nodiscard]] Stage3Program::Gather gather(const GatherSet& set) const;
  [[nodiscard]] Stage3Program::PassPlan pass(const TracedModel& model, const TracePlan& plan) const;
  void add_arrivals(const std::vector<ZeroBucket>& buckets) const;
  void add_bucket(const ZeroBucket& bucket, std::size_t number) const;
  void exchange_quantized(std::uint32_t p, Stage3Program::Bucket& out) const;
  void scatter(const std::vector<std::uint32_t>& parameters, const std::string& name,
               Stage3Program::Bucket& out) const;
};

Stage3Program::Gather Builder::gather(const GatherSet& set) const {
  Stage3Program::Gather out;
  const std::string name = name_of(set.parameters);
  const std::uint32_t group = set.secondary ? kSecondaryGroup : kDataParallelGroup;
  std::int64_t shard = 0;
  std::int64_t whole = 0;
  for (const std::uint32_t p : set.parameters) {
    shard += set.secondary ? copy_bytes(p) : part(p);
    whole += elements(p);
  }
  const bool together = set.parameters.size() > 1;
  if (options.zero_quantized_weights) {
    const std::int64_t scales = ceil_div(shard, kQuantizedGroup);
    out.before.push_back(move(shard * (param() + 1), "quantize " + name));
    out.calls.push_back(call({group, Collective::all_gather, sim::bytes(shard), 1}, name));
    out.calls.push_back(call({group, Collective::all_gather, sim::bytes(scales * kScale), kScale},
                             "scales " + name));
    out.after.push_back(move(whole * (1 + param()), "dequantize " + name));
    return out;
  }
  if (together) out.before.push_back(move(2 * shard * param(), "copy-in " + name));
  out.calls.push_back(
      call({group, Collective::all_gather, sim::bytes(shard * param()), param()}, name));
  if (together) out.after.push_back(move(2 * whole * param(), "copy-out " + name));
  return out;
}

Stage3Program::PassPlan Builder::pass(const TracedModel& model, const TracePlan& plan) const {
  Stage3Program::PassPlan out;
  std::vector<std::uint32_t> gather_of(model.elements.size(), 0);
  const auto add = [&](const std::vector<GatherSet>& sets, std::vector<std::uint32_t>& indices) {
    for (const GatherSet& set : sets) {
      for (const std::uint32_t p : set.parameters)
        gather_of[p] = static_cast<std::uint32_t>(out.gathers.size());
      indices.push_back(static_cast<std::uint32_t>(out.gathers.size()));
      out.gathers.push_back(gather(set));
    }
  };
  const std::vector<Layer>& layers = network.layers();
  for (std::size_t m = 0; m < plan.steps.size(); ++m) {
    const FetchStep& step = plan.steps[m];
    Stage3Program::Module& module = out.modules.emplace_back();
    add(step.fetch, module.fetch);
    for (const std::uint32_t p : step.waits) module.waits.push_back(gather_of[p]);
    add(step.prefetch, module.prefetch);
    if (m < model.forward_modules)
      add_forward(layers[m], options.layers, kernels, trace, module.kernels);
    else
      add_backward(layers[plan.steps.size() - 1 - m], options.layers, kernels, trace,
                   module.kernels);
    for (const std::uint32_t p : step.keeps_secondary)
      module.after.push_back(
          move(2 * copy_bytes(p) * param(), "second copy " + network.parameters()[p].name));
  }
  return out;
}

void Builder::add_arrivals(const std::vector<ZeroBucket>& buckets) const {
  const std::size_t layers = network.layers().size();
  program.arrivals.resize(layers);
  std::vector<std::uint32_t> layer_of(network.parameters().size(), 0);
  for (const GradientOrder::Arrival& arrival : gradient_order(network).arrivals)
    layer_of[arrival.parameter] = arrival.layer;
  for (std::uint32_t b = 0; b < buckets.size(); ++b)
    for (const std::uint32_t p : buckets[b].parameters) {
      Stage3Program::Arrival arrival;
      if (options.contiguous_gradients && elements(p) <= options.reduce_bucket_size)
        arrival.copy = move(2 * elements(p) * param(), "to bucket " + network.parameters()[p].name);
      if (b > 0 && p == buckets[b].parameters.front()) arrival.reduces = b - 1;
      program.arrivals[layers - 1 - layer_of[p]].push_back(arrival);
    }
}

// all_to_all_quant_reduce of one matrix.
void Builder::exchange_quantized(std::uint32_t p, Stage3Program::Bucket& out) const {
  const std::string& name = network.parameters()[p].name;
  const std::int64_t bytes = elements(p) / 2;  // int4
  const std::int64_t local = options.ranks_per_node;
  out.before.push_back(move(elements(p) * sent() + bytes, "quantize gradient " + name));
  out.reduce.push_back(call({kIntraNodeGroup, Collective::all_to_all, sim::bytes(bytes), 1}, name));
  if (options.data_parallel > local)
    out.reduce.push_back(
        call({kInterNodeGroup, Collective::all_to_all, sim::bytes(bytes / local), 1}, name));
  out.after.push_back(move(bytes + part(p) * param(), "dequantize gradient " + name));
}

// reduce_scatter_coalesced.
void Builder::scatter(const std::vector<std::uint32_t>& parameters, const std::string& name,
                      Stage3Program::Bucket& out) const {
  std::int64_t shard = 0;
  for (const std::uint32_t p : parameters) shard += part(p);
  const std::int64_t padded = shard * options.data_parallel;
  if (parameters.size() > 1 || elements(parameters.front()) % options.data_parallel != 0)
    out.before.push_back(move(2 * padded * sent(), "interleave " + name));
  out.before.push_back(move(2 * padded * sent(), "divide " + name));
  out.reduce.push_back(call(
      {kDataParallelGroup, Collective::reduce_scatter, sim::bytes(shard * sent()), sent()}, name));
}

void Builder::add_bucket(const ZeroBucket& bucket, std::size_t number) const {
  const std::string name = fmt::format("bucket {}", number);
  Stage3Program::Bucket& out = program.buckets.emplace_back();
  std::int64_t shard = 0;
  for (const std::uint32_t p : bucket.parameters) shard += part(p);
  if (options.communication_data_type != options.param_dtype)
    out.before.push_back(move(bucket.elements * (param() + sent()), "cast " + name));
  if (!options.reduce_scatter) {
    out.before.push_back(move(2 * bucket.elements * sent(), "divide " + name));
    out.reduce.push_back(call(
        {kDataParallelGroup, Collective::all_reduce, sim::bytes(bucket.elements * sent()), sent()},
        name));
  } else {
    std::vector<std::uint32_t> plain;
    for (const std::uint32_t p : bucket.parameters) {
      const bool matrix = network.parameters()[p].shape.size() > 1;
      if (options.zero_quantized_gradients && matrix &&
          elements(p) % (2 * options.data_parallel) == 0)
        exchange_quantized(p, out);
      else if (options.zero_quantized_gradients)
        scatter({p}, network.parameters()[p].name, out);
      else
        plain.push_back(p);
    }
    if (!plain.empty()) scatter(plain, name, out);
  }
  out.after.push_back(move(shard * (sent() + param()), "to partition " + name));
  if (options.accumulation > 1) out.accumulate = move(3 * shard * param(), "accumulate " + name);
}

TracedModel traced_model(const NeuralNetwork& network, const ZeroOptions& options) {
  TracedModel model;
  for (const Parameter& parameter : network.parameters()) {
    model.elements.push_back(parameter.elements);
    model.persistent.push_back(parameter.elements <= options.stage3_param_persistence_threshold);
  }
  for (const Layer& layer : network.layers()) {
    std::vector<std::uint32_t> uses = layer.parameters;
    std::ranges::sort(uses);
    uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
    model.modules.push_back(std::move(uses));
  }
  model.forward_modules = model.modules.size();
  for (std::size_t m = model.forward_modules; m-- > 0;) model.modules.push_back(model.modules[m]);
  return model;
}

std::array<TracePlan, 3> plans_of(const TracedModel& model, const ZeroOptions& options) {
  const TraceLimits limits{options.stage3_prefetch_bucket_size, options.stage3_max_live_parameters,
                           options.stage3_max_reuse_distance};
  const bool secondary = options.zero_hpz_partition_size > 1;
  std::array<TracePlan, 3> plans;
  std::vector<bool> copies(model.elements.size(), false);
  plans[0] = plan_trace(model, limits, Pass::recording, secondary, copies);
  copies.assign(copies.size(), false);
  plans[1] = plan_trace(model, limits, Pass::first, secondary, copies);
  plans[2] = plan_trace(model, limits, Pass::later, secondary, copies);
  return plans;
}

// _create_fp16_sub_groups: a rank's elements of each, and its tensors.
std::vector<std::int64_t> sub_groups(const Builder& builder) {
  std::vector<std::int64_t> groups{0};
  for (const std::uint32_t p : trained_parameters(builder.network)) {
    if (groups.back() >= builder.options.sub_group_size) groups.push_back(0);
    groups.back() += builder.part(p);
  }
  return groups;
}

}  // namespace

Result<Stage3Program> build_stage3_program(const NeuralNetwork& network, const ZeroOptions& options,
                                           const KernelModel& kernels, sim::Trace& trace) {
  RAILYARD_TRY(check_batch(network, options.layers.samples));
  Stage3Program program;
  program.options = options;
  const Builder builder{network, options, kernels, trace, program};
  const TracedModel model = traced_model(network, options);
  const std::array<TracePlan, 3> plans = plans_of(model, options);
  for (std::size_t pass = 0; pass < plans.size(); ++pass)
    program.passes[pass] = builder.pass(model, plans[pass]);
  program.forward_modules = model.forward_modules;
  std::vector<std::uint32_t> order;
  for (const GradientOrder::Arrival& arrival : gradient_order(network).arrivals)
    order.push_back(arrival.parameter);
  const std::vector<ZeroBucket> buckets = zero_buckets(network, order, options.reduce_bucket_size);
  builder.add_arrivals(buckets);
  for (std::size_t b = 0; b < buckets.size(); ++b) builder.add_bucket(buckets[b], b);
  const OptimizerStep step = optimizer_step(sub_groups(builder), 1, options, kernels, trace);
  program.before_norm = step.before_norm;
  program.optimizer = step.optimizer;
  const GroupCall one{kDataParallelGroup, Collective::all_reduce, sim::bytes(4), 4};
  program.norm = builder.call(one, "gradient norm");
  if (options.check_overflow) program.overflow = builder.call(one, "overflow");
  for (std::uint32_t p = 0; p < model.persistent.size(); ++p)
    if (model.persistent[p])
      program.persistent.push_back(
          builder.call({kDataParallelGroup, Collective::all_gather,
                        sim::bytes(builder.part(p) * builder.param()), builder.param()},
                       network.parameters()[p].name));
  return program;
}

ZeroMemory stage3_memory(const NeuralNetwork& network, const ZeroOptions& options) {
  ZeroMemory memory;
  const TracedModel model = traced_model(network, options);
  const auto param = static_cast<double>(element_size(options.param_dtype));
  double owned = 0;
  double persistent = 0;
  for (std::size_t p = 0; p < model.elements.size(); ++p) {
    owned += static_cast<double>(ceil_div(model.elements[p], options.data_parallel));
    if (model.persistent[p]) persistent += static_cast<double>(model.elements[p]);
  }
  memory.parameters = owned * param;
  if (options.zero_hpz_partition_size > 1)
    memory.parameters += owned * static_cast<double>(options.data_parallel) /
                         static_cast<double>(options.zero_hpz_partition_size) * param;
  memory.gathered =
      (static_cast<double>(plans_of(model, options)[1].most_live) + persistent) * param;
  memory.gradients = owned * param;
  memory.optimizer = owned * 4 * (options.optimizer_states + 1);
  if (options.contiguous_gradients)
    memory.buckets = static_cast<double>(options.reduce_bucket_size) * param;
  return memory;
}

}  // namespace railyard::models
