// kv:
//   model: llama3-70b                    of kv_model.h, or a map of its fields
//   dtype: bf16
//   prefill: {ranks: 16, tensor_parallel: 8, first_rank: 0}
//   decode:  {ranks: 16, tensor_parallel: 8}    behind the prefill pool unless first_rank says else
//   requests:
//     count, rate (per second), process: poisson | uniform, seed
//     input_tokens, output_tokens: a number, or {median, sigma, most}: lognormal
//     or trace: FILE                     lines of "seconds,input tokens,output tokens"
//     or count and clients: each client sends its next request when the one before has ended
//   transfer:
//     mode: pull | push, layers_per_push
//     library: nixl | mooncake           whose costs and habits (models/kv/transfers.h)
//     backend: auto | nvlink | pcie | rdma | tcp | storage
//     nics: nearest | all
//     block_tokens, sockets, storage_bandwidth, storage_read_bandwidth, storage_latency
//     registration: {granule, cost}
//     in place of the library's: handshake, request_overhead, descriptor_cost, slice, slice_cost,
//                                threads, join_blocks, synchronous
//   max_batched_tokens, max_sequences, memory_utilization, step_overhead
//   beside: [{collective, sizes, group}]   as in `collectives`, again and again beside the serving
#include <fmt/format.h>

#include <algorithm>

#include "models/kv/trace.h"
#include "scenarios/kv_spec.h"
#include "scenarios/sections.h"
#include "scenarios/where.h"
#include "sim/random.h"

namespace railyard::scenarios {
namespace {

constexpr std::int64_t kMostTokens = models::kMaxKvTokens;
constexpr std::int64_t kMostRequests = 10'000'000;
constexpr std::uint32_t kMostRanks = 1'000'000;
constexpr double kMostSeconds = 4e6;  // the simulated time that a run can take

// A step of vLLM's scheduler beside its kernels; an order of magnitude.
constexpr sim::Duration kStepOverhead = sim::microseconds(3'000);
// No figure for GPU memory is public. Host memory is registered at 13 GB/s (ofiwg/libfabric#4738).
constexpr sim::Bytes kRegistrationGranule = sim::bytes(std::int64_t{1} << 30);
constexpr sim::Duration kRegistrationCost = sim::microseconds(82'600);

struct Lengths {
  std::int64_t median = 0;
  double sigma = 0;
  std::int64_t most = kMostTokens;

  std::int64_t draw(sim::Random& random) const {
    if (sigma == 0) return median;
    const double value = random.lognormal(static_cast<double>(median), sigma);
    return std::clamp<std::int64_t>(
        static_cast<std::int64_t>(std::min(value, static_cast<double>(most))), 1, most);
  }
};

Result<void> decode(const Place& place, Lengths& out) {
  if (place.node->kind == Node::Kind::scalar)
    return decode_integer(place, out.median, 1, kMostTokens);
  MapReader reader(place);
  reader.required("median", out.median, 1, kMostTokens);
  reader.required("sigma", out.sigma, 0.0, 5.0);
  reader.optional("most", out.most, 1, kMostTokens);
  return reader.finish();
}

// Gaps between arrivals; a closed load has none.
struct Process {
  std::int64_t count = 0;
  double rate = 0;
  bool poisson = true;
  std::uint64_t seed = 1;
  Lengths input;
  Lengths output;

  void draw(std::vector<models::KvRequest>& out) const {
    sim::Random random(seed);
    double seconds = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const double mean = rate > 0 ? 1 / rate : 0;
      const double gap = poisson && rate > 0 ? random.exponential(mean) : mean;
      if (i > 0) seconds += gap;
      out.push_back({sim::Time(sim::Duration(static_cast<std::int64_t>(seconds * 1e12))),
                     input.draw(random), output.draw(random)});
    }
  }
};

// Requests per second.
Result<void> decode_rate(const Place& place, double& out) {
  double value = 0;
  if (decode(place, value).ok() && value <= 0)
    return place.error("an arrival rate must be positive");
  return decode_real(place, out, 1e-6, 1e9);
}

Result<void> decode_requests(const Place& place, KvSpec& out) {
  MapReader reader(place);
  if (const auto trace = reader.find("trace")) {
    std::string name;
    if (reader.take(decode(*trace, name))) out.trace = beside(*trace, name);
    return reader.finish();
  }
  Process process;
  std::string kind = "poisson";
  reader.required("count", process.count, 1, kMostRequests);
  const bool closed = reader.optional("clients", out.clients, 1U, kMostRanks);
  const auto rate = closed ? reader.find("rate") : reader.find_required("rate");
  if (rate) reader.take(decode_rate(*rate, process.rate));
  const bool named = reader.optional("process", kind);
  reader.optional("seed", process.seed);
  reader.required("input_tokens", process.input);
  reader.required("output_tokens", process.output);
  RAILYARD_TRY(reader.finish());
  if (closed && (rate || named))
    return reader.find("clients")->error("a closed load has neither 'rate' nor 'process'");
  if (kind != "poisson" && kind != "uniform")
    return reader.find("process")->error("'poisson' or 'uniform' is expected");
  process.poisson = kind == "poisson";
  if (!closed && static_cast<double>(process.count) / process.rate > kMostSeconds)
    return rate->error("the requests would come over more than 4e6 s");
  process.draw(out.requests);
  return {};
}

Result<void> decode_pool(const Place& place, KvPoolSpec& out) {
  MapReader reader(place);
  std::uint32_t ranks = 0;
  reader.required("ranks", ranks, 1U, kMostRanks);
  reader.required("tensor_parallel", out.tensor_parallel, 1U, kMostRanks);
  reader.optional("first_rank", out.first_rank, 0U, kMostRanks);
  RAILYARD_TRY(reader.finish());
  if (ranks % out.tensor_parallel != 0)
    return place.error(
        fmt::format("{} ranks do not divide into groups of {}", ranks, out.tensor_parallel));
  out.instances = ranks / out.tensor_parallel;
  return {};
}

Result<void> decode_model(const Place& place, models::KvModel& out) {
  if (place.node->kind == Node::Kind::scalar) {
    std::string name;
    RAILYARD_TRY(decode(place, name));
    auto known = models::kv_model(name);
    if (!known.ok()) return place.error(known.error().message);
    out = std::move(known).value();
    return {};
  }
  MapReader reader(place);
  constexpr std::int64_t kMost = 100'000'000'000'000;
  out.name = "custom";
  reader.optional("name", out.name);
  reader.required("layers", out.layers, 1, 10'000);
  reader.required("width", out.width, 1, 1'000'000);
  reader.required("heads", out.heads, 1, 100'000);
  reader.required("kv_heads", out.kv_heads, 1, 100'000);
  reader.required("head_dim", out.head_dim, 1, 100'000);
  reader.optional("latent_width", out.latent_width, 0, 1'000'000);
  reader.required("parameters", out.parameters, 1, kMost);
  out.active_parameters = out.parameters;
  reader.optional("active_parameters", out.active_parameters, 1, kMost);
  reader.optional("experts", out.experts, 0, 100'000);
  reader.optional("experts_per_token", out.experts_per_token, 0, 100'000);
  RAILYARD_TRY(reader.finish());
  if (out.active_parameters > out.parameters)
    return place.error("active_parameters are more than parameters");
  if (out.experts > 0 && (out.experts_per_token < 1 || out.experts_per_token >= out.experts))
    return place.error("experts_per_token must be from 1 to experts - 1");
  return {};
}

void read_costs(MapReader& reader, KvCostOverrides& out) {
  reader.optional("handshake", out.handshake);
  reader.optional("request_overhead", out.request_overhead);
  reader.optional("descriptor_cost", out.descriptor_cost);
  reader.optional("slice", out.slice);
  reader.optional("slice_cost", out.slice_cost);
  std::uint32_t threads = 0;
  if (reader.optional("threads", threads, 1U, 1'024U)) out.threads = threads;
  reader.optional("join_blocks", out.join_blocks);
  reader.optional("synchronous", out.synchronous);
}

Result<void> decode_transfer(const Place& place, KvTransferSpec& out) {
  MapReader reader(place);
  reader.optional("mode", out.mode);
  reader.optional("library", out.library);
  reader.optional("backend", out.backend);
  reader.optional("nics", out.nics);
  reader.optional("block_tokens", out.block_tokens, 1, 1'000'000);
  const bool layers = reader.optional("layers_per_push", out.layers_per_push, 1, 10'000);
  read_costs(reader, out.costs);
  if (const auto registration = reader.find("registration")) {
    MapReader keys(*registration);
    keys.required("granule", out.registration_granule);
    keys.required("cost", out.registration_cost);
    reader.take(keys.finish());
  }
  reader.optional("sockets", out.sockets, 1U, 64U);
  const bool storage = reader.optional("storage_bandwidth", out.storage_bandwidth);
  reader.optional("storage_read_bandwidth", out.storage_read_bandwidth);
  reader.optional("storage_latency", out.storage_latency);
  RAILYARD_TRY(reader.finish());
  if (out.backend == models::KvBackend::storage && !storage)
    return place.error("the back-end 'storage' needs storage_bandwidth");
  if (layers && out.mode != models::TransferMode::push)
    return place.error("'layers_per_push' belongs to the mode push");
  return {};
}

Result<void> decode_beside(const Place& place, std::vector<CollectiveRun>& out) {
  RAILYARD_TRY(decode(place, out));
  for (std::size_t i = 0; i < out.size(); ++i)
    if (sim::is_rooted(out[i].collective))
      return place.item(i).error("a collective without a root is expected");
  return {};
}

Result<void> check_pools(MapReader& reader, const KvSpec& spec) {
  for (const auto* pool : {&spec.prefill, &spec.decode}) {
    const auto divides = models::check_tensor_parallel(spec.model, pool->tensor_parallel);
    if (!divides.ok())
      return reader.find(pool == &spec.prefill ? "prefill" : "decode")
          ->error(divides.error().message);
  }
  if (spec.prefill.first_rank < spec.decode.end_rank() &&
      spec.decode.first_rank < spec.prefill.end_rank())
    return reader.find("decode")->error("its ranks are the prefill pool's");
  return {};
}

}  // namespace

Result<void> decode(const Place& place, KvSpec& out) {
  MapReader reader(place);
  out.step_overhead = kStepOverhead;
  out.transfer.registration_granule = kRegistrationGranule;
  out.transfer.registration_cost = kRegistrationCost;
  if (const auto model = reader.find_required("model"))
    reader.take(decode_model(*model, out.model));
  reader.optional("dtype", out.dtype);
  if (const auto pool = reader.find_required("prefill"))
    reader.take(decode_pool(*pool, out.prefill));
  out.decode.first_rank = out.prefill.end_rank();
  if (const auto pool = reader.find_required("decode")) reader.take(decode_pool(*pool, out.decode));
  if (const auto requests = reader.find_required("requests"))
    reader.take(decode_requests(*requests, out));
  if (const auto transfer = reader.find("transfer"))
    reader.take(decode_transfer(*transfer, out.transfer));
  if (const auto beside = reader.find("beside")) reader.take(decode_beside(*beside, out.beside));
  reader.optional("max_batched_tokens", out.max_batched_tokens, 1, kMostTokens);
  reader.optional("max_sequences", out.max_sequences, 1, 1'000'000);
  reader.optional("memory_utilization", out.memory_utilization, 0.01, 1.0);
  reader.optional("step_overhead", out.step_overhead);
  RAILYARD_TRY(reader.finish());
  return check_pools(reader, out);
}

Result<std::vector<models::KvRequest>> kv_requests(const Scenario& scenario, const KvSpec& spec) {
  if (spec.trace.empty()) return spec.requests;
  const Place place = where(scenario, "kv.requests.trace");
  if (!scenario.read_files) return place.error("no file is read here");
  const auto text = read_text_file(spec.trace);
  if (!text.ok()) return at(place, text.error());
  return models::parse_kv_trace(text.value(), spec.trace);
}

models::KvTransferCosts transfer_costs(const KvTransferSpec& spec, models::KvBackend backend,
                                       const sim::NetworkParameters& network) {
  models::KvTransferCosts costs = models::kv_costs(spec.library, backend);
  if (backend == models::KvBackend::tcp) costs.descriptor_cost = network.socket_message;
  const auto change = [](auto& value, const auto& by) { value = by.value_or(value); };
  change(costs.handshake, spec.costs.handshake);
  change(costs.request_overhead, spec.costs.request_overhead);
  change(costs.descriptor_cost, spec.costs.descriptor_cost);
  change(costs.slice, spec.costs.slice);
  change(costs.slice_cost, spec.costs.slice_cost);
  change(costs.threads, spec.costs.threads);
  change(costs.join_blocks, spec.costs.join_blocks);
  change(costs.synchronous, spec.costs.synchronous);
  return costs;
}

}  // namespace railyard::scenarios
