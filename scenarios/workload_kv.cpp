// kv: disaggregated prefill and decode.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/compute/kernels.h"
#include "models/kv/serving_costs.h"
#include "scenarios/faults.h"
#include "scenarios/gpu_path.h"
#include "scenarios/kv_result.h"
#include "scenarios/kv_spec.h"
#include "scenarios/run_parts.h"
#include "scenarios/where.h"
#include "scenarios/workloads.h"

namespace railyard::scenarios {
namespace {

std::vector<std::uint32_t> ranks_of(const KvPoolSpec& pool, std::uint32_t instance) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t r = 0; r < pool.tensor_parallel; ++r)
    ranks.push_back(pool.first_rank + instance * pool.tensor_parallel + r);
  return ranks;
}

// Tokens of KV cache that fit beside the weights.
Result<std::int64_t> capacity_of(const KvSpec& spec, const KvPoolSpec& pool, const char* name,
                                 sim::Bytes hbm) {
  const auto element = models::element_size(spec.dtype);
  const double weights = static_cast<double>(spec.model.parameters) * static_cast<double>(element) /
                         pool.tensor_parallel;
  const double room = static_cast<double>(hbm.raw()) * spec.memory_utilization - weights;
  const auto per_token = static_cast<double>(
      models::kv_bytes_per_token(spec.model, pool.tensor_parallel, element).raw());
  if (room >= per_token * static_cast<double>(spec.longest_request))
    return static_cast<std::int64_t>(room / per_token);
  return sim::bad_input(
      fmt::format("{} does not fit the {} pool: {:.1f} GB of weights per GPU and {:.1f} GB of KV "
                  "cache for the longest request ({} tokens) are {:.1f} GB, and {:.1f} GB x {} are "
                  "there (gpu.hbm_capacity, memory_utilization)",
                  spec.model.name, name, weights * 1e-9,
                  per_token * static_cast<double>(spec.longest_request) * 1e-9,
                  spec.longest_request,
                  (weights + per_token * static_cast<double>(spec.longest_request)) * 1e-9,
                  static_cast<double>(hbm.raw()) * 1e-9, spec.memory_utilization),
      "model");
}

// AllReduces of one tensor-parallel group, simulated apart from the run. Sizes up to 4 MiB
// (decode's) are simulated each; of longer ones 16 per octave, with straight lines between them,
// since a prefill batch may have any length.
class GroupReductions {
 public:
  GroupReductions(RunContext& context, Communication& communication)
      : context_(&context), communication_(&communication) {}

  sim::Duration operator()(sim::Bytes size) {
    constexpr std::int64_t kEach = std::int64_t{4} << 20;
    if (size.raw() <= kEach) return simulated(size);
    std::int64_t step = kEach / 16;
    while (size.raw() >= 32 * step) step *= 2;
    const std::int64_t below = size.raw() / step * step;
    const sim::Duration low = simulated(sim::bytes(below));
    if (below == size.raw()) return low;
    const sim::Duration high = simulated(sim::bytes(below + step));
    const double share = static_cast<double>(size.raw() - below) / static_cast<double>(step);
    return low + sim::Duration(std::llround(static_cast<double>((high - low).count()) * share));
  }
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  sim::Duration simulated(sim::Bytes size) {
    const auto found = times_.find(size);
    if (found != times_.end()) return found->second;
    return times_.emplace(size, simulate(size)).first->second;
  }

  struct Done final : sim::CollectiveListener {
    void on_collective_done(const sim::CollectiveRunner&, std::uint32_t, std::uint32_t) override {}
  };

  sim::Duration simulate(sim::Bytes size) {
    auto chosen =
        choose(context_->scenario, *communication_, {sim::Collective::all_reduce, size, 2});
    if (!chosen.ok()) {
      failure_ = chosen.error();
      return {};
    }
    chosen.value().in_place = true;
    sim::Simulation apart(context_->bound.topology, *context_->bound.costs);
    sim::CollectiveRunner runner(apart,
                                 {&context_->bound.topology, communication_->group,
                                  communication_->communicator.get(), context_->bound.costs.get()},
                                 {});
    const auto plan = runner.plan(chosen.value());
    if (!plan.ok()) {
      failure_ = plan.error();
      return {};
    }
    Done done;
    for (std::uint32_t r = 0; r < communication_->group.size(); ++r)
      runner.enter(r, plan.value(), done);
    apart.queue().run();
    return apart.now().time_since_epoch() + context_->bound.parameters.host.collective_start;
  }

  RunContext* context_;
  Communication* communication_;
  std::map<sim::Bytes, sim::Duration> times_;
  std::optional<Error> failure_;
};

Quantiles quantiles(const std::vector<KvRequestRow>& rows, sim::Duration KvRequestRow::*what) {
  Quantiles out;
  if (rows.empty()) return out;
  std::vector<sim::Duration> times;
  sim::Int128 sum = 0;
  for (const KvRequestRow& row : rows) {
    times.push_back(row.*what);
    sum += (row.*what).count();
  }
  std::ranges::sort(times);
  // Nearest rank.
  const auto at = [&](std::size_t percent) {
    return times[std::max<std::size_t>((times.size() * percent + 99) / 100, 1) - 1];
  };
  out.p50 = at(50);
  out.p90 = at(90);
  out.p99 = at(99);
  out.mean = sim::Duration(static_cast<std::int64_t>(sum / static_cast<std::int64_t>(rows.size())));
  return out;
}

KvRequestRow row_of(const models::KvRequest& request, const models::RequestTimes& times) {
  KvRequestRow row;
  row.arrival = request.arrival.time_since_epoch();
  row.input_tokens = request.input_tokens;
  row.output_tokens = request.output_tokens;
  row.prefill_instance = times.prefill_instance;
  row.decode_instance = times.decode_instance;
  row.queue = times.prefill_start - request.arrival;
  row.prefill = times.prefill_end - times.prefill_start;
  row.blocks = std::max(sim::Duration{}, times.transfer_start - times.prefill_end);
  row.transfer = times.transfer_end - std::max(times.transfer_start, times.prefill_end);
  row.first_step = times.first_token - times.transfer_end;
  row.ttft = times.first_token - request.arrival;
  row.tpot = request.output_tokens > 1
                 ? (times.end - times.first_token) / (request.output_tokens - 1)
                 : sim::Duration{};
  row.end_to_end = times.end - request.arrival;
  row.transfer_alone = times.transfer_end - times.transfer_start;
  row.moved = times.moved;
  row.descriptors = times.descriptors;
  return row;
}

class Kv final : public Workload {
 public:
  explicit Kv(KvSpec spec) : spec_(std::move(spec)) {}

  std::string_view key() const override { return "kv"; }
  bool trains() const override { return false; }
  std::vector<std::string> groups() const override { return {}; }
  bool communicates() const override {
    return spec_.prefill.tensor_parallel > 1 || spec_.decode.tensor_parallel > 1;
  }
  Result<std::vector<NamedGroup>> own_groups(std::uint32_t) const override {
    std::vector<NamedGroup> groups;
    if (spec_.prefill.tensor_parallel > 1)
      groups.push_back({std::string(kPrefillGroup), {}, ranks_of(spec_.prefill, 0)});
    if (spec_.decode.tensor_parallel > 1)
      groups.push_back({std::string(kDecodeGroup), {}, ranks_of(spec_.decode, 0)});
    return groups;
  }

  Result<void> add_estimate(const Scenario&, Bound&, Estimate& estimate) const override {
    double tokens = 0;
    for (const models::KvRequest& request : spec_.requests)
      tokens += static_cast<double>(request.output_tokens);
    const auto requests = static_cast<double>(spec_.requests.size());
    const double layers = spec_.transfer.mode == models::TransferMode::push
                              ? static_cast<double>(spec_.model.layers)
                              : 1;
    const double parts = requests * spec_.decode.tensor_parallel * layers;
    estimate.events += 5 * parts + 4 * requests + tokens;
    estimate.messages += parts;
    estimate.memory_bytes += 300 * parts + 500 * requests;
    return {};
  }

  Result<void> run(RunContext& context) const override {
    RAILYARD_ASSIGN(models::ServingOptions options, serving_options(context));
    RAILYARD_ASSIGN(const algorithms::Places places,
                    algorithms::find_places(context.bound.topology, context.bound.world));
    RAILYARD_TRY(check_paths(context, places));
    std::vector<std::unique_ptr<GroupReductions>> reductions;
    const auto group = [&](std::string_view name, const KvPoolSpec& pool) {
      models::RooflineServingCosts::Group out{pool.tensor_parallel, {}};
      const auto found = communications_of(context.bound, std::string(name));
      if (found.empty()) return out;
      reductions.push_back(std::make_unique<GroupReductions>(context, *found.front()));
      out.all_reduce = [each = reductions.back().get()](sim::Bytes size) { return (*each)(size); };
      return out;
    };
    const models::KernelModel kernels(context.bound.parameters.gpu, spec_.dtype);
    models::RooflineServingCosts costs(
        spec_.model, context.bound.parameters.gpu,
        {kernels.peak(), spec_.step_overhead, models::element_size(spec_.dtype)},
        group(kPrefillGroup, spec_.prefill), group(kDecodeGroup, spec_.decode));
    models::Serving serving(
        std::move(options), spec_.requests,
        {&context.simulation.queue(), &context.simulation.network(), &context.trace, &costs,
         paths(context, places), [&context] { end_faults(context); }});
    serving.start();
    context.result.outcome = run_queue(context);
    for (const auto& each : reductions)
      if (each->failure()) return at_path(context.scenario, "kv", *each->failure());
    context.result.stream_names = {"serving"};
    if (context.result.outcome == sim::EventQueue::Outcome::drained && !serving.finished())
      context.result.unfinished = serving.waiting(32);
    if (serving.finished()) context.result.kv = report(serving);
    return {};
  }

 private:
  Result<models::ServingOptions> serving_options(const RunContext& context) const {
    models::ServingOptions options;
    options.model = spec_.model;
    options.element_size = models::element_size(spec_.dtype);
    options.max_batched_tokens = spec_.max_batched_tokens;
    options.max_sequences = spec_.max_sequences;
    options.transfer = spec_.transfer;
    const sim::Bytes hbm = context.bound.parameters.gpu.hbm_capacity;
    const auto fill = [&](const KvPoolSpec& pool, const char* name,
                          models::KvPool& out) -> Result<void> {
      const std::uint32_t last = pool.first_rank + pool.instances * pool.tensor_parallel;
      if (last > context.bound.world.size())
        return at_path(context.scenario, fmt::format("kv.{}", name),
                       sim::bad_input(fmt::format("its last rank is {}, but the job has {} ranks",
                                                  last - 1, context.bound.world.size())));
      for (std::uint32_t i = 0; i < pool.instances; ++i)
        out.instances.push_back({ranks_of(pool, i)});
      auto capacity = capacity_of(spec_, pool, name, hbm);
      if (!capacity.ok()) return at_path(context.scenario, "kv", capacity.error());
      out.kv_tokens = capacity.value();
      return {};
    };
    RAILYARD_TRY(fill(spec_.prefill, "prefill", options.prefill));
    RAILYARD_TRY(fill(spec_.decode, "decode", options.decode));
    return options;
  }

  PathKind path_kind() const {
    return spec_.backend == KvBackend::tcp ? PathKind::hosts : PathKind::direct;
  }

  // No path may fail in the middle of a run. A route that leaves a node goes by its NICs, so it is
  // enough that every rank reaches, and is reached from, one of the other pool.
  Result<void> check_paths(const RunContext& context, const algorithms::Places& places) const {
    const auto check = [&](std::uint32_t from, std::uint32_t to) -> Result<void> {
      const auto path = gpu_path(context.bound, places, from, to, path_kind());
      return path.ok() ? Result<void>() : at_path(context.scenario, "kv", path.error());
    };
    for (std::uint32_t r = 0; r < spec_.prefill.instances * spec_.prefill.tensor_parallel; ++r)
      RAILYARD_TRY(check(spec_.prefill.first_rank + r, spec_.decode.first_rank));
    for (std::uint32_t r = 0; r < spec_.decode.instances * spec_.decode.tensor_parallel; ++r)
      RAILYARD_TRY(check(spec_.prefill.first_rank, spec_.decode.first_rank + r));
    return {};
  }

  models::KvPaths paths(RunContext& context, const algorithms::Places& places) const {
    std::optional<sim::ResourceId> storage;
    if (spec_.backend == KvBackend::storage)
      storage = context.simulation.network().add_resource(spec_.storage_bandwidth);
    return [this, &context, &places, storage](std::uint32_t from, std::uint32_t to) {
      auto found = gpu_path(context.bound, places, from, to, path_kind());
      RAILYARD_CHECK(found.ok(), "pairs of a pool are alike");
      models::KvPath path{std::move(found.value().uses), found.value().latency, {}};
      const sim::NetworkParameters& network = context.bound.parameters.network;
      if (spec_.backend == KvBackend::tcp && found.value().network) {
        path.cap = network.socket_rate * spec_.sockets;
        path.latency += network.socket_latency;
      }
      if (storage) {
        path.uses.push_back({*storage, 2});  // written, then read
        path.latency += spec_.storage_latency * 2;
      }
      return path;
    };
  }

  std::shared_ptr<const KvResult> report(const models::Serving& serving) const {
    auto out = std::make_shared<KvResult>();
    KvResult& result = *out;
    result.model = spec_.model.name;
    result.mode = spec_.transfer.mode == models::TransferMode::pull ? "pull after prefill"
                                                                    : "layer-wise push";
    result.backend = sim::to_text(spec_.backend);
    result.prefill_ranks = spec_.prefill.tensor_parallel;
    result.decode_ranks = spec_.decode.tensor_parallel;
    result.prefill_instances = spec_.prefill.instances;
    result.decode_instances = spec_.decode.instances;
    result.prefill_capacity = serving.options().prefill.kv_tokens;
    result.decode_capacity = serving.options().decode.kv_tokens;
    double tokens = 0;
    sim::Time last{};
    for (std::size_t r = 0; r < spec_.requests.size(); ++r) {
      result.requests.push_back(row_of(serving.requests()[r], serving.times()[r]));
      result.moved += result.requests.back().moved;
      result.descriptors += result.requests.back().descriptors;
      tokens += static_cast<double>(spec_.requests[r].output_tokens);
      last = std::max(last, serving.times()[r].end);
    }
    result.ttft = quantiles(result.requests, &KvRequestRow::ttft);
    result.queue = quantiles(result.requests, &KvRequestRow::queue);
    result.prefill = quantiles(result.requests, &KvRequestRow::prefill);
    result.blocks = quantiles(result.requests, &KvRequestRow::blocks);
    result.transfer = quantiles(result.requests, &KvRequestRow::transfer);
    result.first_step = quantiles(result.requests, &KvRequestRow::first_step);
    result.tpot = quantiles(result.requests, &KvRequestRow::tpot);
    result.end_to_end = quantiles(result.requests, &KvRequestRow::end_to_end);
    result.transfer_alone = quantiles(result.requests, &KvRequestRow::transfer_alone);
    const double seconds = sim::to_seconds(last - spec_.requests.front().arrival);
    result.requests_per_second = static_cast<double>(spec_.requests.size()) / seconds;
    result.output_tokens_per_second = tokens / seconds;
    const double median = sim::to_seconds(result.transfer_alone.p50);
    const auto mean_moved =
        static_cast<double>(result.moved.raw()) / static_cast<double>(spec_.requests.size());
    result.transfer_gb_per_s = median > 0 ? mean_moved / median * 1e-9 : 0;
    result.decode_steps = serving.decode_steps();
    for (std::uint32_t i = 0; i < spec_.prefill.instances; ++i)
      result.pools.push_back(
          {fmt::format("prefill {}", i), sim::to_seconds(serving.prefill_busy(i)) / seconds});
    for (std::uint32_t i = 0; i < spec_.decode.instances; ++i)
      result.pools.push_back(
          {fmt::format("decode {}", i), sim::to_seconds(serving.decode_busy(i)) / seconds});
    return out;
  }

  static constexpr std::string_view kPrefillGroup = "kv.prefill tensor parallel";
  static constexpr std::string_view kDecodeGroup = "kv.decode tensor parallel";

  KvSpec spec_;
};

}  // namespace

Result<std::shared_ptr<const Workload>> decode_kv(const Place& place) {
  KvSpec spec;
  RAILYARD_TRY(decode(place, spec));
  return std::shared_ptr<const Workload>(std::make_shared<Kv>(std::move(spec)));
}

}  // namespace railyard::scenarios
