// Every equation in the header of models/comm/comm_costs.h, on a topology built by hand:
//
//   gpu0 --nvlink 100--> nvswitch --nvlink 100--> gpu1          node 0
//   gpu0 --pcie 50--> nic0 --nic 25--> switch --nic 25, +5 ns--> nic1 --pcie 50--> gpu2   node 1
//   gpu1 --pcie 40--> nic0
//
// Links go one way, so nothing leads back to gpu0. Latency per link: nvlink 100 ns, pcie 200 ns,
// nic 300 ns. Rates are powers of two apart where products must be exact.
#include "models/comm/comm_costs.h"

#include <doctest/doctest.h>

#include <deque>
#include <map>
#include <memory>
#include <set>

#include "tests/models/comm/hardware.h"

namespace railyard::models {
namespace {

using namespace sim::literals;
using sim::Bandwidth;
using sim::ConnectionCost;
using sim::ConnectionId;
using sim::DeviceId;
using sim::DeviceKind;
using sim::LinkClass;
using sim::LinkId;
using sim::Protocol;

enum : int { kGpu0, kGpu1, kNvswitch, kNic0, kNic1, kGpu2, kSwitch };

// Breadth first over the links in their order; remembers which hashes it was asked with.
class Shortest final : public sim::Routing {
 public:
  explicit Shortest(std::vector<sim::Link> links, std::size_t devices)
      : links_(std::move(links)), devices_(devices) {}

  bool append_route(DeviceId from, DeviceId to, std::uint64_t hash,
                    sim::Route& out) const override {
    hashes.insert(hash);
    std::vector<LinkId> by(devices_);
    std::vector<bool> seen(devices_, false);
    std::deque<DeviceId> open{from};
    seen[from.index()] = true;
    for (; !open.empty() && !seen[to.index()]; open.pop_front())
      for (std::size_t l = 0; l < links_.size(); ++l) {
        if (links_[l].from != open.front() || seen[links_[l].to.index()]) continue;
        seen[links_[l].to.index()] = true;
        by[links_[l].to.index()] = LinkId(l);
        open.push_back(links_[l].to);
      }
    if (!seen[to.index()]) return false;
    sim::Route reversed;
    for (DeviceId at = to; at != from; at = links_[by[at.index()].index()].from)
      reversed.push_back(by[at.index()]);
    out.insert(out.end(), reversed.rbegin(), reversed.rend());
    return true;
  }

  mutable std::set<std::uint64_t> hashes;

 private:
  std::vector<sim::Link> links_;
  std::size_t devices_;
};

struct Machine : tests::Hardware {
  Machine()
      : Hardware({DeviceKind::gpu, DeviceKind::gpu, DeviceKind::nvswitch, DeviceKind::nic,
                  DeviceKind::nic, DeviceKind::gpu, DeviceKind::fabric_switch},
                 {{kGpu0, 0}, {kGpu1, 0}, {kGpu2, 1}}) {
    add(kGpu0, kNvswitch, LinkClass::nvlink, 100_GBps);  // link 0
    add(kNvswitch, kGpu1, LinkClass::nvlink, 100_GBps);  // 1
    add(kGpu0, kNic0, LinkClass::pcie, 50_GBps);         // 2
    add(kNic0, kSwitch, LinkClass::nic, 25_GBps);        // 3
    add(kSwitch, kNic1, LinkClass::nic, 25_GBps);        // 4
    add(kNic1, kGpu2, LinkClass::pcie, 50_GBps);         // 5
    add(kGpu1, kNic0, LinkClass::pcie, 40_GBps);         // 6
    topology.links[4].extra_latency = 5_ns;
    routing = std::make_shared<Shortest>(topology.links, topology.devices.size());
    topology.routing = routing;

    of(LinkClass::nvlink) = {0.5, 100_ns};
    of(LinkClass::pcie) = {1.0, 200_ns};
    of(LinkClass::nic) = {1.0, 300_ns};
    parameters.network = {700_ns, 900_ns, 1'100_ns};  // proxy send, receive, flush
    of(Protocol::simple) = {20_GBps, 18_GBps, 4'000_ns, 1'000_ns, 5'000_ns, 1};
    of(Protocol::ll) = {10_GBps, 16_GBps, 60_ns, 400_ns, 600_ns, 1};
    of(Protocol::ll128) = {30_GBps, 24_GBps, 80_ns, 500_ns, 800_ns, 1};
    parameters.gpu.sms = 132;
    parameters.gpu.hbm_bandwidth = 2'000_GBps;
    parameters.gpu.memory_efficiency = 0.5;
    parameters.gpu.comm_hbm_factor = 2.5;
  }

  std::shared_ptr<Shortest> routing;
};

// One connection between two ranks; `percent` is the sender's share of its CTA.
sim::Schedule between(std::uint32_t from, std::uint32_t to, Protocol protocol,
                      std::uint8_t percent = 100) {
  sim::Schedule schedule;
  schedule.call.protocol = protocol;
  schedule.ranks = 3;
  schedule.channels = 1;
  for (const std::uint32_t rank : {from, to}) {
    sim::Lane lane;
    lane.rank = rank;
    lane.copy_percent = percent;
    schedule.lanes.push_back(lane);
  }
  sim::Connection connection;
  connection.from = sim::LaneId(0);
  connection.to = sim::LaneId(1);
  schedule.connections.push_back(connection);
  return schedule;
}

// gpu0 to gpu2 through both NICs.
sim::Schedule across(Protocol protocol, std::uint8_t percent = 100) {
  sim::Schedule schedule = between(0, 2, protocol, percent);
  schedule.connections[0].nic_out = DeviceId(kNic0);
  schedule.connections[0].nic_in = DeviceId(kNic1);
  return schedule;
}

ConnectionCost cost_of(const Machine& machine, const sim::Schedule& schedule) {
  const CommCosts costs(machine.topology, machine.parameters);
  auto cost = costs.connection(schedule, machine.group, ConnectionId(0));
  REQUIRE_MESSAGE(cost.ok(), (cost.ok() ? "" : cost.error().text()));
  return std::move(cost).value();
}

sim::Route route(std::initializer_list<int> links) {
  sim::Route route;
  for (const int link : links) route.push_back(LinkId(link));
  return route;
}

TEST_CASE("link capacity is the line rate times the class efficiency, and never zero") {
  const Machine machine;
  const CommCosts costs(machine.topology, machine.parameters);
  CHECK(costs.link_capacity(machine.topology.links[0]) == 50_GBps);  // nvlink 100 x 0.5
  CHECK(costs.link_capacity(machine.topology.links[3]) == 25_GBps);
  sim::Link thin;
  thin.capacity = Bandwidth::from_raw(1);
  CHECK(costs.link_capacity(thin) == sim::bytes_per_second(1'000));  // floor(1 x 0.5) would be 0
}

TEST_CASE("a direct Simple connection: whole slices, rate and latency of the channel") {
  const Machine machine;
  const ConnectionCost cost = cost_of(machine, between(0, 1, Protocol::simple));
  CHECK(cost.route == route({0, 1}));
  CHECK_FALSE(cost.staged);
  CHECK(cost.cap == 20_GBps);
  CHECK(cost.wire_numerator == 1);
  CHECK(cost.wire_denominator == 1);
  CHECK(cost.latency == 1'200_ns);         // 2 x 100 + hop 1000
  CHECK(cost.credit_latency == 1'200_ns);  // the head travels the same way back
  CHECK(cost.grain == sim::Bytes{});       // store and forward
  CHECK(cost.send_service == 0_ps);
  CHECK(cost.recv_service == 0_ps);
  CHECK(cost.completion == 0_ps);
}

TEST_CASE("a direct LL connection: twice the bytes, whole slices") {
  const Machine machine;
  const ConnectionCost cost = cost_of(machine, between(0, 1, Protocol::ll));
  CHECK(cost.wire_numerator == 2);
  CHECK(cost.wire_denominator == 1);
  CHECK(cost.cap == 20_GBps);     // payload 10, in wire bytes
  CHECK(cost.latency == 600_ns);  // 2 x 100 + 400
  CHECK(cost.grain == 0_B);
  CHECK(sim::wire_bytes(cost, 100_B) == 200_B);
}

TEST_CASE("a direct LL128 connection: 128 bytes carry 120, passed on in pieces of the grain") {
  Machine machine;
  machine.parameters.protocols[static_cast<std::size_t>(Protocol::ll128)].forward_grain = 1'920_B;
  const ConnectionCost cost = cost_of(machine, between(0, 1, Protocol::ll128));
  CHECK(cost.wire_numerator == 16);
  CHECK(cost.wire_denominator == 15);
  CHECK(cost.cap == 32_GBps);     // 30 x 16 / 15
  CHECK(cost.latency == 700_ns);  // 2 x 100 + 500
  CHECK(cost.grain == 1'920_B);
  CHECK(sim::wire_bytes(cost, 1'920_B) == 2'048_B);
}

TEST_CASE("the wire efficiency comes on top of the format, the cap stays the payload's") {
  Machine machine;
  machine.of(Protocol::ll128).wire_efficiency = 0.8;
  ConnectionCost cost = cost_of(machine, between(0, 1, Protocol::ll128));
  CHECK(cost.wire_numerator == 4);  // 16 / 15 / 0.8 = 4 / 3
  CHECK(cost.wire_denominator == 3);
  CHECK(cost.cap == 40_GBps);  // 30 x 4 / 3

  machine.of(Protocol::simple).wire_efficiency = 0.9;
  cost = cost_of(machine, between(0, 1, Protocol::simple));
  CHECK(cost.wire_numerator == 10);
  CHECK(cost.wire_denominator == 9);
  machine.of(Protocol::ll).wire_efficiency = 0.00001;  // below the step of 1e-4: clamped to it
  cost = cost_of(machine, between(0, 1, Protocol::ll));
  CHECK(cost.wire_numerator == 20'000);
  CHECK(cost.wire_denominator == 1);
}

TEST_CASE("lanes of one CTA share its copy rate") {
  Machine machine;
  CHECK(cost_of(machine, between(0, 1, Protocol::simple, 50)).cap == 10_GBps);
  CHECK(cost_of(machine, between(0, 1, Protocol::ll, 50)).cap == 10_GBps);
  CHECK(cost_of(machine, across(Protocol::simple, 50)).cap == 10_GBps);
  CHECK(cost_of(machine, between(0, 1, Protocol::simple, 50)).latency == 1'200_ns);

  const CommCosts costs(machine.topology, machine.parameters);
  const sim::Schedule tree = between(0, 1, Protocol::simple, 50);
  const sim::LaneCost lane = costs.lane(tree, tree.lanes[0]);
  CHECK(lane.op_overhead == 4'000_ns);  // per slice, not shared
  CHECK(lane.local_rate == 9_GBps);

  machine.of(Protocol::simple).channel_rate = {};  // no limit stays no limit
  CHECK(cost_of(machine, between(0, 1, Protocol::simple, 50)).cap == Bandwidth{});
}

TEST_CASE("a lane's own rate counts payload, whatever the wire format") {
  const Machine machine;
  const CommCosts costs(machine.topology, machine.parameters);
  const sim::Schedule schedule = between(0, 1, Protocol::ll);
  CHECK(costs.lane(schedule, schedule.lanes[0]).local_rate == 16_GBps);
  CHECK(costs.lane(schedule, schedule.lanes[0]).op_overhead == 60_ns);
}

TEST_CASE("a staged Simple connection: proxies on both sides, flush, wire credits") {
  const Machine machine;
  const ConnectionCost cost = cost_of(machine, across(Protocol::simple));
  CHECK(cost.route == route({2, 3, 4, 5}));
  CHECK(cost.staged);
  CHECK(cost.cap == 20_GBps);
  // The wire: 200 + 300 + (300 + 5) + 200.
  CHECK(cost.credit_latency == 1'005_ns);
  CHECK(cost.completion == 1'005_ns);
  CHECK(cost.latency == 1'005_ns + 5'000_ns + 1'100_ns);
  CHECK(cost.send_service == 700_ns);
  CHECK(cost.recv_service == 900_ns);
  CHECK(cost.recv_busy == 0_ps);
  CHECK(cost.grain == sim::Bytes{});
}

TEST_CASE("staged LL and LL128: flags land in GPU memory, so no flush and no receiving proxy") {
  const Machine machine;
  for (const auto& [protocol, hop] :
       {std::pair{Protocol::ll, 600_ns}, std::pair{Protocol::ll128, 800_ns}}) {
    const ConnectionCost cost = cost_of(machine, across(protocol));
    CHECK(cost.staged);
    CHECK(cost.latency == 1'005_ns + hop);
    CHECK(cost.completion == 1'005_ns);
    CHECK(cost.send_service == 700_ns);
    CHECK(cost.recv_service == 0_ps);
    CHECK(cost.recv_busy == 900_ns);
    CHECK(cost.grain == sim::Bytes{});  // the proxy sends whole steps
  }
  CHECK(cost_of(machine, across(Protocol::ll)).wire_numerator == 2);
}

TEST_CASE("plain has the wire's latency and nothing else, in the node and across") {
  const Machine machine;
  for (const sim::Schedule& schedule : {between(0, 1, Protocol::plain), across(Protocol::plain)}) {
    const ConnectionCost cost = cost_of(machine, schedule);
    const sim::Duration wire = schedule.connections[0].nic_out.valid() ? 1'005_ns : 200_ns;
    CHECK(cost.latency == wire);
    CHECK(cost.credit_latency == wire);
    CHECK(cost.cap == Bandwidth{});
    CHECK_FALSE(cost.staged);
    CHECK(cost.send_service + cost.recv_service + cost.completion == 0_ps);
    CHECK(cost.wire_numerator == cost.wire_denominator);
    const CommCosts costs(machine.topology, machine.parameters);
    CHECK(costs.lane(schedule, schedule.lanes[0]).op_overhead == 0_ps);
    CHECK(costs.lane(schedule, schedule.lanes[0]).local_rate == Bandwidth{});
  }
}

TEST_CASE("a relay is a way point: its links and their latency are on the route") {
  const Machine machine;
  sim::Schedule schedule = across(Protocol::simple);
  schedule.connections[0].relay = DeviceId(kGpu1);
  const ConnectionCost cost = cost_of(machine, schedule);
  CHECK(cost.route == route({0, 1, 6, 3, 4, 5}));
  CHECK(cost.completion == 1'205_ns);  // two NVLinks more
  CHECK(cost.relay_rank == 1);         // whose proxy sends
}

TEST_CASE("a connection is one flow to the fabric: its hash depends on ranks and channel alone") {
  const Machine machine;
  sim::Schedule schedule = between(0, 1, Protocol::simple);
  cost_of(machine, schedule);
  cost_of(machine, schedule);
  CHECK(machine.routing->hashes.size() == 1);
  schedule.lanes[0].channel = 1;
  cost_of(machine, schedule);
  CHECK(machine.routing->hashes.size() == 2);
  cost_of(machine, across(Protocol::simple));
  CHECK(machine.routing->hashes.size() == 3);
}

TEST_CASE("poll time: of LL, in a ring") {
  Machine machine;
  machine.of(Protocol::ll).poll_time = 600_ns;
  const CommCosts costs(machine.topology, machine.parameters);
  const auto lane_cost = [&](Protocol protocol, sim::LaneRole role) {
    sim::Schedule schedule = between(0, 1, protocol);
    schedule.lanes[0].role = role;
    return costs.lane(schedule, schedule.lanes[0]);
  };
  CHECK(lane_cost(Protocol::ll, sim::LaneRole::ring).poll_time == 600_ns);
  CHECK(lane_cost(Protocol::ll, sim::LaneRole::ring).poll_unit == 4_KiB);
  CHECK(lane_cost(Protocol::ll, sim::LaneRole::tree_up).poll_unit == 0_B);
  CHECK(lane_cost(Protocol::ll, sim::LaneRole::p2p_recv).poll_unit == 0_B);
  CHECK(lane_cost(Protocol::simple, sim::LaneRole::ring).poll_unit == 0_B);
}

// Two ways between the NICs, picked by the hash's lowest bit.
class TwoWays final : public sim::Routing {
 public:
  bool append_route(DeviceId from, DeviceId to, std::uint64_t hash,
                    sim::Route& out) const override {
    if (from != DeviceId(kNic0) || to != DeviceId(kNic1)) {
      out.push_back(to == DeviceId(kNic0) ? LinkId(2) : LinkId(5));
      return true;
    }
    out.insert(out.end(), {LinkId(3), LinkId(7 + hash % 2), LinkId(4)});
    ++asked[hash];
    return true;
  }
  mutable std::map<std::uint64_t, int> asked;
};

TEST_CASE("queue pairs: each has a hash and so a path of its own, on one path they are one flow") {
  Machine machine;
  sim::Schedule schedule = across(Protocol::simple);
  schedule.connections[0].host.queue_pairs = 16;
  schedule.connections[0].host.split = true;
  const ConnectionCost one_way = cost_of(machine, schedule);
  CHECK(machine.routing->hashes.size() == 16);
  CHECK(sim::queue_pairs(one_way) == 1);

  machine.add(kSwitch, kSwitch, LinkClass::fabric, 25_GBps);  // links 7 and 8
  machine.add(kSwitch, kSwitch, LinkClass::fabric, 25_GBps);
  const auto two_ways = std::make_shared<TwoWays>();
  machine.topology.routing = two_ways;
  const ConnectionCost cost = cost_of(machine, schedule);
  CHECK(two_ways->asked.size() == 16);
  REQUIRE(sim::queue_pairs(cost) == 16);
  CHECK(cost.split);
  std::uint32_t by_seven = 0;
  for (std::uint32_t pair = 0; pair < 16; ++pair) {
    const sim::Route& route = sim::route_of_pair(cost, pair);
    REQUIRE(route.size() == 5);
    by_seven += route[2] == LinkId(7) ? 1 : 0;
  }
  CHECK(by_seven >= 3);  // 16 fair coins: outside 3..13 once in 240
  CHECK(by_seven <= 13);

  schedule.connections[0].host.queue_pairs = 1;  // the first pair's path is that of one alone
  CHECK(cost_of(machine, schedule).route == cost.route);
}

TEST_CASE("ranks without a path are an error that names the hop") {
  const Machine machine;
  const CommCosts costs(machine.topology, machine.parameters);
  const auto back =
      costs.connection(between(2, 0, Protocol::simple), machine.group, ConnectionId(0));
  REQUIRE_FALSE(back.ok());
  CHECK(back.error().text() == "no path from device5 to device0");
  sim::Schedule schedule = across(Protocol::plain);
  schedule.connections[0].nic_in = DeviceId(kNvswitch);
  const auto lost = costs.connection(schedule, machine.group, ConnectionId(0));
  REQUIRE_FALSE(lost.ok());
  CHECK(lost.error().text() == "no path from device3 to device2");
}

// r is what rank 0 can send: per link it leaves by, the sum of min(cap, narrowest link), at most
// the link itself. HBM: 2000 GB/s x 0.5.
sim::Slowdown slowdown(const Machine& machine, const sim::Schedule& schedule) {
  return CommCosts(machine.topology, machine.parameters).slowdown(schedule, machine.group);
}

TEST_CASE("compute kernels lose the SMs that channels hold") {
  const Machine machine;
  sim::Schedule schedule = between(0, 1, Protocol::simple);
  schedule.channels = 24;
  CHECK(slowdown(machine, schedule).compute == doctest::Approx(132.0 / 108));
  schedule.channels = 132;  // all of them: what is left runs in the gaps
  CHECK(slowdown(machine, schedule).compute == 2.0);
}

TEST_CASE("memory kernels lose what a collective moves through HBM") {
  Machine machine;
  // One connection: min(cap 20, NVLink 50) = 20; 2.5 x 20 / 1000 = 0.05.
  CHECK(slowdown(machine, between(0, 1, Protocol::simple)).memory ==
        doctest::Approx(1 / (1 - 0.05)));
  // Out of the node: the copy into the FIFO is faster than a NIC of 12.5 GB/s; 0.03125.
  machine.topology.links[3].capacity = sim::gigabytes_per_second(12.5);
  CHECK(slowdown(machine, across(Protocol::simple)).memory == doctest::Approx(1 / (1 - 0.03125)));
  // Four channels ask 80 GB/s of a 50 GB/s link; 2.5 x 50 / 1000 = 0.125.
  sim::Schedule four = between(0, 1, Protocol::simple);
  for (int i = 0; i < 3; ++i) four.connections.push_back(four.connections[0]);
  CHECK(slowdown(machine, four).memory == doctest::Approx(1 / (1 - 0.125)));
  // What other ranks send does not pass rank 0's memory.
  sim::Schedule theirs = between(1, 2, Protocol::simple);
  theirs.connections[0].nic_out = DeviceId(kNic0);
  theirs.connections[0].nic_in = DeviceId(kNic1);
  CHECK(slowdown(machine, theirs).memory == 1.0);
  // Never more than nine tenths.
  machine.parameters.gpu.comm_hbm_factor = 1'000;
  CHECK(slowdown(machine, four).memory == doctest::Approx(10.0));
}

TEST_CASE("plain, and a group of one, slow nothing down") {
  const Machine machine;
  for (sim::Schedule schedule : {between(0, 1, Protocol::plain), between(0, 1, Protocol::simple)}) {
    if (schedule.call.protocol == Protocol::simple) schedule.ranks = 1;
    schedule.channels = 24;
    CHECK(slowdown(machine, schedule).compute == 1.0);
    CHECK(slowdown(machine, schedule).memory == 1.0);
  }
}

// What a kernel needs before its first operation, on top of the start of all kernels.
TEST_CASE("start: several CTAs, NVLS, and nothing without costs") {
  Machine machine;
  machine.parameters.host.multi_cta_start = 600_ns;
  machine.parameters.nvls.start = 2'000_ns;
  const CommCosts costs(machine.topology, machine.parameters);
  sim::Schedule schedule = between(0, 1, Protocol::simple);
  CHECK(costs.start(schedule) == 0_ps);
  schedule.channels = 2;
  CHECK(costs.start(schedule) == 600_ns);
  schedule.call.algorithm = sim::Algorithm::nvls_tree;
  CHECK(costs.start(schedule) == 2'600_ns);
  schedule.call.protocol = Protocol::plain;
  CHECK(costs.start(schedule) == 0_ps);
}

TEST_CASE("the proxy looks at LL flags only, and handshakes by the message's size") {
  Machine machine;
  machine.parameters.network.ll_check_rate = 2_GBps;
  machine.parameters.network.rendezvous_from = 8'192_B;
  machine.parameters.network.rendezvous_to = 131'072_B;
  machine.parameters.network.rendezvous_cost = 4'000_ns;
  const ConnectionCost ll = cost_of(machine, across(Protocol::ll));
  CHECK(sim::send_service_time(ll, 4'000_B) == 2'700_ns);   // 700 + 4,000 B at 2 GB/s
  CHECK(sim::send_service_time(ll, 10'000_B) == 9'700_ns);  // 700 + 5,000 + 4,000
  const ConnectionCost simple = cost_of(machine, across(Protocol::simple));
  CHECK(sim::send_service_time(simple, 10'000_B) == 4'700_ns);
  CHECK(sim::send_service_time(simple, 200'000_B) == 700_ns);
}

TEST_CASE("send/receive kernels have Simple's costs of their own where they are stated") {
  Machine machine;
  sim::Schedule schedule = between(0, 1, Protocol::simple);
  schedule.call.collective = sim::Collective::all_to_all;
  CHECK(cost_of(machine, schedule).cap == 20_GBps);
  machine.parameters.send_recv = {40_GBps, 30_GBps, 900_ns, 300_ns};
  CHECK(cost_of(machine, schedule).cap == 40_GBps);
  CHECK(cost_of(machine, schedule).latency == 500_ns);  // 2 x 100 + 300
  const CommCosts costs(machine.topology, machine.parameters);
  CHECK(costs.lane(schedule, schedule.lanes[1]).op_overhead == 900_ns);
  CHECK(costs.lane(schedule, schedule.lanes[1]).local_rate == 30_GBps);
  schedule.call.collective = sim::Collective::all_reduce;
  CHECK(cost_of(machine, schedule).cap == 20_GBps);
  schedule.call.collective = sim::Collective::all_to_all;
  schedule.call.protocol = Protocol::ll;
  CHECK(cost_of(machine, schedule).cap == 20_GBps);  // 10, in wire bytes
}

// Half of a CTA's warps reach the ring's rate.
TEST_CASE("a tree's share of a CTA counts twice, up to all of it") {
  const Machine machine;
  sim::Schedule schedule = between(0, 1, Protocol::simple, 40);
  CHECK(cost_of(machine, schedule).cap == 8_GBps);
  schedule.lanes[0].role = sim::LaneRole::tree_down;
  CHECK(cost_of(machine, schedule).cap == 16_GBps);
  schedule.lanes[0].copy_percent = 60;
  CHECK(cost_of(machine, schedule).cap == 20_GBps);
}

}  // namespace
}  // namespace railyard::models
