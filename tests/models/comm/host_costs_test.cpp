// Every equation in models/comm/host_stops.h, on a host built by hand:
//
//   gpu0 --pcie 20--> cpu0 --pcie 16--> gpu1      and back: gpu1 --16--> cpu0 --20--> gpu0
//   gpu0 --nvlink 100--> gpu1 --pcie 16--> nic0;  cpu0 --pcie 12--> nic0 --nic 10--> nic1
//   nic1 --pcie 12--> cpu1 --pcie 20--> gpu2;     nic1 --pcie 30--> gpu2
//
// Latency per link: pcie 200 ns, nic 300 ns, nvlink 100 ns. nic1 - cpu1 is longer by 7 ns.
#include "models/comm/host_stops.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>

#include "models/comm/comm_costs.h"
#include "sim/executor.h"
#include "sim/longest_path.h"
#include "sim/schedule_costs.h"

#include "tests/models/comm/hardware.h"

namespace railyard::models {
namespace {

using namespace sim::literals;
using sim::Bandwidth;
using sim::bytes;
using sim::ConnectionCost;
using sim::ConnectionId;
using sim::DeviceId;
using sim::DeviceKind;
using sim::LinkClass;
using sim::LinkId;
using sim::Protocol;

enum : int { kGpu0, kGpu1, kCpu0, kNic0, kNic1, kCpu1, kGpu2 };

// Direct links only, and GPU - CPU - GPU: what a route asked hop by hop needs.
class Direct final : public sim::Routing {
 public:
  explicit Direct(std::vector<sim::Link> links) : links_(std::move(links)) {}
  bool append_route(DeviceId from, DeviceId to, std::uint64_t, sim::Route& out) const override {
    for (std::size_t l = 0; l < links_.size(); ++l)
      if (links_[l].from == from && links_[l].to == to) {
        out.push_back(LinkId(l));
        return true;
      }
    return false;
  }

 private:
  std::vector<sim::Link> links_;
};

struct Host : tests::Hardware {
  Host()
      : Hardware({DeviceKind::gpu, DeviceKind::gpu, DeviceKind::cpu, DeviceKind::nic,
                  DeviceKind::nic, DeviceKind::cpu, DeviceKind::gpu},
                 {{kGpu0, 0}, {kGpu1, 0}, {kGpu2, 1}}) {
    add(kGpu0, kCpu0, LinkClass::pcie, 20_GBps);     // link 0
    add(kCpu0, kGpu1, LinkClass::pcie, 16_GBps);     // 1
    add(kGpu1, kCpu0, LinkClass::pcie, 16_GBps);     // 2
    add(kCpu0, kGpu0, LinkClass::pcie, 20_GBps);     // 3
    add(kCpu0, kNic0, LinkClass::pcie, 12_GBps);     // 4
    add(kNic0, kNic1, LinkClass::nic, 10_GBps);      // 5
    add(kNic1, kCpu1, LinkClass::pcie, 12_GBps);     // 6
    add(kCpu1, kGpu2, LinkClass::pcie, 20_GBps);     // 7
    add(kNic1, kGpu2, LinkClass::pcie, 30_GBps);     // 8
    add(kGpu0, kGpu1, LinkClass::nvlink, 100_GBps);  // 9
    add(kGpu1, kNic0, LinkClass::pcie, 16_GBps);     // 10
    topology.links[6].extra_latency = 7_ns;
    topology.routing = std::make_shared<Direct>(topology.links);
    of(LinkClass::nvlink) = {1, 100_ns};
    of(LinkClass::pcie) = {1, 200_ns};
    of(LinkClass::nic) = {1, 300_ns};
    parameters.gpu.host_load_rate = {};
    parameters.network.proxy_send = 700_ns;
    parameters.network.proxy_recv = 900_ns;
    parameters.network.flush = 1'100_ns;
    parameters.network.socket_rate = 2_GBps;
    parameters.network.socket_latency = 10'000_ns;
    parameters.network.socket_message = 3'000_ns;
    set(Protocol::simple, 20_GBps, 1'000_ns, 5'000_ns);
    set(Protocol::ll, 10_GBps, 400_ns, 600_ns);
    set(Protocol::ll128, 30_GBps, 500_ns, 800_ns);
  }

  void set(Protocol protocol, Bandwidth rate, sim::Duration hop, sim::Duration net_hop) {
    sim::ProtocolParameters& costs = of(protocol);
    costs.channel_rate = rate;
    costs.hop_latency = hop;
    costs.net_hop_latency = net_hop;
    if (protocol != Protocol::ll128)
      costs.forward_grain = bytes(protocol == Protocol::ll ? 16 : 4'096);
  }
};

sim::Schedule between(std::uint32_t from, std::uint32_t to, Protocol protocol) {
  sim::Schedule schedule;
  schedule.call.protocol = protocol;
  schedule.ranks = 3;
  schedule.channels = 1;
  sim::Work work;
  work.size = work.chunk = 1_MiB;
  schedule.works.push_back(work);
  for (const std::uint32_t rank : {from, to}) {
    sim::Lane lane;
    lane.rank = rank;
    schedule.lanes.push_back(lane);
  }
  schedule.slots = {ConnectionId(0), ConnectionId(0)};
  schedule.lanes[0].send_count = 1;
  schedule.lanes[1].first_recv = 1;
  schedule.lanes[1].recv_count = 1;
  sim::Connection connection;
  connection.from = sim::LaneId(0);
  connection.to = sim::LaneId(1);
  schedule.connections.push_back(connection);
  return schedule;
}

sim::Schedule by_shared_memory(Protocol protocol) {
  sim::Schedule schedule = between(0, 1, protocol);
  const DeviceId memory(kCpu0);
  schedule.connections[0].host = {.out = memory, .out_ll = memory, .in = memory};
  return schedule;
}

// gpu0 to gpu2; `in`: without GPUDirect on the receiving side.
sim::Schedule by_network(Protocol protocol, bool out, bool in) {
  sim::Schedule schedule = between(0, 2, protocol);
  sim::Connection& connection = schedule.connections[0];
  connection.nic_out = DeviceId(kNic0);
  connection.nic_in = DeviceId(kNic1);
  connection.host.out_ll = DeviceId(kCpu0);
  if (out) connection.host.out = DeviceId(kCpu0);
  if (in) connection.host.in = DeviceId(kCpu1);
  return schedule;
}

ConnectionCost cost_of(const Host& host, const sim::Schedule& schedule) {
  auto cost =
      CommCosts(host.topology, host.parameters).connection(schedule, host.group, ConnectionId(0));
  REQUIRE_MESSAGE(cost.ok(), (cost.ok() ? "" : cost.error().text()));
  return std::move(cost).value();
}

std::optional<sim::SwitchFlow> fetch_of(const Host& host, const sim::Schedule& schedule,
                                        std::size_t lane = 1) {
  auto flow =
      CommCosts(host.topology, host.parameters).fetch_flow(schedule, host.group, sim::LaneId(lane));
  REQUIRE_MESSAGE(flow.ok(), (flow.ok() ? "" : flow.error().text()));
  return std::move(flow).value();
}

sim::Route route(std::initializer_list<int> links) {
  sim::Route route;
  for (const int link : links) route.push_back(LinkId(link));
  return route;
}

TEST_CASE("shared memory, Simple: written to the host, loaded by the receiver's operation") {
  Host host;
  host.parameters.gpu.host_load_rate = 9_GBps;
  const sim::Schedule schedule = by_shared_memory(Protocol::simple);
  const ConnectionCost cost = cost_of(host, schedule);
  CHECK(cost.route == route({0}));
  CHECK_FALSE(cost.staged);
  CHECK(cost.fetched);
  CHECK(cost.cap == 20_GBps);  // stores are posted
  CHECK(cost.latency == 200_ns + 1'000_ns + 4 * 200_ns);
  CHECK(cost.credit_latency == 1'200_ns);
  CHECK(cost.grain == sim::Bytes{});  // whole slices, whatever P2P passes on
  const auto fetch = fetch_of(host, schedule);
  REQUIRE(fetch.has_value());
  REQUIRE(fetch->uses.size() == 1);
  CHECK(fetch->uses[0].link == LinkId(1));
  CHECK(fetch->uses[0].weight == 1);
  CHECK(fetch->cap == 9_GBps);
  CHECK_FALSE(fetch_of(host, schedule, 0).has_value());  // the sender loads nothing
}

TEST_CASE("shared memory: half a CTA loads at half its rate, 0 is no limit") {
  Host host;
  sim::Schedule schedule = by_shared_memory(Protocol::simple);
  schedule.lanes[1].copy_percent = 50;
  CHECK(fetch_of(host, schedule)->cap == Bandwidth{});
  host.parameters.gpu.host_load_rate = 9_GBps;
  host.parameters.protocols[static_cast<std::size_t>(Protocol::simple)].wire_efficiency = 0.5;
  const auto fetch = fetch_of(host, schedule);
  CHECK(sim::wire_bytes(*fetch, 100_B) == 200_B);
  CHECK(fetch->cap == Bandwidth::from_raw((9_GBps).raw() / 2));  // of wire bytes
}

TEST_CASE("shared memory, LL: the receiver polls the data, one flow through the host") {
  Host host;
  const sim::Schedule schedule = by_shared_memory(Protocol::ll);
  ConnectionCost cost = cost_of(host, schedule);
  CHECK(cost.route == route({0, 1}));
  CHECK_FALSE(cost.fetched);
  CHECK_FALSE(fetch_of(host, schedule).has_value());
  CHECK(cost.grain == 16_B);
  CHECK(cost.latency == 400_ns + 400_ns + 200_ns);
  CHECK(cost.cap == 20_GBps);
  host.parameters.gpu.host_load_rate = 3_GBps;
  cost = cost_of(host, schedule);
  CHECK(cost.cap == 3_GBps);
  host.set(Protocol::ll, {}, 400_ns, 600_ns);  // no limit of the sender's
  CHECK(cost_of(host, schedule).cap == 3_GBps);
}

TEST_CASE("plain passes the host's memory and nothing more") {
  const Host host;
  const ConnectionCost cost = cost_of(host, by_shared_memory(Protocol::plain));
  CHECK(cost.route == route({0, 1}));
  CHECK(cost.latency == 400_ns);
  CHECK_FALSE(cost.fetched);
  CHECK_FALSE(fetch_of(host, by_shared_memory(Protocol::plain)).has_value());
}

TEST_CASE("network without GPUDirect: out through the host, in by a load, no flush") {
  Host host;
  host.parameters.gpu.host_load_rate = 9_GBps;
  const sim::Schedule schedule = by_network(Protocol::simple, true, true);
  const ConnectionCost cost = cost_of(host, schedule);
  CHECK(cost.route == route({0, 4, 5, 6}));
  CHECK(cost.staged);
  CHECK(cost.fetched);
  CHECK(cost.cap == 20_GBps);
  CHECK(cost.wire_cap == Bandwidth{});
  const sim::Duration wire = 200_ns + 200_ns + 300_ns + 207_ns;
  CHECK(cost.completion == wire);
  CHECK(cost.latency == wire + 5'000_ns + 2 * 200_ns);
  CHECK(cost.send_service == 700_ns);
  CHECK(cost.recv_service == 900_ns);
  const auto fetch = fetch_of(host, schedule);
  REQUIRE(fetch.has_value());
  CHECK(fetch->uses[0].link == LinkId(7));
  CHECK(fetch->cap == 9_GBps);
}

TEST_CASE("network, GPUDirect on one side: only the other side stops") {
  Host host;
  host.add(kGpu0, kNic0, LinkClass::pcie, 20_GBps);  // link 11
  host.topology.routing = std::make_shared<Direct>(host.topology.links);
  ConnectionCost cost = cost_of(host, by_network(Protocol::simple, false, true));
  CHECK(cost.route == route({11, 5, 6}));
  CHECK(cost.fetched);
  cost = cost_of(host, by_network(Protocol::simple, true, false));
  CHECK(cost.route == route({0, 4, 5, 8}));
  CHECK_FALSE(cost.fetched);
  CHECK(cost.latency == 900_ns + 5'000_ns + 1'100_ns);  // with the flush
}

TEST_CASE("GPU-initiated: a hop of its own, no proxy on either side") {
  Host host;
  host.parameters.network.gpu_hop_latency = 4'000_ns;
  host.add(kGpu0, kNic0, LinkClass::pcie, 20_GBps);  // link 11
  host.topology.routing = std::make_shared<Direct>(host.topology.links);
  sim::Schedule schedule = by_network(Protocol::simple, false, false);
  schedule.connections[0].host.gpu_initiated = true;
  const ConnectionCost cost = cost_of(host, schedule);
  CHECK(cost.route == route({11, 5, 8}));
  CHECK(cost.staged);
  CHECK(cost.cap == 20_GBps);  // into the buffer, as ever
  CHECK(cost.completion == 700_ns);
  CHECK(cost.latency == 700_ns + 4'000_ns + 1'100_ns);  // with the flush
  for (const sim::Bytes size : {8_B, 1_MiB}) {
    CHECK(sim::send_service_time(cost, size) == 0_ns);
    CHECK(sim::recv_service_time(cost, size) == 0_ns);
  }
  CHECK(cost.recv_busy == 0_ns);
}

TEST_CASE("small messages: copied by the CPU out of GPU memory and into it, not host memory") {
  Host host;
  host.parameters.network.inline_to = 192_B;
  host.parameters.network.inline_copy = 12'000_ns;
  host.parameters.network.eager_to = 4_KiB;
  host.parameters.network.eager_copy = 5'500_ns;
  host.parameters.network.eager_interval = 7'000_ns;
  host.add(kGpu0, kNic0, LinkClass::pcie, 20_GBps);
  host.topology.routing = std::make_shared<Direct>(host.topology.links);
  for (const bool out : {false, true}) {
    for (const bool in : {false, true}) {
      const ConnectionCost cost = cost_of(host, by_network(Protocol::simple, out, in));
      CHECK(cost.inline_to == (out ? 0_B : 192_B));
      CHECK(cost.inline_copy == (out ? 0_ns : 12'000_ns));
      CHECK(cost.eager_to == (in ? 0_B : 4_KiB));
      CHECK(cost.eager_copy == (in ? 0_ns : 5'500_ns));
      CHECK(cost.eager_interval == (in ? 0_ns : 7'000_ns));
    }
  }
  // Of the LL kinds only LL leaves from host memory, GPUDirect or not.
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128}) {
    const ConnectionCost cost = cost_of(host, by_network(protocol, false, false));
    CHECK(cost.inline_copy == (protocol == Protocol::ll ? 0_ns : 12'000_ns));
    CHECK(cost.eager_copy == 5'500_ns);
  }
  sim::Schedule alone = by_network(Protocol::simple, false, false);
  alone.connections[0].host.gpu_initiated = true;
  CHECK(sim::send_service_time(cost_of(host, alone), 8_B) == 0_ns);
  CHECK_FALSE(sim::is_served(cost_of(host, alone)));
}

TEST_CASE("network, LL kinds: LL leaves from the host's memory whatever GPUDirect does") {
  Host host;
  host.add(kGpu0, kNic0, LinkClass::pcie, 20_GBps);  // link 11
  host.topology.routing = std::make_shared<Direct>(host.topology.links);
  CHECK(cost_of(host, by_network(Protocol::ll, false, false)).route == route({0, 4, 5, 8}));
  CHECK(cost_of(host, by_network(Protocol::ll128, false, false)).route == route({11, 5, 8}));
  const ConnectionCost cost = cost_of(host, by_network(Protocol::ll, true, true));
  CHECK(cost.route == route({0, 4, 5, 6, 7}));
  CHECK_FALSE(cost.fetched);
  CHECK(cost.latency == 200_ns + 200_ns + 300_ns + 207_ns + 200_ns + 600_ns + 200_ns);
  CHECK(cost.recv_service == 0_ps);
}

TEST_CASE("sockets: a rate for each stream, of which a message uses one per 64 KiB") {
  Host host;
  sim::Schedule schedule = by_network(Protocol::simple, true, true);
  schedule.connections[0].host.sockets = true;
  schedule.connections[0].host.streams = 4;
  ConnectionCost cost = cost_of(host, schedule);
  CHECK(cost.wire_cap == 8_GBps);
  CHECK(cost.send_service == 3'700_ns);
  CHECK(cost.recv_service == 3'900_ns);
  CHECK(cost.latency == 907_ns + 5'000_ns + 400_ns + 10'000_ns);
  schedule.works[0].chunk = 128_KiB;
  CHECK(cost_of(host, schedule).wire_cap == 4_GBps);
  schedule.works[0].slices_per_chunk = 2;
  schedule.works[0].chunk = 512_KiB;
  schedule.works[0].size = 192_KiB;  // a slice of 96 KiB
  CHECK(cost_of(host, schedule).wire_cap == 4_GBps);
  schedule.works[0].size = 8_B;
  CHECK(cost_of(host, schedule).wire_cap == 2_GBps);
  schedule.connections[0].host.streams = 1;
  schedule.works[0].size = 1_MiB;
  CHECK(cost_of(host, schedule).wire_cap == 2_GBps);
  host.parameters.network.socket_rate = {};
  CHECK(cost_of(host, schedule).wire_cap == Bandwidth{});
  host.parameters.network.socket_rate = sim::gigabytes_per_second(100'000);
  schedule.connections[0].host.streams = 64;
  schedule.works[0].chunk = schedule.works[0].size = 64_MiB;
  CHECK(cost_of(host, schedule).wire_cap == Bandwidth{});  // beyond what a rate can be: no limit
}

TEST_CASE("sockets without helper threads: the proxies move the bytes, of LL too") {
  Host host;
  sim::Schedule schedule = by_network(Protocol::simple, true, true);
  schedule.connections[0].host.sockets = true;
  ConnectionCost cost = cost_of(host, schedule);
  CHECK(cost.wire_cap == Bandwidth{});
  CHECK(cost.send_byte_rate == 2_GBps);
  CHECK(sim::send_service_time(cost, bytes(2'000)) == 4'700_ns);
  CHECK(sim::recv_service_time(cost, bytes(2'000)) == 4'900_ns);
  schedule.call.protocol = Protocol::ll;
  cost = cost_of(host, schedule);
  CHECK(cost.recv_service == 3'900_ns);
  CHECK(cost.send_byte_rate == 2_GBps);
  host.parameters.network.ll_check_rate = 6_GBps;  // 1/2 + 1/6 ns a byte
  cost = cost_of(host, schedule);
  CHECK(sim::to_gigabytes_per_second(cost.send_byte_rate) == doctest::Approx(1.5));
  host.parameters.network.socket_rate = {};
  CHECK(cost_of(host, schedule).send_byte_rate == 6_GBps);
}

TEST_CASE("relay: an NVLink hop before the wire, LL goes round it") {
  const Host host;
  sim::Schedule schedule = by_network(Protocol::simple, false, false);
  schedule.connections[0].relay = DeviceId(kGpu1);
  ConnectionCost cost = cost_of(host, schedule);
  CHECK(cost.route == route({9, 10, 5, 8}));
  const sim::Duration wire = 100_ns + 200_ns + 300_ns + 200_ns;
  CHECK(cost.completion == wire);
  CHECK(cost.latency == wire + 5'000_ns + 1'100_ns + 1'000_ns);
  schedule.call.protocol = Protocol::ll;
  cost = cost_of(host, schedule);
  CHECK(cost.route == route({0, 4, 5, 8}));
  CHECK(cost.latency == 900_ns + 600_ns);
}

TEST_CASE("a stop that cannot be reached is an error that names the hop") {
  const Host host;
  sim::Schedule schedule = by_shared_memory(Protocol::simple);
  schedule.connections[0].host.in = DeviceId(kCpu1);
  schedule.connections[0].host.out = DeviceId(kCpu1);
  const CommCosts costs(host.topology, host.parameters);
  const auto lost = costs.connection(schedule, host.group, ConnectionId(0));
  REQUIRE_FALSE(lost.ok());
  CHECK(lost.error().text() == "no path from device0 to device5");
  schedule.connections[0].host.out = DeviceId(kCpu0);
  const auto flow = costs.fetch_flow(schedule, host.group, sim::LaneId(1));
  REQUIRE_FALSE(flow.ok());
  CHECK(flow.error().text() == "no path from device5 to device1");
}

// Rings of two by shared memory, both engines. c = 1 MiB in one slice; a link carries it in
// w = c / 20 GB/s (gpu0) or c / 16 GB/s (gpu1); nothing caps.
struct Ring {
  sim::Schedule schedule;
  sim::ScheduleCosts costs;
};

Ring exchange(const Host& host, const std::vector<sim::Primitive>& primitives) {
  sim::Schedule schedule;
  schedule.call.protocol = Protocol::simple;
  schedule.ranks = 2;
  schedule.channels = 1;
  sim::Work work;
  work.size = work.chunk = 1_MiB;
  schedule.works.push_back(work);
  sim::Program program;
  for (const sim::Primitive primitive : primitives) {
    sim::Op op;
    op.primitive = primitive;
    program.push_back(op);
  }
  schedule.programs.push_back(program);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    sim::Lane lane;
    lane.rank = rank;
    lane.program = sim::ProgramId(0);
    lane.first_recv = 2 * rank;
    lane.first_send = 2 * rank + 1;
    lane.recv_count = lane.send_count = 1;
    schedule.lanes.push_back(lane);
    sim::Connection connection;
    connection.from = sim::LaneId(rank);
    connection.to = sim::LaneId(1 - rank);
    const DeviceId memory(kCpu0);
    connection.host = {.out = memory, .out_ll = memory, .in = memory};
    schedule.connections.push_back(connection);
  }
  schedule.slots = {ConnectionId(1), ConnectionId(0), ConnectionId(0), ConnectionId(1)};
  const CommCosts costs(host.topology, host.parameters);
  auto bound = sim::bind_costs(schedule, {host.group[0], host.group[1]}, costs);
  REQUIRE_MESSAGE(bound.ok(), (bound.ok() ? "" : bound.error().text()));
  return {schedule, std::move(bound).value()};
}

sim::Duration run(const Host& host, const Ring& ring) {
  sim::EventQueue queue;
  sim::Network network(queue);
  queue.set_settler(&network);
  std::vector<Bandwidth> links;
  const CommCosts costs(host.topology, host.parameters);
  for (const sim::Link& link : host.topology.links) {
    links.push_back(costs.link_capacity(link));
    network.add_resource(links.back());
  }
  REQUIRE(sim::validate(ring.schedule).ok());
  sim::Executor executor(std::make_shared<const sim::Schedule>(ring.schedule),
                         std::make_shared<const sim::ScheduleCosts>(ring.costs), queue, network,
                         {});
  for (std::uint32_t rank = 0; rank < 2; ++rank) executor.start_rank(rank);
  queue.run();
  REQUIRE(executor.finished());
  const auto path =
      sim::longest_path(ring.schedule, ring.costs.connections, ring.costs.lanes, links, {});
  CHECK(path.end == queue.now().time_since_epoch());
  return path.end;
}

TEST_CASE("shared memory, two ranks: operations that receive and send take both times") {
  Host host;
  host.set(Protocol::simple, {}, 0_ns, 0_ns);
  for (sim::Link& link : host.topology.links) link.capacity = 16_GBps;
  host.of(LinkClass::pcie) = {1, 0_ns};
  const sim::Duration t = sim::transfer_time(1_MiB, 16_GBps);
  using P = sim::Primitive;
  // AllGather and ReduceScatter: half the rate of a broadcast. AllReduce: as much for its two.
  CHECK(run(host, exchange(host, {P::send, P::recv})) == 2 * t);
  CHECK(run(host, exchange(host, {P::send, P::recv_reduce_copy_send, P::recv})) == 4 * t);
}

TEST_CASE("shared memory: the slower GPU's links bound both, in turn up and down") {
  Host host;
  host.set(Protocol::simple, {}, 0_ns, 0_ns);
  host.of(LinkClass::pcie) = {1, 0_ns};
  // gpu1 writes at 16 GB/s; then gpu0 may load at 20. gpu1 loads what gpu0 wrote by then at 16.
  const sim::Duration slow = sim::transfer_time(1_MiB, 16_GBps);
  using P = sim::Primitive;
  CHECK(run(host, exchange(host, {P::send, P::recv})) == 2 * slow);
}

}  // namespace
}  // namespace railyard::models
