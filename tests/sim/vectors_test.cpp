// Results of other simulators, for systems that the network of this one can express. Each number
// stands beside its source. Only numbers were taken.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sim/network.h"

namespace railyard::sim {
namespace {

using namespace literals;

// Flows over named paths, started at given times; keeps how long each took.
struct Traffic : EventHandler, FlowListener {
  Traffic() { queue.set_settler(&network); }
  ResourceId link(Bandwidth capacity) { return network.add_resource(capacity); }
  void send(const std::vector<ResourceId>& path, Bytes size, Duration at) {
    std::vector<ResourceUse> uses;
    for (const ResourceId resource : path) uses.push_back({resource});
    const auto tag = static_cast<std::uint32_t>(flows.size());
    flows.push_back({network.add_flow({.uses = uses, .listener = this, .tag = tag}), size, at});
    queue.schedule(Time(at), *this, 0, tag);
  }
  void on_event(std::uint32_t, std::uint32_t i) override {
    network.start(flows[i].id, flows[i].size);
  }
  void on_flow_done(std::uint32_t i) override {
    flows[i].took = queue.now().time_since_epoch() - flows[i].at;
  }
  std::vector<Duration> run() {
    queue.run();
    std::vector<Duration> took;
    for (const Flow& flow : flows) took.push_back(flow.took);
    return took;
  }
  struct Flow {
    FlowId id;
    Bytes size;
    Duration at{};
    Duration took = Duration::max();
  };
  EventQueue queue;
  Network network{queue};
  std::vector<Flow> flows;
};

std::int64_t rounded_to_ns(Duration d) { return (d.count() + 500) / 1000; }

// Phantora b8c9de3, phantora/netsim/tests/toy1.rs. A tree: hosts a1, a2, a3 below switch vs1, hosts
// a5, a6 below vs2, both below the cloud. 1e6 B = 8e6 bit; the wires in Gb/s stand in the code.
//   a1 -> a5 from 0: 10 (a5's wire): 800 us.   a2 -> a6 from 0: 5 (a6's wire): 1600 us.
//   a2 -> a3 from 1 ms: shares a2's 10 with the latter, 5 each, for 600 us: 3e6 bit; the other 5e6
//   bit at 9 (a3's wire): 555.556 us.
TEST_CASE("vectors: Phantora's toy tree of three flows") {
  Traffic t;
  const ResourceId a1_up = t.link(20_Gbps);
  const ResourceId a2_up = t.link(10_Gbps);
  const ResourceId a3_down = t.link(9_Gbps);
  const ResourceId vs1_up = t.link(35_Gbps);
  const ResourceId vs2_down = t.link(15_Gbps);
  const ResourceId a5_down = t.link(10_Gbps);
  const ResourceId a6_down = t.link(5_Gbps);
  t.send({a1_up, vs1_up, vs2_down, a5_down}, 1'000'000_B, 0_us);
  t.send({a2_up, vs1_up, vs2_down, a6_down}, 1'000'000_B, 0_us);
  t.send({a2_up, a3_down}, 1'000'000_B, 1_ms);
  const std::vector<Duration> took = t.run();
  CHECK(took[0] == 800_us);
  CHECK(took[1] == 1600_us);
  CHECK(took[2] == 1'155'555'556_ps);  // 600 us + 5e6 bit / 9 Gb/s, rounded up
  // As published, in ns: 800000, 1600000, round((600 + 1600 (10/16) (5/9)) 1e3).
  CHECK(rounded_to_ns(took[0]) == 800'000);
  CHECK(rounded_to_ns(took[1]) == 1'600'000);
  CHECK(rounded_to_ns(took[2]) == 1'155'556);
}

// htsim 40ccb05, htsim/sim/datacenter/validate_outputs: UEC over 100 Gb/s, packet level. A flow of
// 2 MB is 490 packets of 4150 B on the wire: 2'033'500 B, 162.68 us at 12.5 GB/s.
constexpr Bytes kUecFlow = bytes(490 * 4150);
constexpr Duration kUecAlone = picoseconds(162'680'000);
// The published completion times: sender-based (NSCC) and receiver-based (RCCC) control.
struct PacketLevel {
  Duration nscc;
  Duration rccc;
};

// 16 hosts in four racks; uplinks of a rack carry all of its hosts (packets are sprayed).
struct Cluster16 : Traffic {
  static constexpr std::size_t kHosts = 16;
  static constexpr std::size_t kPerRack = 4;
  Cluster16() {
    for (std::size_t h = 0; h < kHosts; ++h) {
      up.push_back(link(100_Gbps));
      down.push_back(link(100_Gbps));
    }
    for (std::size_t r = 0; r < kHosts / kPerRack; ++r) {
      rack_up.push_back(link(400_Gbps));
      rack_down.push_back(link(400_Gbps));
    }
  }
  void flow(std::size_t from, std::size_t to) {
    std::vector<ResourceId> path{up[from], down[to]};
    if (from / kPerRack != to / kPerRack) {
      path.push_back(rack_up[from / kPerRack]);
      path.push_back(rack_down[to / kPerRack]);
    }
    send(path, kUecFlow, 0_us);
  }
  std::vector<ResourceId> up, down, rack_up, rack_down;
};

TEST_CASE("vectors: htsim, one flow and both directions: below the packet level, near the ideal") {
  constexpr PacketLevel kOne{picoseconds(176'200'000), picoseconds(177'368'000)};
  constexpr PacketLevel kBidir{picoseconds(176'804'000), picoseconds(178'180'000)};
  Cluster16 one;
  one.flow(0, 15);
  Cluster16 both;
  both.flow(0, 15);
  both.flow(15, 0);
  const std::vector<Duration> alone = one.run();
  CHECK(alone == std::vector<Duration>{kUecAlone});
  CHECK(both.run() == std::vector<Duration>(2, kUecAlone));  // the directions share nothing
  // The rest of the packet level's time is propagation, store-and-forward and start-up: < 10 %.
  for (const Duration packets : {kOne.nscc, kOne.rccc, kBidir.nscc, kBidir.rccc}) {
    CHECK(alone[0] < packets);
    CHECK(packets.count() - alone[0].count() < packets.count() / 10);
  }
}

// 15 flows into one port: the last byte arrives when the port has carried all: 15 x 162.68 = 2440.2
// us. Max-min is fair, so all end then; at packet level the first ended at 1273.56.
TEST_CASE("vectors: htsim, incast of 15 to 1") {
  constexpr PacketLevel kIncast{picoseconds(2'478'530'000), picoseconds(2'464'440'000)};
  Cluster16 t;
  for (std::size_t from = 0; from < 15; ++from) t.flow(from, 15);
  const std::vector<Duration> took = t.run();
  const Duration last = *std::ranges::max_element(took);
  const Duration first = *std::ranges::min_element(took);
  CHECK(first == last);
  // A fifteenth of the port is rounded down to 2^-16 B/s: less than a picosecond in 2.4 ms.
  CHECK(last >= 15 * kUecAlone);
  CHECK(last <= 15 * kUecAlone + 1_ps);
  for (const Duration packets : {kIncast.nscc, kIncast.rccc}) {
    CHECK(last < packets);
    CHECK(packets.count() - last.count() < packets.count() / 50);
  }
}

// Any permutation of a non-blocking cluster runs at line rate. htsim's bound for its own is 210 us.
TEST_CASE("vectors: htsim, permutations of 16 hosts") {
  for (const std::size_t stride : {3U, 5U, 7U, 11U, 13U}) {
    Cluster16 t;
    for (std::size_t from = 0; from < Cluster16::kHosts; ++from)
      t.flow(from, (from * stride + 1) % Cluster16::kHosts);
    for (const Duration took : t.run()) {
      CHECK(took >= kUecAlone);
      CHECK(took <= kUecAlone + 1_ps);
      CHECK(took < 210_us);
    }
  }
}

// Two flows on two resources; row r holds the weights of both on resource r.
std::vector<std::int64_t> rates_of(const std::array<std::array<std::uint32_t, 2>, 2>& weights,
                                   const std::array<std::int64_t, 2>& capacity) {
  EventQueue queue;
  Network network(queue);
  queue.set_settler(&network);
  std::vector<ResourceId> resources;
  for (const std::int64_t c : capacity)
    resources.push_back(network.add_resource(Bandwidth::from_raw(c)));
  std::vector<std::int64_t> rates;
  for (std::size_t f = 0; f < 2; ++f) {
    std::vector<ResourceUse> uses;
    for (std::size_t r = 0; r < 2; ++r)
      if (weights[r][f] > 0) uses.push_back({resources[r], weights[r][f]});
    network.start(network.add_flow({.uses = uses}), 1_TiB);
  }
  network.settle();
  for (std::size_t f = 0; f < 2; ++f) rates.push_back(network.rate(FlowId(f)).raw());
  return rates;
}

// SimGrid 12a63c7, src/kernel/lmm/bmf_test.cpp: C = 1, matrix [1 10; 10 1]: 1/11 each. Here C = 11
// million. By max-min: both resources carry load 11, so the level of both is C / 11.
TEST_CASE("vectors: SimGrid, each flow ten times as heavy on one of two resources") {
  CHECK(rates_of({{{1, 10}, {10, 1}}}, {11'000'000, 11'000'000}) ==
        std::vector<std::int64_t>{1'000'000, 1'000'000});
}

// SimGrid, cross-traffic: the acknowledgements of a flow take epsilon = 0.05 of its rate on the way
// back. Weights are integers: 20 forward, 1 back, and C is 20 times as large. One flow each way
// over full-duplex wires: 20 + 1 = 21, so 1/1.05 each. SimGrid's figure for one flow each way is
// 1/2.05; its matrix is not known here. The second system is one with that answer: a wire that
// carries one flow with its acknowledgements and the other without, 1.05 + 1.
TEST_CASE("vectors: SimGrid, cross-traffic of acknowledgements") {
  CHECK(rates_of({{{20, 1}, {1, 20}}}, {20 * 21'000, 20 * 21'000}) ==
        std::vector<std::int64_t>{20'000, 20'000});
  CHECK(rates_of({{{20, 1}, {21, 20}}}, {20 * 41'000, 20 * 41'000}) ==
        std::vector<std::int64_t>{20'000, 20'000});
}

}  // namespace
}  // namespace railyard::sim
