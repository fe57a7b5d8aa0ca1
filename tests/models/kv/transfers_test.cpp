// Calls, work requests and wires, solved by hand. A wire of 10 GB/s moves 10,000 B in 1 us.
#include "models/kv/transfers.h"

#include <doctest/doctest.h>

#include <vector>

namespace railyard::models {
namespace {

using namespace sim::literals;

class Fixture : public KvCallListener {
 public:
  Fixture() : network(queue), transfers(queue, network) {
    queue.set_settler(&network);
    transfers.set_listener(*this);
    wire = network.add_resource(10_GBps);
  }
  void on_call_done(std::uint32_t tag, const KvCallTimes& call) override {
    if (tag >= times.size()) times.resize(tag + 1);
    times[tag] = call;
  }
  std::uint32_t way(sim::Duration latency = {}, sim::ResourceId engine = {}) {
    const std::vector<sim::ResourceUse> uses{{wire, 1}};
    return transfers.add_way({{uses, latency, {}, engine, 10_GBps}});
  }
  [[nodiscard]] sim::Duration done(std::uint32_t tag) const {
    return times.at(tag).done.time_since_epoch();
  }

  sim::EventQueue queue;
  sim::Network network;
  KvTransfers transfers;
  sim::ResourceId wire;
  std::vector<KvCallTimes> times;
};

KvTransferCosts plain() {
  KvTransferCosts costs;
  costs.request_overhead = 5_us;
  return costs;
}

TEST_CASE("kv transfers: overhead, first descriptor, wire, latency") {
  Fixture f;
  KvTransferCosts costs = plain();
  costs.descriptor_cost = 100_ns;
  const std::uint32_t sender = f.transfers.add_sender(costs);
  const std::uint32_t way = f.way(2_us);
  // 20 requests are posted in 2 us, the wire takes 10 us: it hides all but the first.
  f.transfers.call(sender, 3_us, {{way, sim::bytes(100'000), 20}}, 0);
  f.queue.run();
  CHECK(f.done(0) == 5_us + 3_us + 100_ns + 10_us + 2_us);
  CHECK(f.times[0].on_wire.time_since_epoch() == 8_us + 100_ns);
  CHECK(f.times[0].posted.time_since_epoch() == 10_us);
  CHECK(f.transfers.requests() == 20);
  CHECK(f.transfers.moved() == sim::bytes(100'000));
}

TEST_CASE("kv transfers: many small descriptors are bound by posting") {
  Fixture f;
  KvTransferCosts costs = plain();
  costs.descriptor_cost = 1_us;
  const std::uint32_t sender = f.transfers.add_sender(costs);
  f.transfers.call(sender, {}, {{f.way(), sim::bytes(100'000), 50}}, 0);
  f.queue.run();
  CHECK(f.done(0) == 5_us + 50_us);  // 10 us of wire within
}

TEST_CASE("kv transfers: the NIC's time per work request adds to the wire's") {
  Fixture f;
  KvTransferCosts costs = plain();
  costs.slice_cost = 250_ns;
  const std::uint32_t sender = f.transfers.add_sender(costs);
  const sim::ResourceId engine = add_request_engine(f.network, 10_GBps);
  // 100,000 B are 10 us; 16 requests of 250 ns another 4 us.
  f.transfers.call(sender, {}, {{f.way({}, engine), sim::bytes(100'000), 16}}, 0);
  f.queue.run();
  CHECK(sim::to_us(f.done(0)) == doctest::Approx(5 + 14).epsilon(0.002));
  CHECK(f.network.carried(f.wire) == sim::bytes(100'000));  // the link carries data only
}

TEST_CASE("kv transfers: what the NIC spends on requests is free for others on the link") {
  Fixture f;
  KvTransferCosts costs;
  costs.slice_cost = 250_ns;
  const std::uint32_t slow = f.transfers.add_sender(costs);
  const std::uint32_t plain_sender = f.transfers.add_sender(KvTransferCosts());
  const sim::ResourceId engine = add_request_engine(f.network, 10_GBps);
  // Alone, the first moves at 10 / 4 GB/s (40 us for 100 kB with 120 requests of 250 ns); the other
  // gets what is left of the link, 7.5 GB/s, and 150 kB take it 20 us.
  f.transfers.call(slow, {}, {{f.way({}, engine), sim::bytes(100'000), 120}}, 0);
  f.transfers.call(plain_sender, {}, {{f.way(), sim::bytes(150'000), 1}}, 1);
  f.queue.run();
  CHECK(sim::to_us(f.done(0)) == doctest::Approx(40).epsilon(0.002));
  CHECK(sim::to_us(f.done(1)) == doctest::Approx(20).epsilon(0.002));
}

TEST_CASE("kv transfers: a thread takes one call after the other, a pool several") {
  for (const std::uint32_t threads : {1U, 2U}) {
    CAPTURE(threads);
    Fixture f;
    KvTransferCosts costs = plain();
    costs.threads = threads;
    costs.descriptor_cost = 1_us;
    const std::uint32_t sender = f.transfers.add_sender(costs);
    for (std::uint32_t tag = 0; tag < 2; ++tag)
      f.transfers.call(sender, {}, {{f.way(), sim::bytes(10'000), 10}}, tag);
    f.queue.run();
    CHECK(f.done(0) == 15_us);  // 5 us overhead, 10 us posting
    CHECK(f.done(1) == (threads == 1 ? 30_us : 15_us));
  }
}

TEST_CASE("kv transfers: a synchronous library waits for the data") {
  for (const bool synchronous : {false, true}) {
    CAPTURE(synchronous);
    Fixture f;
    KvTransferCosts costs = plain();
    costs.synchronous = synchronous;
    const std::uint32_t sender = f.transfers.add_sender(costs);
    const std::uint32_t way = f.way();
    for (std::uint32_t tag = 0; tag < 2; ++tag)
      f.transfers.call(sender, {}, {{way, sim::bytes(200'000), 1}}, tag);
    f.queue.run();
    CHECK(f.done(0) == 25_us);  // 5 + 20
    // Else the second waits on the way, not in the thread: 5 us of overhead are hidden.
    CHECK(f.done(1) == (synchronous ? 50_us : 45_us));
  }
}

TEST_CASE("kv transfers: parts of a way follow each other, ways share the wire") {
  Fixture f;
  const std::uint32_t a = f.transfers.add_sender(plain());
  const std::uint32_t b = f.transfers.add_sender(plain());
  const std::uint32_t shared = f.way();
  // In order: 10 us, then 20 us.
  f.transfers.call(a, {}, {{shared, sim::bytes(100'000), 1}, {shared, sim::bytes(200'000), 1}}, 0);
  f.queue.run();
  CHECK(f.done(0) == 35_us);
  // Side by side: both at half the rate until the shorter ends.
  Fixture g;
  const std::uint32_t c = g.transfers.add_sender(plain());
  const std::uint32_t d = g.transfers.add_sender(plain());
  g.transfers.call(c, {}, {{g.way(), sim::bytes(100'000), 1}}, 0);
  g.transfers.call(d, {}, {{g.way(), sim::bytes(200'000), 1}}, 1);
  g.queue.run();
  CHECK(g.done(0) == 25_us);
  CHECK(g.done(1) == 35_us);
  (void)b;
}

TEST_CASE("kv transfers: a storage is written, then read") {
  Fixture f;
  const sim::ResourceId read = f.network.add_resource(20_GBps);
  const std::vector<sim::ResourceUse> in{{f.wire, 1}};
  const std::vector<sim::ResourceUse> out{{read, 1}};
  const std::uint32_t way =
      f.transfers.add_way({{in, 100_us, {}, {}, {}}, {out, 100_us, {}, {}, {}}});
  f.transfers.call(f.transfers.add_sender(plain()), {}, {{way, sim::bytes(1'000'000), 1}}, 0);
  f.queue.run();
  CHECK(f.done(0) == 5_us + 100_us + 100_us + 50_us + 100_us);
}

TEST_CASE("kv transfers: costs of the libraries") {
  const KvTransferCosts mooncake = kv_costs(KvLibrary::mooncake, KvBackend::rdma);
  CHECK(mooncake.slice == 64_KiB);
  CHECK(mooncake.synchronous);
  // #1668: 64 KiB slices on a 50 GB/s port reach 37 GB/s.
  const double slice = 65'536 / 50e9 + sim::to_seconds(mooncake.slice_cost);
  CHECK(65'536 / slice == doctest::Approx(37e9).epsilon(0.001));
  const KvTransferCosts nixl = kv_costs(KvLibrary::nixl, KvBackend::rdma);
  // LMCache#4161: 256 descriptors of 4 KiB take 223.7 us on a wire that needs 86.
  CHECK(256 * sim::to_us(nixl.descriptor_cost) == doctest::Approx(223.7).epsilon(0.01));
  CHECK_FALSE(nixl.synchronous);
}

}  // namespace
}  // namespace railyard::models
