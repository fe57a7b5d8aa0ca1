#include "models/kv/transfers.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace railyard::models {
namespace {

// Weights on a work-request engine are in 1/256 of a byte's time.
constexpr double kWeightOne = 256;
constexpr double kHeaviest = 1 << 24;

}  // namespace

// Handshake: the first transfer that vLLM logs after its start spends 5.69 ms on posting 56
//   descriptors (vllm-project/vllm#25388), which take 0.05 ms when the peers know each other.
// NIXL over UCX: one 100 Gb/s rail, LMCache/LMCache#4161. A single descriptor of 256 KiB takes 31.3
// us,
//   21.4 us of them wire: 8 us a call, the rest latency. 256 descriptors of 4 KiB take 223.7 us,
//   0.87 us each; with 16 KiB each they reach the line rate.
// cuda_ipc: 7,500 tokens of an 8B model over NVLink take 20 ms with 16-token pages (30,016 copies)
//   and 8 ms with 128-token pages (3,776), by LMCache's blog: 0.457 us for each further copy.
// Mooncake: slices and how rests are merged are MC_SLICE_SIZE's. Submitting 207,360 requests takes
//   66.874 ms in the example of tebench.md: 0.32 us each. With 64 KiB slices a bonded port of 50
//   GB/s reaches 37 GB/s (kvcache-ai/Mooncake#1668): 0.46 us of NIC time each, whatever of the way
//   from thread to NIC it is. Ten sender threads per rank, each waiting for its call's end, are
//   those of vLLM's MooncakeConnector. 380 us a call: calibrated on the two smallest rows of
//   mooncake_vllm_pd (128 and 256 tokens) after their wire time; the other seven rows are
//   predictions.
KvTransferCosts kv_costs(KvLibrary library, KvBackend backend) {
  KvTransferCosts costs;
  costs.handshake = sim::microseconds(5'600);
  const bool copies = backend == KvBackend::nvlink || backend == KvBackend::pcie;
  if (library == KvLibrary::mooncake) {
    costs.request_overhead = sim::microseconds(380);
    costs.descriptor_cost = sim::nanoseconds(320);
    costs.slice = copies ? sim::Bytes() : sim::bytes(65'536);
    costs.slice_cost = copies ? sim::Duration() : sim::nanoseconds(460);
    costs.threads = 10;
    costs.synchronous = true;
  } else {
    costs.request_overhead = sim::microseconds(8);
    costs.descriptor_cost = copies ? sim::nanoseconds(457) : sim::nanoseconds(870);
  }
  return costs;
}

sim::ResourceId add_request_engine(sim::Network& network, sim::Bandwidth nic_rate) {
  return network.add_resource(nic_rate * static_cast<std::int64_t>(kWeightOne));
}

template <typename T>
std::uint32_t KvTransfers::put(std::vector<T>& slots, std::vector<std::uint32_t>& vacant, T value) {
  if (vacant.empty()) {
    slots.push_back(std::move(value));
    return static_cast<std::uint32_t>(slots.size() - 1);
  }
  const std::uint32_t slot = vacant.back();
  vacant.pop_back();
  slots[slot] = std::move(value);
  return slot;
}

std::uint32_t KvTransfers::add_sender(const KvTransferCosts& costs) {
  senders_.push_back({costs, 0, {}});
  return static_cast<std::uint32_t>(senders_.size() - 1);
}

std::uint32_t KvTransfers::add_way(KvWay way) {
  RAILYARD_CHECK(!way.empty(), "a way has a leg");
  ways_.push_back(static_cast<std::uint32_t>(legs_.size()));
  for (std::size_t i = 0; i < way.size(); ++i) {
    Leg leg;
    leg.spec = std::move(way[i]);
    if (i + 1 < way.size()) leg.next = static_cast<std::uint32_t>(legs_.size() + 1);
    legs_.push_back(std::move(leg));
  }
  return static_cast<std::uint32_t>(ways_.size() - 1);
}

void KvTransfers::call(std::uint32_t sender, sim::Duration extra, std::vector<KvPart> parts,
                       std::uint32_t tag) {
  RAILYARD_CHECK(!parts.empty(), "a call moves something");
  Call call;
  call.sender = sender;
  call.tag = tag;
  call.extra = extra;
  call.left = static_cast<std::uint32_t>(parts.size());
  call.parts = std::move(parts);
  call.times.asked = queue_->now();
  ++calls_made_;
  senders_[sender].waiting.push_back(put(calls_, vacant_calls_, std::move(call)));
  take_calls(sender);
}

void KvTransfers::take_calls(std::uint32_t index) {
  Sender& sender = senders_[index];
  while (sender.busy < sender.costs.threads && !sender.waiting.empty()) {
    const std::uint32_t id = sender.waiting.front();
    sender.waiting.pop_front();
    ++sender.busy;
    calls_[id].times.begun = queue_->now();
    queue_->schedule(queue_->now() + sender.costs.request_overhead + calls_[id].extra, *this,
                     kPosting, id);
  }
}

// Every part enters the wire when its first work request is posted.
void KvTransfers::post_parts(std::uint32_t id) {
  const KvTransferCosts& costs = senders_[calls_[id].sender].costs;
  calls_[id].times.ready = queue_->now();
  std::int64_t posted = 0;
  for (const KvPart& part : calls_[id].parts) {
    const sim::Time first = queue_->now() + costs.descriptor_cost * (posted + 1);
    posted += part.requests;
    const sim::Time last = queue_->now() + costs.descriptor_cost * posted;
    const std::uint32_t moving =
        put(moving_, vacant_moving_, Moving{id, part, ways_[part.way], last});
    queue_->schedule(first, *this, kEnter, moving);
    moved_ += part.size;
  }
  requests_ += posted;
  Call& call = calls_[id];
  call.times.posted = queue_->now() + costs.descriptor_cost * posted;
  if (!costs.synchronous) queue_->schedule(call.times.posted, *this, kRelease, call.sender);
}

void KvTransfers::enter(std::uint32_t id) {
  const std::uint32_t leg = moving_[id].leg;
  legs_[leg].waiting.push_back(id);
  if (legs_[leg].current == kNone) start_next(leg);
}

// A request's `slice_cost` is worth so many of the NIC's bytes; the whole part weighs on the NIC's
// work-request engine as if it were longer by those.
sim::FlowId KvTransfers::flow(std::uint32_t index, const Moving& moving) {
  Leg& leg = legs_[index];
  const sim::Duration cost = senders_[calls_[moving.call].sender].costs.slice_cost;
  std::uint32_t weight = 0;
  if (leg.spec.engine.valid() && cost.count() > 0 && moving.part.size.raw() > 0) {
    const double per_request =
        sim::to_seconds(cost) * sim::to_gigabytes_per_second(leg.spec.nic_rate) * 1e9;
    const double ratio = 1 + static_cast<double>(moving.part.requests) * per_request /
                                 static_cast<double>(moving.part.size.raw());
    weight = static_cast<std::uint32_t>(std::min(ratio * kWeightOne, kHeaviest));
  }
  const auto found = leg.flows.find(weight);
  if (found != leg.flows.end()) return found->second;
  std::vector<sim::ResourceUse> uses = leg.spec.uses;
  if (weight > 0) uses.push_back({leg.spec.engine, weight});
  const sim::FlowId made =
      network_->add_flow({.uses = uses, .cap = leg.spec.cap, .listener = this, .tag = index});
  leg.flows.emplace(weight, made);
  return made;
}

void KvTransfers::start_next(std::uint32_t index) {
  Leg& leg = legs_[index];
  if (leg.waiting.empty()) return;
  leg.current = leg.waiting.front();
  leg.waiting.pop_front();
  const Moving& moving = moving_[leg.current];
  Call& call = calls_[moving.call];
  if (!std::exchange(call.wire_seen, true)) call.times.on_wire = queue_->now();
  network_->start(flow(index, moving), moving.part.size);
}

void KvTransfers::on_flow_done(std::uint32_t index) {
  Leg& leg = legs_[index];
  const std::uint32_t id = std::exchange(leg.current, kNone);
  const sim::Time sent = std::max(queue_->now(), moving_[id].posted);
  queue_->schedule(sent + leg.spec.latency, *this, kArrived, id);
  start_next(index);
}

void KvTransfers::arrived(std::uint32_t id) {
  const std::uint32_t next = legs_[moving_[id].leg].next;
  if (next != kNone) {
    moving_[id].leg = next;
    enter(id);
    return;
  }
  const std::uint32_t call_id = moving_[id].call;
  vacant_moving_.push_back(id);
  if (--calls_[call_id].left > 0) return;
  Call call = std::move(calls_[call_id]);
  vacant_calls_.push_back(call_id);
  call.times.done = queue_->now();
  if (senders_[call.sender].costs.synchronous)
    queue_->schedule(queue_->now(), *this, kRelease, call.sender);
  if (listener_ != nullptr) listener_->on_call_done(call.tag, call.times);
}

void KvTransfers::on_event(std::uint32_t code, std::uint32_t argument) {
  switch (static_cast<Code>(code)) {
    case kPosting: return post_parts(argument);
    case kEnter: return enter(argument);
    case kRelease: --senders_[argument].busy; return take_calls(argument);
    case kArrived: return arrived(argument);
  }
}

}  // namespace railyard::models
