#include "models/kv/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace railyard::models {
namespace {

enum Code : std::uint32_t {
  kArrive,       // a request
  kPrefillEnd,   // an instance
  kStepEnd,      // an instance
  kPost,         // a part: its descriptors begin to go out
  kPartArrived,  // a part: its last byte is there
  kLayer         // a part, to be posted: its layer was computed
};

// No faster than the descriptors are posted; 0 = no limit.
sim::Bandwidth posting_rate(sim::Bytes size, sim::Duration posting) {
  if (posting.count() <= 0) return {};
  const sim::Int128 raw = sim::Int128(size.raw()) * 65'536 * 1'000'000'000'000 / posting.count();
  return sim::Bandwidth::from_raw(
      static_cast<std::int64_t>(std::clamp<sim::Int128>(raw, 1, std::int64_t{1} << 62)));
}

}  // namespace

struct Serving::Prefill {
  std::deque<std::uint32_t> queue;
  std::vector<std::uint32_t> batch;  // under way
  std::int64_t queued_tokens = 0;    // of both
  std::int64_t held_tokens = 0;      // blocks in use
  sim::Duration busy{};
};

struct Serving::Decode {
  std::vector<std::uint32_t> running;
  std::vector<std::uint32_t> joining;  // transferred, wait for the next step
  std::uint32_t placed = 0;            // sequences that have blocks here
  std::int64_t reserved_tokens = 0;
  bool stepping = false;
  std::vector<std::int64_t> made;  // tokens so far, beside `running`
  std::int64_t cached = 0;         // tokens of the running sequences
  sim::Duration busy{};
};

// What one rank sends to another for one request (push: for one layer of it).
struct Serving::Part {
  std::uint32_t request = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  sim::Bytes size{};
  std::int64_t descriptors = 0;
  bool opens = false;  // the request's first on this pair: request_overhead
  sim::FlowId flow;
  sim::Duration latency{};
};

struct Serving::Engine {
  sim::Time free{};
  bool registered = false;
  std::set<std::uint32_t> peers;
  std::map<std::tuple<std::uint32_t, std::uint32_t, sim::Bandwidth>, std::vector<std::uint32_t>>
      idle;  // parts with a flow that can be used again, by (from, to, cap)
};

Serving::Serving(ServingOptions options, std::vector<KvRequest> requests, World world)
    : options_(std::move(options)),
      requests_(std::move(requests)),
      world_(std::move(world)),
      times_(requests_.size()),
      parts_left_(requests_.size(), 0),
      prefill_(options_.prefill.instances.size()),
      decode_(options_.decode.instances.size()),
      left_(requests_.size()) {
  std::uint32_t ranks = 0;
  for (const KvPool* pool : {&options_.prefill, &options_.decode})
    for (const KvInstance& instance : pool->instances)
      for (const std::uint32_t rank : instance.ranks) ranks = std::max(ranks, rank + 1);
  engines_.resize(ranks);
}

Serving::~Serving() = default;

void Serving::schedule(sim::Time at, std::uint32_t code, std::uint32_t argument) {
  world_.queue->schedule(at, *this, code, argument);
}

void Serving::start() {
  for (std::uint32_t r = 0; r < requests_.size(); ++r) schedule(requests_[r].arrival, kArrive, r);
}

void Serving::on_event(std::uint32_t code, std::uint32_t argument) {
  switch (code) {
    case kArrive: return arrive(argument);
    case kPrefillEnd: return end_prefill(argument);
    case kStepEnd: return end_step(argument);
    case kPost: return world_.network->start(parts_[argument].flow, parts_[argument].size);
    case kPartArrived: return part_done(argument);
    case kLayer: {
      const Part& part = parts_[argument];
      return post(engines_[options_.transfer.mode == TransferMode::pull ? part.to : part.from],
                  argument);
    }
    default: return;
  }
}

void Serving::arrive(std::uint32_t request) {
  const auto least = std::ranges::min_element(prefill_, {}, &Prefill::queued_tokens);
  least->queue.push_back(request);
  least->queued_tokens += requests_[request].input_tokens;
  times_[request].prefill_instance = static_cast<std::uint32_t>(least - prefill_.begin());
  start_prefill(times_[request].prefill_instance);
}

void Serving::start_prefill(std::uint32_t index) {
  Prefill& instance = prefill_[index];
  if (!instance.batch.empty()) return;
  std::int64_t tokens = 0;
  std::vector<std::int64_t> lengths;
  while (!instance.queue.empty()) {
    const std::uint32_t next = instance.queue.front();
    const std::int64_t length = requests_[next].input_tokens;
    const std::int64_t block = options_.transfer.block_tokens;
    const std::int64_t blocks = blocks_of(length + 1, block) * block;
    if (!instance.batch.empty() && tokens + length > options_.max_batched_tokens) break;
    if (instance.held_tokens + blocks > options_.prefill.kv_tokens) break;
    instance.queue.pop_front();
    instance.batch.push_back(next);
    instance.held_tokens += blocks;
    tokens += length;
    lengths.push_back(length);
    times_[next].prefill_start = world_.queue->now();
  }
  if (instance.batch.empty()) return;
  const sim::Duration time = world_.costs->prefill(lengths);
  instance.busy += time;
  for (const std::uint32_t request : instance.batch)
    times_[request].prefill_end = world_.queue->now() + time;
  schedule(world_.queue->now() + time, kPrefillEnd, index);
  if (options_.transfer.mode == TransferMode::push)
    for (const std::uint32_t request : instance.batch) place(request);
}

void Serving::end_prefill(std::uint32_t index) {
  Prefill& instance = prefill_[index];
  const std::vector<std::uint32_t> batch = std::exchange(instance.batch, {});
  if (!batch.empty())
    world_.trace->add({options_.prefill.instances[index].ranks.front(),
                       world_.trace->name("prefill"), 0, sim::SpanKind::kernel,
                       times_[batch.front()].prefill_start, world_.queue->now()});
  for (const std::uint32_t request : batch) {
    instance.queued_tokens -= requests_[request].input_tokens;
    if (options_.transfer.mode == TransferMode::pull) place(request);
  }
  start_prefill(index);
}

std::int64_t Serving::reserved_tokens(std::uint32_t request) const {
  const std::int64_t block = options_.transfer.block_tokens;
  return blocks_of(requests_[request].input_tokens + requests_[request].output_tokens, block) *
         block;
}

// The decode instance with the fewest sequences of those with room, or the queue.
void Serving::place(std::uint32_t request) {
  const std::int64_t tokens = reserved_tokens(request);
  std::uint32_t best = 0;
  bool found = false;
  for (std::uint32_t d = 0; d < decode_.size(); ++d) {
    if (decode_[d].reserved_tokens + tokens > options_.decode.kv_tokens ||
        decode_[d].placed >= options_.max_sequences)
      continue;
    if (!found || decode_[d].placed < decode_[best].placed) best = d;
    found = true;
  }
  if (!found || !waiting_.empty()) {
    if (std::ranges::find(waiting_, request) == waiting_.end()) waiting_.push_back(request);
    return;
  }
  ++decode_[best].placed;
  decode_[best].reserved_tokens += tokens;
  times_[request].decode_instance = best;
  times_[request].transfer_start = world_.queue->now();
  start_transfer(request);
}

void Serving::retry_waiting() {
  std::deque<std::uint32_t> again = std::exchange(waiting_, {});
  while (!again.empty()) {
    const std::uint32_t request = again.front();
    place(request);
    if (!waiting_.empty()) break;  // first come, first served
    again.pop_front();
  }
  waiting_ = std::move(again);
}

std::uint32_t Serving::new_part(std::uint32_t request, std::uint32_t from, std::uint32_t to) {
  Part part;
  part.request = request;
  part.from = from;
  part.to = to;
  parts_.push_back(part);
  return static_cast<std::uint32_t>(parts_.size() - 1);
}

void Serving::start_transfer(std::uint32_t request) {
  const KvModel& model = options_.model;
  const KvTransferOptions& transfer = options_.transfer;
  RequestTimes& times = times_[request];
  const KvInstance& source = options_.prefill.instances[times.prefill_instance];
  const KvInstance& target = options_.decode.instances[times.decode_instance];
  const std::int64_t blocks = blocks_of(requests_[request].input_tokens + 1, transfer.block_tokens);
  const bool push = transfer.mode == TransferMode::push;
  const std::int64_t steps = push ? model.layers : 1;
  const std::int64_t regions = kv_regions(model) / steps;
  const sim::Time now = world_.queue->now();
  for (std::uint32_t d = 0; d < target.ranks.size(); ++d)
    for (const HeadSource& head :
         head_sources(model, static_cast<std::int64_t>(source.ranks.size()),
                      static_cast<std::int64_t>(target.ranks.size()), d)) {
      const std::int64_t width =
          model.latent_width > 0 ? model.latent_width : head.heads * model.head_dim;
      for (std::int64_t step = 0; step < steps; ++step) {
        const std::uint32_t index = new_part(request, source.ranks[head.from], target.ranks[d]);
        Part& part = parts_[index];
        part.size =
            sim::bytes(regions * blocks * transfer.block_tokens * width * options_.element_size);
        part.descriptors = transfer.join_blocks ? regions : regions * blocks;
        part.opens = step == 0;
        times.moved += part.size;
        times.descriptors += part.descriptors;
        ++parts_left_[request];
        // A layer of a prefill that is still under way is ready when its share of the time is over.
        const sim::Duration whole = times.prefill_end - times.prefill_start;
        const sim::Time ready = times.prefill_start + whole * (step + 1) / steps;
        schedule(push ? std::max(now, ready) : now, kLayer, index);
      }
    }
}

// The engine's thread posts the part's descriptors behind all before it; they leave as they are
// posted, so the flow begins with the first and is no faster than they come.
void Serving::post(Engine& engine, std::uint32_t index) {
  const KvTransferOptions& options = options_.transfer;
  Part& part = parts_[index];
  sim::Time begin = std::max(world_.queue->now(), engine.free);
  if (!engine.registered && options.registration_granule.raw() > 0) {
    const KvPool& pool = options.mode == TransferMode::pull ? options_.decode : options_.prefill;
    const sim::Bytes cache =
        kv_bytes_per_token(options_.model,
                           static_cast<std::int64_t>(pool.instances.front().ranks.size()),
                           options_.element_size) *
        pool.kv_tokens;
    begin += options.registration_cost * ((cache.raw() + options.registration_granule.raw() - 1) /
                                          options.registration_granule.raw());
  }
  engine.registered = true;
  const std::uint32_t peer = options.mode == TransferMode::pull ? part.from : part.to;
  if (engine.peers.insert(peer).second) begin += options.handshake;
  if (part.opens) begin += options.request_overhead;
  const sim::Duration posting = options.descriptor_cost * part.descriptors;
  engine.free = begin + posting;
  const sim::Bandwidth cap = posting_rate(part.size, posting);
  const auto key = std::tuple(part.from, part.to, cap);
  std::vector<std::uint32_t>& idle = engine.idle[key];
  if (idle.empty()) {
    const KvPath path = world_.paths(part.from, part.to);
    part.latency = path.latency;
    const bool slower = path.cap.raw() > 0 && (cap.raw() == 0 || path.cap < cap);
    part.flow = world_.network->add_flow(
        {.uses = path.uses, .cap = slower ? path.cap : cap, .listener = this, .tag = index});
    return schedule(begin, kPost, index);
  }
  // An idle part of the pair lends its flow; its number is the flow's tag.
  const std::uint32_t lent = idle.back();
  idle.pop_back();
  const sim::FlowId flow = parts_[lent].flow;
  const sim::Duration latency = parts_[lent].latency;
  parts_[lent] = part;
  parts_[lent].flow = flow;
  parts_[lent].latency = latency;
  schedule(begin, kPost, lent);
}

void Serving::on_flow_done(std::uint32_t tag) {
  schedule(world_.queue->now() + parts_[tag].latency, kPartArrived, tag);
}

void Serving::part_done(std::uint32_t index) {
  const Part part = parts_[index];
  Engine& engine = engines_[options_.transfer.mode == TransferMode::pull ? part.to : part.from];
  const sim::Duration posting = options_.transfer.descriptor_cost * part.descriptors;
  const sim::Bandwidth cap = posting_rate(part.size, posting);
  engine.idle[std::tuple(part.from, part.to, cap)].push_back(index);
  if (--parts_left_[part.request] > 0) return;
  RequestTimes& times = times_[part.request];
  times.transfer_end = world_.queue->now();
  const std::int64_t block = options_.transfer.block_tokens;
  prefill_[times.prefill_instance].held_tokens -=
      blocks_of(requests_[part.request].input_tokens + 1, block) * block;
  decode_[times.decode_instance].joining.push_back(part.request);
  start_step(times.decode_instance);
  start_prefill(times.prefill_instance);
}

void Serving::start_step(std::uint32_t index) {
  Decode& instance = decode_[index];
  if (instance.stepping) return;
  for (const std::uint32_t request : instance.joining) {
    instance.running.push_back(request);
    instance.made.push_back(0);
    instance.cached += requests_[request].input_tokens;
  }
  instance.joining.clear();
  if (instance.running.empty()) return;
  const sim::Duration time =
      world_.costs->decode(static_cast<std::int64_t>(instance.running.size()), instance.cached);
  instance.busy += time;
  instance.stepping = true;
  ++decode_steps_;
  world_.trace->add({options_.decode.instances[index].ranks.front(), world_.trace->name("decode"),
                     0, sim::SpanKind::kernel, world_.queue->now(), world_.queue->now() + time});
  schedule(world_.queue->now() + time, kStepEnd, index);
}

void Serving::end_step(std::uint32_t index) {
  Decode& instance = decode_[index];
  const sim::Time now = world_.queue->now();
  instance.stepping = false;
  std::size_t kept = 0;
  bool freed = false;
  for (std::size_t s = 0; s < instance.running.size(); ++s) {
    const std::uint32_t request = instance.running[s];
    const std::int64_t made = instance.made[s] + 1;
    ++instance.cached;
    if (made == 1) times_[request].first_token = now;
    if (made == requests_[request].output_tokens) {
      times_[request].end = now;
      instance.cached -= requests_[request].input_tokens + made;
      instance.reserved_tokens -= reserved_tokens(request);
      --instance.placed;
      if (--left_ == 0 && world_.finished) world_.finished();
      freed = true;
      continue;
    }
    instance.running[kept] = request;
    instance.made[kept++] = made;
  }
  instance.running.resize(kept);
  instance.made.resize(kept);
  if (freed) retry_waiting();
  start_step(index);
}

sim::Duration Serving::prefill_busy(std::size_t instance) const { return prefill_[instance].busy; }
sim::Duration Serving::decode_busy(std::size_t instance) const { return decode_[instance].busy; }

std::vector<std::string> Serving::waiting(std::size_t limit) const {
  std::vector<std::string> lines;
  for (const std::uint32_t request : waiting_)
    if (lines.size() < limit)
      lines.push_back(fmt::format("request {} waits for {} tokens of KV cache in the decode pool",
                                  request, reserved_tokens(request)));
  for (std::size_t p = 0; p < prefill_.size(); ++p)
    if (!prefill_[p].queue.empty() && lines.size() < limit)
      lines.push_back(fmt::format("{} requests wait for prefill instance {}, which holds {} tokens",
                                  prefill_[p].queue.size(), p, prefill_[p].held_tokens));
  for (std::size_t r = 0; r < parts_left_.size(); ++r)
    if (parts_left_[r] > 0 && lines.size() < limit)
      lines.push_back(fmt::format("request {} waits for {} transfers from prefill instance {}", r,
                                  parts_left_[r], times_[r].prefill_instance));
  return lines;
}

std::vector<HeadSource> head_sources(const KvModel& model, std::int64_t prefill_ranks,
                                     std::int64_t decode_ranks, std::uint32_t decode_rank) {
  if (model.latent_width > 0) return {{static_cast<std::uint32_t>(decode_rank % prefill_ranks), 0}};
  const std::int64_t heads = model.kv_heads;
  const std::int64_t held = std::max<std::int64_t>(heads / decode_ranks, 1);
  const std::int64_t first = std::int64_t{decode_rank} * heads / decode_ranks;
  std::vector<HeadSource> sources;
  for (std::int64_t h = first; h < first + held; ++h) {
    // Replicas of a head are read by turns, so that no rank serves all.
    const std::int64_t replicas = std::max<std::int64_t>(prefill_ranks / heads, 1);
    const std::int64_t from =
        h * prefill_ranks / heads + (replicas > 1 ? decode_rank % replicas : 0);
    if (sources.empty() || sources.back().from != from)
      sources.push_back({static_cast<std::uint32_t>(from), 0});
    ++sources.back().heads;
  }
  return sources;
}

}  // namespace railyard::models
