#include "models/kv/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/check.h"

namespace railyard::models {
namespace {

enum Code : std::uint32_t {
  kArrive,  // a request
  kLayers,  // a prefill instance: layers of its batch were computed
  kStepEnd  // a decode instance
};

}  // namespace

Serving::Serving(ServingOptions options, std::vector<KvRequest> requests, World world)
    : options_(std::move(options)),
      requests_(std::move(requests)),
      world_(std::move(world)),
      pieces_(kv_pieces(options_.model,
                        static_cast<std::int64_t>(options_.prefill.instances.front().ranks.size()),
                        static_cast<std::int64_t>(options_.decode.instances.front().ranks.size()),
                        options_.element_size)),
      times_(requests_.size()),
      states_(requests_.size()),
      prefill_(options_.prefill.instances.size(), Prefill(options_.prefill.blocks)),
      decode_(options_.decode.instances.size(), Decode(options_.decode.blocks)),
      met_(prefill_.size() * decode_.size(), false),
      left_(requests_.size()) {
  RAILYARD_CHECK(options_.links.size() == met_.size(), "every pair of instances has its links");
  for (std::uint32_t r = 0; r < requests_.size(); ++r)
    RAILYARD_CHECK(
        all_blocks(r) <= options_.decode.blocks && prompt_blocks(r) <= options_.prefill.blocks,
        "a request fits an empty cache");
  world_.transfers->set_listener(*this);
}

void Serving::schedule(sim::Time at, std::uint32_t code, std::uint32_t argument) {
  world_.queue->schedule(at, *this, code, argument);
}

void Serving::start() {
  if (options_.clients == 0) {
    for (std::uint32_t r = 0; r < requests_.size(); ++r) schedule(requests_[r].arrival, kArrive, r);
    return;
  }
  for (std::uint32_t client = 0; client < options_.clients; ++client) arrive_next();
}

void Serving::arrive_next() {
  if (next_ < requests_.size())
    schedule(world_.queue->now(), kArrive, static_cast<std::uint32_t>(next_++));
}

void Serving::on_event(std::uint32_t code, std::uint32_t argument) {
  switch (static_cast<Code>(code)) {
    case kArrive: return arrive(argument);
    case kLayers: return layers_computed(argument);
    case kStepEnd: return end_step(argument);
  }
}

// The slot of the first output belongs to the prompt's blocks.
std::int64_t Serving::prompt_blocks(std::uint32_t request) const {
  return blocks_of(requests_[request].input_tokens + 1, options_.block_tokens);
}

std::int64_t Serving::all_blocks(std::uint32_t request) const {
  return blocks_of(requests_[request].input_tokens + requests_[request].output_tokens,
                   options_.block_tokens);
}

std::size_t Serving::pair_of(std::uint32_t request) const {
  return times_[request].prefill_instance * decode_.size() + times_[request].decode_instance;
}

void Serving::arrive(std::uint32_t request) {
  const auto least = std::ranges::min_element(prefill_, {}, &Prefill::queued_tokens);
  least->queue.push_back(request);
  least->queued_tokens += requests_[request].input_tokens;
  times_[request].arrival = world_.queue->now();
  times_[request].prefill_instance = static_cast<std::uint32_t>(least - prefill_.begin());
  start_prefill(times_[request].prefill_instance);
}

void Serving::start_prefill(std::uint32_t index) {
  Prefill& instance = prefill_[index];
  if (!instance.batch.empty()) return;
  std::int64_t tokens = 0;
  while (!instance.queue.empty()) {
    const std::uint32_t next = instance.queue.front();
    tokens += requests_[next].input_tokens;
    if (!instance.batch.empty() && tokens > options_.max_batched_tokens) break;
    if (instance.cache.free() < prompt_blocks(next)) break;
    states_[next].prefill_blocks = instance.cache.allocate(prompt_blocks(next));
    instance.queue.pop_front();
    instance.batch.push_back(next);
  }
  if (!instance.batch.empty()) start_batch(index);
}

void Serving::start_batch(std::uint32_t index) {
  Prefill& instance = prefill_[index];
  std::vector<std::int64_t> lengths;
  for (const std::uint32_t request : instance.batch) {
    lengths.push_back(requests_[request].input_tokens);
    times_[request].prefill_start = world_.queue->now();
  }
  instance.begin = world_.queue->now();
  instance.takes = world_.costs->prefill(lengths);
  instance.busy += instance.takes;
  instance.layers = 0;
  for (const std::uint32_t request : instance.batch) {
    times_[request].prefill_end = instance.begin + instance.takes;
    if (options_.mode == TransferMode::push) place(request);
  }
  schedule_layers(index);
}

// When the layers of the next push are computed, or all of them. Layers take equal shares.
void Serving::schedule_layers(std::uint32_t index) {
  Prefill& instance = prefill_[index];
  const std::int64_t all = options_.model.layers;
  const std::int64_t step = options_.mode == TransferMode::push ? options_.layers_per_push : all;
  instance.layers = std::min(instance.layers + step, all);
  const auto share = sim::Int128(instance.takes.count()) * instance.layers / all;
  schedule(instance.begin + sim::Duration(static_cast<std::int64_t>(share)), kLayers, index);
}

void Serving::layers_computed(std::uint32_t index) {
  const Prefill& instance = prefill_[index];
  for (const std::uint32_t request : instance.batch) {
    states_[request].layers_ready = instance.layers;
    if (states_[request].placed) send_ready(request);
  }
  if (instance.layers < options_.model.layers) return schedule_layers(index);
  end_prefill(index);
}

void Serving::end_prefill(std::uint32_t index) {
  Prefill& instance = prefill_[index];
  const std::vector<std::uint32_t> batch = std::exchange(instance.batch, {});
  world_.trace->add({options_.prefill.instances[index].ranks.front(), world_.trace->name("prefill"),
                     0, sim::SpanKind::kernel, instance.begin, world_.queue->now()});
  for (const std::uint32_t request : batch) {
    instance.queued_tokens -= requests_[request].input_tokens;
    if (options_.mode == TransferMode::pull) place(request);
  }
  start_prefill(index);
}

// First come, first served, by whichever decode instance has room.
void Serving::place(std::uint32_t request) {
  if (!waiting_.empty() || !try_place(request)) waiting_.push_back(request);
}

bool Serving::try_place(std::uint32_t request) {
  const std::int64_t blocks = all_blocks(request);
  Decode* best = nullptr;
  for (Decode& each : decode_) {
    if (each.cache.free() < blocks || each.placed >= options_.max_sequences) continue;
    if (best == nullptr || each.placed < best->placed) best = &each;
  }
  if (best == nullptr) return false;
  ++best->placed;
  State& state = states_[request];
  state.placed = true;
  state.decode_blocks = best->cache.allocate(blocks);
  times_[request].decode_instance = static_cast<std::uint32_t>(best - decode_.data());
  times_[request].transfer_start = world_.queue->now();
  count_descriptors(request);
  send_ready(request);
  return true;
}

void Serving::retry_waiting() {
  while (!waiting_.empty() && try_place(waiting_.front())) waiting_.pop_front();
}

void Serving::count_descriptors(std::uint32_t request) {
  State& state = states_[request];
  const std::vector<KvLink>& links = options_.links[pair_of(request)];
  const std::int64_t blocks = prompt_blocks(request);
  // Blocks of the answer stay where they are.
  const std::vector<std::int64_t> runs = kv_runs(state.prefill_blocks, state.decode_blocks);
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    const KvTransferCosts& costs = world_.transfers->costs(links[p].sender);
    const sim::Bytes block = pieces_[p].per_token * options_.block_tokens;
    std::int64_t count = 0;
    if (costs.join_blocks && pieces_[p].whole)
      for (const std::int64_t run : runs) count += kv_slices(block * run, costs.slice);
    else
      count = blocks * kv_slices(block, costs.slice);
    state.descriptors.push_back(count);
  }
}

// Work requests are dealt out to the ways by turns.
void Serving::add_parts(std::uint32_t request, std::size_t piece, std::int64_t regions,
                        std::vector<KvPart>& parts) {
  const KvLink& link = options_.links[pair_of(request)][piece];
  const std::int64_t tokens = prompt_blocks(request) * options_.block_tokens;
  const sim::Bytes size = pieces_[piece].per_token * (tokens * regions);
  const std::int64_t count = states_[request].descriptors[piece] * regions;
  const auto ways = static_cast<std::int64_t>(link.ways.size());
  std::int64_t given = 0;
  for (std::int64_t w = 0; w < ways; ++w) {
    const std::int64_t own = count / ways + (w < count % ways ? 1 : 0);
    if (own == 0) continue;
    const auto share = [&](std::int64_t requests) {
      return static_cast<std::int64_t>(sim::Int128(size.raw()) * requests / count);
    };
    const std::int64_t bytes = share(given + own) - share(given);
    given += own;
    parts.push_back({link.ways[static_cast<std::size_t>(w)], sim::bytes(bytes), own});
  }
  times_[request].moved += size;
  times_[request].descriptors += count;
}

// All layers that are computed and not yet sent: one call of every rank that asks.
void Serving::send_ready(std::uint32_t request) {
  State& state = states_[request];
  const std::int64_t layers =
      state.layers_ready - std::exchange(state.layers_sent, state.layers_ready);
  if (layers == 0) return;
  const std::int64_t regions = kv_regions(options_.model) / options_.model.layers * layers;
  const std::size_t pair = pair_of(request);
  std::map<std::uint32_t, std::vector<KvPart>> calls;  // by sender
  for (std::size_t p = 0; p < pieces_.size(); ++p)
    add_parts(request, p, regions, calls[options_.links[pair][p].sender]);
  const bool known = met_[pair];
  met_[pair] = true;
  state.open_calls += static_cast<std::int64_t>(calls.size());
  for (auto& [sender, parts] : calls) {
    const sim::Duration extra = known ? sim::Duration() : world_.transfers->costs(sender).handshake;
    world_.transfers->call(sender, extra, std::move(parts), request);
  }
}

void Serving::on_call_done(std::uint32_t request, const KvCallTimes& call) {
  RequestTimes& times = times_[request];
  State& state = states_[request];
  if (!std::exchange(state.on_wire, true) || call.on_wire < times.on_wire)
    times.on_wire = call.on_wire;
  times.posting = std::max(times.posting, call.posted - call.ready);
  --state.open_calls;
  if (state.open_calls == 0 && state.layers_sent == options_.model.layers) transferred(request);
}

void Serving::transferred(std::uint32_t request) {
  RequestTimes& times = times_[request];
  times.transfer_end = world_.queue->now();
  world_.trace->add_digest(
      std::uint64_t{request} << 32 ^
      static_cast<std::uint64_t>(times.transfer_end.time_since_epoch().count()));
  prefill_[times.prefill_instance].cache.release(
      std::exchange(states_[request].prefill_blocks, {}));
  decode_[times.decode_instance].joining.push_back(request);
  start_step(times.decode_instance);
  start_prefill(times.prefill_instance);
}

void Serving::start_step(std::uint32_t index) {
  Decode& instance = decode_[index];
  if (instance.stepping) return;
  for (const std::uint32_t request : std::exchange(instance.joining, {})) {
    instance.running.push_back(request);
    instance.cached += requests_[request].input_tokens;
  }
  if (instance.running.empty()) return;
  const auto batch = static_cast<std::int64_t>(instance.running.size());
  const sim::Duration time = world_.costs->decode(batch, instance.cached);
  instance.busy += time;
  instance.stepping = true;
  ++decode_steps_;
  decoded_ += batch;
  world_.trace->add({options_.decode.instances[index].ranks.front(), world_.trace->name("decode"),
                     0, sim::SpanKind::kernel, world_.queue->now(), world_.queue->now() + time});
  schedule(world_.queue->now() + time, kStepEnd, index);
}

void Serving::end_step(std::uint32_t index) {
  Decode& instance = decode_[index];
  instance.stepping = false;
  instance.cached += static_cast<std::int64_t>(instance.running.size());
  std::vector<std::uint32_t> kept;
  for (const std::uint32_t request : instance.running) {
    if (++states_[request].made == 1) times_[request].first_token = world_.queue->now();
    if (states_[request].made == requests_[request].output_tokens)
      end_request(request);
    else
      kept.push_back(request);
  }
  const bool freed = kept.size() < instance.running.size();
  instance.running = std::move(kept);
  if (freed) retry_waiting();
  start_step(index);
}

void Serving::end_request(std::uint32_t request) {
  Decode& instance = decode_[times_[request].decode_instance];
  times_[request].end = world_.queue->now();
  instance.cached -= requests_[request].input_tokens + requests_[request].output_tokens;
  instance.cache.release(std::exchange(states_[request].decode_blocks, {}));
  --instance.placed;
  if (--left_ == 0 && world_.finished) world_.finished();
  if (options_.clients > 0) arrive_next();
}

sim::Duration Serving::prefill_busy(std::size_t instance) const { return prefill_[instance].busy; }
sim::Duration Serving::decode_busy(std::size_t instance) const { return decode_[instance].busy; }

double Serving::mean_batch() const {
  return decode_steps_ == 0 ? 0
                            : static_cast<double>(decoded_) / static_cast<double>(decode_steps_);
}

std::vector<std::string> Serving::waiting(std::size_t limit) const {
  std::vector<std::string> lines;
  for (const std::uint32_t request : waiting_)
    if (lines.size() < limit)
      lines.push_back(fmt::format("request {} waits for {} blocks of KV cache in the decode pool",
                                  request, all_blocks(request)));
  for (std::size_t p = 0; p < prefill_.size(); ++p)
    if (!prefill_[p].queue.empty() && lines.size() < limit)
      lines.push_back(
          fmt::format("{} requests wait for prefill instance {}, which has {} free blocks",
                      prefill_[p].queue.size(), p, prefill_[p].cache.free()));
  for (std::size_t r = 0; r < states_.size(); ++r)
    if (states_[r].open_calls > 0 && lines.size() < limit)
      lines.push_back(fmt::format("request {} waits for {} transfers from prefill instance {}", r,
                                  states_[r].open_calls, times_[r].prefill_instance));
  return lines;
}

}  // namespace railyard::models
