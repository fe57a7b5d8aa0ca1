// kv:
//   model: llama3-70b                    of kv_model.h, or a map of its fields
//   dtype: bf16
//   prefill: {ranks: 16, tensor_parallel: 8, first_rank: 0}
//   decode:  {ranks: 16, tensor_parallel: 8}      behind the prefill pool unless first_rank says
//   else requests:
//     count, rate (per second), process: poisson | uniform, seed
//     input_tokens, output_tokens: a number, or {median, sigma, most}: lognormal
//     or trace: FILE                     lines of "seconds,input tokens,output tokens"
//   transfer: {mode, backend, block_tokens, join_blocks, descriptor_cost, request_overhead,
//   handshake,
//              registration: {granule, cost}, sockets, storage_bandwidth, storage_latency}
//   max_batched_tokens, max_sequences, memory_utilization, step_overhead
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "scenarios/kv_spec.h"
#include "scenarios/text_fence.h"
#include "sim/random.h"

namespace railyard::scenarios {
namespace {

constexpr std::int64_t kMostTokens = 16'000'000;
constexpr std::int64_t kMostRequests = 10'000'000;
constexpr std::uint32_t kMostRanks = 1'000'000;
constexpr double kMostSeconds = 4e6;  // the simulated time that a run can take

// Of a vLLM scheduler's step and of the transfer engine where the scenario is silent. The
// transfer's are the two parameters of the Mooncake table for Qwen3-8B (docs/models/kv.md): its
// smallest and its largest row.
constexpr sim::Duration kStepOverhead = sim::microseconds(3'000);
constexpr sim::Duration kDescriptorCost = sim::nanoseconds(212);
constexpr sim::Duration kRequestOverhead = sim::microseconds(390);
// ibv_reg_mr of GPU memory: about 1 ms per GiB with huge pages; metadata and queue pairs of a new
// peer take some ms.
constexpr sim::Duration kHandshake = sim::microseconds(5'000);
constexpr sim::Duration kRegistration = sim::microseconds(1'000);

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

Error bad_line(const Place& place, const std::string& path, std::size_t line,
               std::string_view why) {
  return place.error(fmt::format("{}:{}: {}", path, line, why));
}

// A number at the start of `text`, which is then behind it and a comma.
template <typename T>
bool take(std::string_view& text, T& out) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (failed != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty() && text.front() == ',') text.remove_prefix(1);
  return true;
}

Result<void> read_trace(const Place& place, std::vector<models::KvRequest>& out) {
  std::string name;
  RAILYARD_TRY(decode(place, name));
  const std::string path = beside(place, name);
  std::ifstream file(path);
  if (!file) return place.error(fmt::format("cannot open {}", path));
  std::string text;
  for (std::size_t line = 1; std::getline(file, text); ++line) {
    if (!text.empty() && text.back() == '\r') text.pop_back();
    if (text.empty() || text.front() == '#') continue;
    std::string_view rest = text;
    double seconds = 0;
    models::KvRequest request;
    if (line == 1 && text.find_first_of("0123456789+-.") != 0) continue;  // a header
    if (!take(rest, seconds) || !take(rest, request.input_tokens) ||
        !take(rest, request.output_tokens) || !rest.empty())
      return bad_line(place, path, line, "seconds,input tokens,output tokens are expected");
    if (!(seconds >= 0 && seconds <= kMostSeconds))
      return bad_line(place, path, line, "the time is out of range (0 to 4e6 s)");
    if (request.input_tokens < 1 || request.input_tokens > kMostTokens ||
        request.output_tokens < 1 || request.output_tokens > kMostTokens)
      return bad_line(place, path, line, "token counts from 1 to 16,000,000 are expected");
    request.arrival = sim::Time(sim::Duration(static_cast<std::int64_t>(seconds * 1e12)));
    out.push_back(request);
  }
  if (out.empty()) return place.error(fmt::format("{} has no requests", path));
  std::ranges::stable_sort(out, {}, &models::KvRequest::arrival);
  return {};
}

Result<void> decode_requests(const Place& place, std::vector<models::KvRequest>& out) {
  MapReader reader(place);
  if (const auto trace = reader.find("trace")) {
    reader.take(read_trace(*trace, out));
    return reader.finish();
  }
  std::int64_t count = 0;
  double rate = 0;
  std::string process = "poisson";
  std::uint64_t seed = 1;
  Lengths input;
  Lengths output;
  reader.required("count", count, 1, kMostRequests);
  reader.required("rate", rate, 1e-6, 1e9);
  reader.optional("process", process);
  reader.optional("seed", seed);
  reader.required("input_tokens", input);
  reader.required("output_tokens", output);
  RAILYARD_TRY(reader.finish());
  if (process != "poisson" && process != "uniform")
    return reader.find("process")->error("'poisson' or 'uniform' is expected");
  if (static_cast<double>(count) / rate > kMostSeconds)
    return reader.find("rate")->error("the requests would come over more than 4e6 s");
  sim::Random random(seed);
  double seconds = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double gap = process == "poisson" ? random.exponential(1 / rate) : 1 / rate;
    if (i > 0) seconds += gap;
    out.push_back({sim::Time(sim::Duration(static_cast<std::int64_t>(seconds * 1e12))),
                   input.draw(random), output.draw(random)});
  }
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

Result<void> decode_transfer(const Place& place, KvSpec& out) {
  MapReader reader(place);
  models::KvTransferOptions& transfer = out.transfer;
  reader.optional("mode", transfer.mode);
  reader.optional("backend", out.backend);
  reader.optional("block_tokens", transfer.block_tokens, 1, 1'000'000);
  reader.optional("join_blocks", transfer.join_blocks);
  reader.optional("descriptor_cost", transfer.descriptor_cost);
  reader.optional("request_overhead", transfer.request_overhead);
  reader.optional("handshake", transfer.handshake);
  if (const auto registration = reader.find("registration")) {
    MapReader keys(*registration);
    keys.required("granule", transfer.registration_granule);
    keys.required("cost", transfer.registration_cost);
    reader.take(keys.finish());
  }
  reader.optional("sockets", out.sockets, 1U, 64U);
  const bool storage = reader.optional("storage_bandwidth", out.storage_bandwidth);
  reader.optional("storage_latency", out.storage_latency);
  RAILYARD_TRY(reader.finish());
  if (out.backend == KvBackend::storage && (!storage || out.storage_bandwidth.raw() <= 0))
    return place.error("the back-end 'storage' needs storage_bandwidth");
  return {};
}

}  // namespace

Result<void> decode(const Place& place, KvSpec& out) {
  MapReader reader(place);
  out.step_overhead = kStepOverhead;
  out.transfer.descriptor_cost = kDescriptorCost;
  out.transfer.request_overhead = kRequestOverhead;
  out.transfer.handshake = kHandshake;
  out.transfer.registration_granule = sim::bytes(std::int64_t{1} << 30);
  out.transfer.registration_cost = kRegistration;
  if (const auto model = reader.find_required("model"))
    reader.take(decode_model(*model, out.model));
  reader.optional("dtype", out.dtype);
  if (const auto pool = reader.find_required("prefill"))
    reader.take(decode_pool(*pool, out.prefill));
  out.decode.first_rank =
      out.prefill.first_rank + out.prefill.instances * out.prefill.tensor_parallel;
  if (const auto pool = reader.find_required("decode")) reader.take(decode_pool(*pool, out.decode));
  if (const auto requests = reader.find_required("requests"))
    reader.take(decode_requests(*requests, out.requests));
  if (const auto transfer = reader.find("transfer")) reader.take(decode_transfer(*transfer, out));
  reader.optional("max_batched_tokens", out.max_batched_tokens, 1, kMostTokens);
  reader.optional("max_sequences", out.max_sequences, 1, 1'000'000);
  reader.optional("memory_utilization", out.memory_utilization, 0.01, 1.0);
  reader.optional("step_overhead", out.step_overhead);
  RAILYARD_TRY(reader.finish());
  for (const auto* pool : {&out.prefill, &out.decode}) {
    const auto divides = models::check_tensor_parallel(out.model, pool->tensor_parallel);
    if (!divides.ok())
      return reader.find(pool == &out.prefill ? "prefill" : "decode")
          ->error(divides.error().message);
  }
  const std::uint32_t prefill_end =
      out.prefill.first_rank + out.prefill.instances * out.prefill.tensor_parallel;
  const std::uint32_t decode_end =
      out.decode.first_rank + out.decode.instances * out.decode.tensor_parallel;
  if (out.prefill.first_rank < decode_end && out.decode.first_rank < prefill_end)
    return reader.find("decode")->error("its ranks are the prefill pool's");
  const std::int64_t block = out.transfer.block_tokens;
  for (const models::KvRequest& request : out.requests)
    out.longest_request =
        std::max(out.longest_request,
                 models::blocks_of(request.input_tokens + request.output_tokens, block) * block);
  return {};
}

}  // namespace railyard::scenarios
