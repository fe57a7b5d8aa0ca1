#include "sim/network.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/sim/max_min_oracle.h"

using namespace railyard::sim;            // NOLINT
using namespace railyard::sim::literals;  // NOLINT
using railyard::tests::max_min_rates;
using railyard::tests::OracleFlow;

namespace {

Bandwidth raw(std::int64_t units) { return Bandwidth::from_raw(units); }

// A network whose flows all start at 0 with (practically) endless work; reports rates at once.
struct Rates {
  EventQueue queue;
  Network network{queue};
  std::vector<FlowId> flows;

  Rates() { queue.set_settler(&network); }
  std::size_t resource(std::int64_t capacity, std::uint32_t multiplicity = 1) {
    return network.add_resource(raw(capacity), multiplicity).index();
  }
  void flow(std::vector<ResourceUse> uses, std::int64_t cap = 0, std::uint32_t share = 1,
            std::uint32_t multiplicity = 1) {
    flows.push_back(network.add_flow(
        {.uses = uses, .cap = raw(cap), .share = share, .multiplicity = multiplicity}));
    network.start(flows.back(), bytes(1LL << 40));
  }
  std::vector<std::int64_t> solve() {
    network.settle();
    std::vector<std::int64_t> rates;
    for (const FlowId flow : flows) rates.push_back(network.rate(flow).raw());
    return rates;
  }
};

ResourceUse use(std::size_t resource, std::uint32_t weight = 1) {
  return {ResourceId(resource), weight};
}

struct Recorder : FlowListener {
  explicit Recorder(EventQueue& q) : queue(&q) {}
  void on_flow_done(std::uint32_t tag) override {
    done.emplace_back(tag, queue->now().time_since_epoch().count());
  }
  EventQueue* queue;
  std::vector<std::pair<std::uint32_t, std::int64_t>> done;
};

}  // namespace

TEST_CASE("network: max-min rates of hand-solved systems") {
  SUBCASE("shares 2:1 on one resource (SimGrid maxmin_test: C=3, penalty 1,2 -> 2, 1)") {
    Rates r;
    const auto c = r.resource(3);
    r.flow({use(c)}, 0, 2);
    r.flow({use(c)}, 0, 1);
    CHECK(r.solve() == std::vector<std::int64_t>{2, 1});
  }
  SUBCASE("weights 1,2 (C=3, w=1,2 -> 1, 1)") {
    Rates r;
    const auto c = r.resource(3);
    r.flow({use(c)});
    r.flow({use(c, 2)});
    CHECK(r.solve() == std::vector<std::int64_t>{1, 1});
  }
  SUBCASE("C=20, weights 1,2, penalties 1,2 -> 10, 5") {
    Rates r;
    const auto c = r.resource(20);
    r.flow({use(c, 1)}, 0, 2);
    r.flow({use(c, 2)}, 0, 1);
    CHECK(r.solve() == std::vector<std::int64_t>{10, 5});
  }
  SUBCASE("two resources: C1=20 as above, C2=60 -> 10, 5, 40") {
    // Flow 1 (share 2) crosses both: on C2 it takes w=2 * 10 = 20, flow 3 the rest.
    Rates r;
    const auto c1 = r.resource(20);
    const auto c2 = r.resource(60);
    r.flow({use(c1, 1), use(c2, 2)}, 0, 2);
    r.flow({use(c1, 2)}, 0, 1);
    r.flow({use(c2, 1)}, 0, 2);
    CHECK(r.solve() == std::vector<std::int64_t>{10, 5, 40});
  }
  SUBCASE("the classic chain: long flow and two short ones") {
    // Level 1: C1 = 10 / 2 = 5 < C2 = 30 / 2 = 15; level 2: C2 = (30 - 5) / 1.
    Rates r;
    const auto c1 = r.resource(10);
    const auto c2 = r.resource(30);
    r.flow({use(c1), use(c2)});
    r.flow({use(c1)});
    r.flow({use(c2)});
    CHECK(r.solve() == std::vector<std::int64_t>{5, 5, 25});
  }
  SUBCASE("a cap frees its share for the others") {
    Rates r;
    const auto c = r.resource(100);
    r.flow({use(c)}, 10);
    r.flow({use(c)});
    r.flow({use(c)});
    CHECK(r.solve() == std::vector<std::int64_t>{10, 45, 45});
  }
  SUBCASE("rounding: shares of one level are rounded down once, whatever the order") {
    // floor(5 / 3) = 1 for all three; the flow that also crosses the other resource is no
    // exception.
    Rates r;
    const auto c1 = r.resource(5);
    const auto c2 = r.resource(1);
    r.flow({use(c1), use(c2)});
    r.flow({use(c1)});
    r.flow({use(c1)});
    CHECK(r.solve() == std::vector<std::int64_t>{1, 1, 1});
  }
  SUBCASE("multiplicity: a flow standing for four on a resource standing for two") {
    Rates r;
    const auto c = r.resource(100, 2);
    r.flow({use(c)}, 0, 1, 4);
    CHECK(r.solve() == std::vector<std::int64_t>{50});
  }
}

TEST_CASE("network: 200 random systems against the slow solver, also after every change") {
  std::mt19937_64 random(20240717);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (int system = 0; system < 200; ++system) {
    Rates r;
    std::vector<std::int64_t> capacity;
    for (std::int64_t i = pick(1, 12); i > 0; --i) {
      const std::int64_t multiplicity = pick(0, 3) == 0 ? pick(2, 4) : 1;
      const std::int64_t unit = pick(0, 1) == 0 ? pick(300, 900) : pick(1, 1'000'000'000'000);
      if (unit * multiplicity < 300) continue;
      r.resource(unit, static_cast<std::uint32_t>(multiplicity));
      capacity.push_back(unit * multiplicity);
    }
    if (capacity.empty()) continue;
    std::vector<OracleFlow> flows;
    for (std::int64_t i = pick(1, 24); i > 0; --i) {
      OracleFlow flow;
      std::vector<ResourceUse> uses;
      flow.share = pick(0, 3) == 0 ? pick(2, 3) : 1;
      const std::int64_t multiplicity = pick(0, 4) == 0 ? 2 : 1;
      for (std::size_t c = 0; c < capacity.size(); ++c) {
        if (pick(0, 2) != 0) continue;
        const std::int64_t weight = pick(0, 3) == 0 ? pick(2, 3) : 1;
        uses.push_back(use(c, static_cast<std::uint32_t>(weight)));
        flow.uses.emplace_back(c, weight * multiplicity);
      }
      if (uses.empty()) continue;
      flow.cap = pick(0, 2) == 0 ? pick(10, 2000) : 0;
      r.flow(uses, flow.cap, static_cast<std::uint32_t>(flow.share),
             static_cast<std::uint32_t>(multiplicity));
      flows.push_back(flow);
      if (pick(0, 1) == 0) r.network.settle();  // some join in one instant, some later
    }
    CAPTURE(system);
    REQUIRE(r.solve() == max_min_rates(capacity, flows));
  }
}

TEST_CASE("network: flows that come and go keep max-min rates and finish at the exact picosecond") {
  // Two flows share 10 B/s (raw units: 10 * 65536). Flow 0: 20 B, flow 1: 50 B, both at 0.
  // Each gets 5 B/s until 4 s; then flow 1 has 30 B left at 10 B/s: 7 s.
  EventQueue queue;
  Network network(queue);
  queue.set_settler(&network);
  Recorder recorder(queue);
  const std::array<ResourceUse, 1> uses{use(network.add_resource(bytes_per_second(10)).index())};
  const FlowId a = network.add_flow({.uses = uses, .listener = &recorder, .tag = 0});
  const FlowId b = network.add_flow({.uses = uses, .listener = &recorder, .tag = 1});
  network.start(a, 20_B);
  network.start(b, 50_B);
  queue.run();
  CHECK(recorder.done == std::vector<std::pair<std::uint32_t, std::int64_t>>{
                             {0, 4'000'000'000'000}, {1, 7'000'000'000'000}});
  CHECK(network.carried(ResourceId(0)) == 70_B);
  CHECK(network.active_flows() == 0);
}

TEST_CASE(
    "network: a flow alone takes exactly transfer_time, from 1 B to 16 TiB, at t = 0 and later") {
  for (const Bytes size : {1_B, 512_MiB, 16_TiB}) {
    EventQueue queue;
    Network network(queue);
    queue.set_settler(&network);
    Recorder recorder(queue);
    const std::array<ResourceUse, 1> uses{
        use(network.add_resource(Bandwidth::from_raw(25'000'000'001)).index())};
    const FlowId flow = network.add_flow({.uses = uses, .listener = &recorder});
    network.start(flow, size);
    queue.run();
    const Duration alone = transfer_time(size, Bandwidth::from_raw(25'000'000'001));
    REQUIRE(recorder.done.size() == 1);
    if (alone < Duration::max()) CHECK(recorder.done[0].second == alone.count());
  }
}

namespace {

// Restarts its flow until `left` is used up, within the instant of each completion.
struct Restarter : FlowListener {
  Network* network = nullptr;
  FlowId flow;
  int left = 0;
  void on_flow_done(std::uint32_t) override {
    if (left-- > 0) network->start(flow, 1000_B);
  }
};

}  // namespace

TEST_CASE("network: a connection whose next chunk is ready triggers no solve") {
  EventQueue queue;
  Network network(queue);
  queue.set_settler(&network);
  const std::array<ResourceUse, 1> uses{use(network.add_resource(bytes_per_second(1000)).index())};
  Restarter a;
  Restarter b;
  for (Restarter* each : {&a, &b}) {
    each->network = &network;
    each->flow = network.add_flow({.uses = uses, .listener = each});
    each->left = 99;
    network.start(each->flow, 1000_B);
  }
  queue.run();
  // 2 x 100 kB over 1 kB/s, shared throughout; one solve when they start, none while both go on.
  CHECK(to_seconds(queue.now().time_since_epoch()) == doctest::Approx(200));
  CHECK(network.solves() == 1);
}

// Two flows share a link of 10 B/ps; at 10 s its capacity falls to a tenth. 100 units of work each:
// the first 50 at rate 5, then 50 left at rate 0.5.
TEST_CASE("network: a capacity that changes under way") {
  EventQueue queue;
  Network network(queue);
  queue.set_settler(&network);
  Recorder recorder(queue);
  const ResourceId link = network.add_resource(10_GBps);
  const ResourceId side = network.add_resource(8_GBps);
  std::vector<FlowId> flows;
  for (std::uint32_t tag = 0; tag < 2; ++tag) {
    const std::vector<ResourceUse> uses{{link, 1}};
    flows.push_back(network.add_flow({.uses = uses, .listener = &recorder, .tag = tag}));
    network.start(flows.back(), bytes(100'000));
  }
  const std::vector<ResourceUse> elsewhere{{side, 1}};
  const FlowId alone = network.add_flow({.uses = elsewhere, .listener = &recorder, .tag = 2});
  network.start(alone, bytes(160'000));
  struct Change final : EventHandler {
    Network* network;
    void on_event(std::uint32_t resource, std::uint32_t tenths) override {
      network->set_capacity(ResourceId(resource), scale(10_GBps, tenths / 10.0));
    }
  } change;
  change.network = &network;
  // 100,000 B at 5 GB/s are 20 us: half is done at 10 us; the rest at 0.5 GB/s takes 100 us. The
  // flow elsewhere has done 80,000 of 160,000 B then and goes on at 4 GB/s, for 20 us.
  queue.schedule(Time(10_us), change, link.value(), 1);
  queue.schedule(Time(10_us), change, side.value(), 4);
  queue.run();
  REQUIRE(recorder.done.size() == 3);
  CHECK(recorder.done[0] == std::pair<std::uint32_t, std::int64_t>{2, (30_us).count()});
  CHECK(recorder.done[1].second == (110_us).count());
  CHECK(recorder.done[2].second == (110_us).count());
  // A new flow finds the new capacity.
  network.start(flows[0], bytes(1'000));
  queue.run();
  CHECK(recorder.done.back().second == (111_us).count());
}

TEST_CASE("network: random traffic conserves work and finishes like a step-by-step oracle") {
  // Arrivals at random instants; the oracle re-solves from the definition at each arrival and
  // completion and carries remaining work as exact integers.
  std::mt19937_64 random(7);
  for (int round = 0; round < 180; ++round) {
    const std::size_t resources = 2 + random() % 4;
    // Most flows have a cap, so that resources become tight and cease to be as flows come and go.
    const bool capped = round % 3 == 2;
    std::vector<std::int64_t> capacity;
    EventQueue queue;
    Network network(queue);
    queue.set_settler(&network);
    Recorder recorder(queue);
    for (std::size_t i = 0; i < resources; ++i) {
      capacity.push_back(static_cast<std::int64_t>(65536 * (1000 + random() % 9000)));
      network.add_resource(raw(capacity.back()));
    }
    struct Arrival {
      std::int64_t at;
      std::int64_t size;
      OracleFlow flow;
      FlowId id;
    };
    std::vector<Arrival> arrivals;
    for (std::uint32_t i = 0; i < 20; ++i) {
      Arrival arrival{static_cast<std::int64_t>(random() % 5) * 1'000'000'000'000,
                      static_cast<std::int64_t>(500 + random() % 9000),
                      {},
                      {}};
      std::vector<ResourceUse> uses;
      // Odd rounds: two resources each, the case that the solver keeps apart; capacities differ.
      const std::size_t first = random() % resources;
      for (std::size_t r = 0; r < resources; ++r)
        if (round % 2 == 1 ? r == first || r == (first + 1) % resources : random() % 2 == 0) {
          uses.push_back(use(r));
          arrival.flow.uses.emplace_back(r, 1);
        }
      if (uses.empty()) {
        uses.push_back(use(0));
        arrival.flow.uses.emplace_back(0, 1);
      }
      if (capped && random() % 8 != 0)
        arrival.flow.cap = static_cast<std::int64_t>(65536 * (300 + random() % 2000));
      arrival.id = network.add_flow(
          {.uses = uses, .cap = raw(arrival.flow.cap), .listener = &recorder, .tag = i});
      arrivals.push_back(arrival);
    }
    struct Starter : EventHandler {
      Network* network = nullptr;
      std::vector<Arrival>* arrivals = nullptr;
      void on_event(std::uint32_t, std::uint32_t i) override {
        network->start((*arrivals)[i].id, bytes((*arrivals)[i].size));
      }
    } starter;
    starter.network = &network;
    starter.arrivals = &arrivals;
    for (std::uint32_t i = 0; i < arrivals.size(); ++i)
      queue.schedule(Time(Duration(arrivals[i].at)), starter, 0, i);
    queue.run();
    REQUIRE(recorder.done.size() == arrivals.size());

    std::vector<Int128> left(arrivals.size());
    std::vector<std::int64_t> end(arrivals.size(), -1);
    for (std::size_t i = 0; i < arrivals.size(); ++i)
      left[i] = Int128(arrivals[i].size) * 65536 * 1'000'000'000'000;
    std::int64_t now = 0;
    for (;;) {
      std::vector<OracleFlow> active;
      std::vector<std::size_t> who;
      std::int64_t next = -1;
      const auto sooner = [&](std::int64_t t) {
        if (next < 0 || t < next) next = t;
      };
      for (std::size_t i = 0; i < arrivals.size(); ++i) {
        if (arrivals[i].at > now)
          sooner(arrivals[i].at);
        else if (end[i] < 0) {
          active.push_back(arrivals[i].flow);
          who.push_back(i);
        }
      }
      const auto rates = max_min_rates(capacity, active);
      for (std::size_t k = 0; k < who.size(); ++k)
        sooner(now + static_cast<std::int64_t>((left[who[k]] + rates[k] - 1) / rates[k]));
      if (next < 0) break;
      for (std::size_t k = 0; k < who.size(); ++k) {
        left[who[k]] -= Int128(rates[k]) * (next - now);
        if (left[who[k]] <= 0) end[who[k]] = next;
      }
      now = next;
    }
    for (const auto& done : recorder.done) {
      CAPTURE(round);
      CAPTURE(done.first);
      CHECK(done.second == end[done.first]);
    }
  }
}
