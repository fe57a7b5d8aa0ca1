// kv: disaggregated prefill and decode.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/compute/kernels.h"
#include "models/kv/serving_costs.h"
#include "scenarios/faults.h"
#include "scenarios/kv_beside.h"
#include "scenarios/kv_links.h"
#include "scenarios/kv_reductions.h"
#include "scenarios/kv_report.h"
#include "scenarios/where.h"
#include "scenarios/workloads.h"

namespace railyard::scenarios {
namespace {

constexpr std::string_view kPrefillGroup = "kv.prefill tensor parallel";
constexpr std::string_view kDecodeGroup = "kv.decode tensor parallel";

std::vector<std::uint32_t> ranks_of(const KvPoolSpec& pool, std::uint32_t instance) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t r = 0; r < pool.tensor_parallel; ++r)
    ranks.push_back(pool.first_rank + instance * pool.tensor_parallel + r);
  return ranks;
}

sim::Bytes token_bytes(const KvSpec& spec, const KvPoolSpec& pool) {
  return models::kv_bytes_per_token(spec.model, pool.tensor_parallel,
                                    models::element_size(spec.dtype));
}

// Blocks of KV cache that fit beside the weights; at least those of the longest request.
Result<std::int64_t> blocks_of_pool(const KvSpec& spec, const KvPoolSpec& pool, const char* name,
                                    std::int64_t longest, sim::Bytes hbm) {
  const double weights = static_cast<double>(spec.model.parameters) *
                         static_cast<double>(models::element_size(spec.dtype)) /
                         pool.tensor_parallel;
  const double room = static_cast<double>(hbm.raw()) * spec.memory_utilization - weights;
  const auto per_token = static_cast<double>(token_bytes(spec, pool).raw());
  const double block = per_token * static_cast<double>(spec.transfer.block_tokens);
  const double needed = per_token * static_cast<double>(longest);
  if (room >= needed) return static_cast<std::int64_t>(std::min(room / block, 4e9));
  return sim::bad_input(fmt::format(
      "{} does not fit the {} pool: {:.1f} GB of weights per GPU and {:.1f} GB of KV "
      "cache for the longest request ({} tokens) are {:.1f} GB, and {:.1f} GB x {} are "
      "there (gpu.hbm_capacity, memory_utilization)",
      spec.model.name, name, weights * 1e-9, needed * 1e-9, longest, (weights + needed) * 1e-9,
      static_cast<double>(hbm.raw()) * 1e-9, spec.memory_utilization));
}

std::string backend_names(const KvLinks& links) {
  std::string text;
  for (const auto& [backend, pairs] : links.pairs)
    text += fmt::format("{}{}, {} pairs of ranks", text.empty() ? "" : "; ", sim::to_text(backend),
                        pairs);
  if (links.nics > 0) text += fmt::format(", {} NICs", links.nics);
  return text;
}

class Kv final : public Workload {
 public:
  explicit Kv(KvSpec spec) : spec_(std::move(spec)) {}

  std::string_view key() const override { return "kv"; }
  bool trains() const override { return false; }
  bool sends() const override { return true; }
  std::vector<std::string> groups() const override {
    std::vector<std::string> names;
    for (const CollectiveRun& run : spec_.beside) names.push_back(run.group);
    return names;
  }
  bool communicates() const override {
    return spec_.prefill.tensor_parallel > 1 || spec_.decode.tensor_parallel > 1 ||
           !spec_.beside.empty();
  }
  Result<std::vector<NamedGroup>> own_groups(std::uint32_t) const override {
    std::vector<NamedGroup> groups;
    if (spec_.prefill.tensor_parallel > 1)
      groups.push_back({std::string(kPrefillGroup), {}, ranks_of(spec_.prefill, 0)});
    if (spec_.decode.tensor_parallel > 1)
      groups.push_back({std::string(kDecodeGroup), {}, ranks_of(spec_.decode, 0)});
    return groups;
  }

  Result<void> add_estimate(const Scenario& scenario, Bound&, Estimate& estimate) const override {
    RAILYARD_ASSIGN(const std::vector<models::KvRequest> requests, kv_requests(scenario, spec_));
    double tokens = 0;
    double blocks = 0;
    for (const models::KvRequest& request : requests) {
      tokens += static_cast<double>(request.output_tokens);
      blocks += static_cast<double>(request.input_tokens + request.output_tokens) /
                static_cast<double>(spec_.transfer.block_tokens);
    }
    const auto count = static_cast<double>(requests.size());
    const bool push = spec_.transfer.mode == models::TransferMode::push;
    const double pushes = push ? std::ceil(static_cast<double>(spec_.model.layers) /
                                           static_cast<double>(spec_.transfer.layers_per_push))
                               : 1;
    const double parts =
        count * std::max(spec_.prefill.tensor_parallel, spec_.decode.tensor_parallel) * pushes;
    estimate.events += 5 * parts + 4 * count + tokens;
    estimate.messages += parts;
    estimate.memory_bytes += 300 * count + 8 * blocks;
    return {};
  }

  Result<void> run(RunContext& context) const override {
    RAILYARD_ASSIGN(std::vector<models::KvRequest> requests, kv_requests(context.scenario, spec_));
    models::KvTransfers transfers(context.simulation.queue(), context.simulation.network());
    RAILYARD_ASSIGN(KvLinks links, kv_links(context, spec_, transfers));
    auto result = std::make_shared<KvResult>();
    result->backends = backend_names(links);
    RAILYARD_ASSIGN(models::ServingOptions options, serving_options(context, requests));
    options.links = std::move(links.links);
    describe(options, *result);
    std::optional<KvReductions> prefill_reductions;
    std::optional<KvReductions> decode_reductions;
    const models::KernelModel kernels(context.bound.parameters.gpu, spec_.dtype);
    models::RooflineServingCosts costs(
        spec_.model, context.bound.parameters.gpu,
        {kernels.peak(), spec_.step_overhead, models::element_size(spec_.dtype)},
        group_of(context, kPrefillGroup, spec_.prefill, prefill_reductions),
        group_of(context, kDecodeGroup, spec_.decode, decode_reductions));
    models::Serving serving(std::move(options), std::move(requests),
                            {&context.simulation.queue(), &context.trace, &costs, &transfers,
                             [&context] { end_faults(context); }});
    RAILYARD_ASSIGN(const std::unique_ptr<KvBeside> beside,
                    KvBeside::make(context, spec_.beside, [&] { return serving.finished(); }));
    serving.start();
    beside->start();
    context.result.outcome = run_queue(context);
    for (const auto* each : {&prefill_reductions, &decode_reductions})
      if (*each && (*each)->failure()) return at_path(context.scenario, "kv", *(*each)->failure());
    context.result.stream_names = {"serving"};
    result->beside = beside->rows();
    if (context.result.outcome == sim::EventQueue::Outcome::drained && !serving.finished())
      context.result.unfinished = serving.waiting(32);
    if (!serving.finished()) return {};
    report_serving(serving, transfers, *result);
    context.result.messages += result->calls;
    context.result.kv = std::move(result);
    return {};
  }

 private:
  static models::RooflineServingCosts::Group group_of(RunContext& context, std::string_view name,
                                                      const KvPoolSpec& pool,
                                                      std::optional<KvReductions>& reductions) {
    models::RooflineServingCosts::Group out{pool.tensor_parallel, {}};
    const auto found = communications_of(context.bound, std::string(name));
    if (found.empty()) return out;
    reductions.emplace(context, *found.front());
    out.all_reduce = [&reductions](sim::Bytes size) { return (*reductions)(size); };
    return out;
  }

  Result<models::ServingOptions> serving_options(
      const RunContext& context, const std::vector<models::KvRequest>& requests) const {
    models::ServingOptions options;
    options.model = spec_.model;
    options.element_size = models::element_size(spec_.dtype);
    options.block_tokens = spec_.transfer.block_tokens;
    options.max_batched_tokens = spec_.max_batched_tokens;
    options.max_sequences = spec_.max_sequences;
    options.mode = spec_.transfer.mode;
    options.layers_per_push = spec_.transfer.layers_per_push;
    options.clients = spec_.clients;
    std::int64_t longest = 0;
    for (const models::KvRequest& request : requests)
      longest = std::max(longest, models::blocks_of(request.input_tokens + request.output_tokens,
                                                    options.block_tokens) *
                                      options.block_tokens);
    const sim::Bytes hbm = context.bound.parameters.gpu.hbm_capacity;
    const auto fill = [&](const KvPoolSpec& pool, const char* name,
                          models::KvPool& out) -> Result<void> {
      for (std::uint32_t i = 0; i < pool.instances; ++i)
        out.instances.push_back({ranks_of(pool, i)});
      auto blocks = blocks_of_pool(spec_, pool, name, longest, hbm);
      if (!blocks.ok())
        return at_path(context.scenario, fmt::format("kv.{}", name), blocks.error());
      out.blocks = blocks.value();
      return {};
    };
    RAILYARD_TRY(fill(spec_.prefill, "prefill", options.prefill));
    RAILYARD_TRY(fill(spec_.decode, "decode", options.decode));
    return options;
  }

  void describe(const models::ServingOptions& options, KvResult& out) const {
    out.model = spec_.model.name;
    const bool pull = spec_.transfer.mode == models::TransferMode::pull;
    out.mode = pull ? "pull after prefill" : "layer-wise push";
    out.library = sim::to_text(spec_.transfer.library);
    out.prefill_ranks = spec_.prefill.tensor_parallel;
    out.decode_ranks = spec_.decode.tensor_parallel;
    out.prefill_instances = spec_.prefill.instances;
    out.decode_instances = spec_.decode.instances;
    out.prefill_capacity = options.prefill.blocks * options.block_tokens;
    out.decode_capacity = options.decode.blocks * options.block_tokens;
    out.token_of_rank = token_bytes(spec_, spec_.prefill);
    out.token = out.token_of_rank * out.prefill_ranks;
    out.registered_regions = models::kv_regions(spec_.model);
    out.registered = std::max(token_bytes(spec_, spec_.prefill) * out.prefill_capacity,
                              token_bytes(spec_, spec_.decode) * out.decode_capacity);
    const std::int64_t granule = spec_.transfer.registration_granule.raw();
    if (granule > 0)
      out.registration =
          spec_.transfer.registration_cost * ((out.registered.raw() + granule - 1) / granule);
  }

  KvSpec spec_;
};

}  // namespace

Result<std::shared_ptr<const Workload>> decode_kv(const Place& place) {
  KvSpec spec;
  RAILYARD_TRY(decode(place, spec));
  return std::shared_ptr<const Workload>(std::make_shared<Kv>(std::move(spec)));
}

}  // namespace railyard::scenarios
