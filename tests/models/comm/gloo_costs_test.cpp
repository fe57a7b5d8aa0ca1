// The equations of models/comm/gloo_costs.h on two hosts built by hand:
//
//   place0 --pcie--> cpu0 --pcie--> nic0 --nic--> switch --nic--> nic1 --pcie--> cpu1 <--pcie--
//   place1
//
// and back. Latency per link: pcie 200 ns, nic 300 ns.
#include "models/comm/gloo_costs.h"

#include <doctest/doctest.h>

#include <deque>
#include <memory>
#include <utility>

namespace railyard::models {
namespace {

using namespace sim::literals;
using sim::bytes;
using sim::ConnectionId;
using sim::DeviceId;
using sim::DeviceKind;
using sim::LaneRole;
using sim::LinkClass;

enum : int { kPlace0, kCpu0, kNic0, kPlace1, kCpu1, kNic1, kSwitch };

class Shortest final : public sim::Routing {
 public:
  explicit Shortest(std::vector<sim::Link> links) : links_(std::move(links)) {}
  bool append_route(DeviceId from, DeviceId to, std::uint64_t, sim::Route& out) const override {
    std::deque<std::pair<DeviceId, sim::Route>> open{{from, {}}};
    for (; !open.empty(); open.pop_front()) {
      const auto [at, way] = open.front();
      if (at == to) {
        out.insert(out.end(), way.begin(), way.end());
        return true;
      }
      for (std::size_t l = 0; l < links_.size() && way.size() < 8; ++l) {
        if (links_[l].from != at) continue;
        open.emplace_back(links_[l].to, way);
        open.back().second.push_back(sim::LinkId(l));
      }
    }
    return false;
  }

 private:
  std::vector<sim::Link> links_;
};

sim::Topology two_hosts() {
  sim::Topology topology;
  const DeviceKind kinds[] = {DeviceKind::gpu,          DeviceKind::cpu, DeviceKind::nic,
                              DeviceKind::gpu,          DeviceKind::cpu, DeviceKind::nic,
                              DeviceKind::fabric_switch};
  for (int d = 0; d <= kSwitch; ++d)
    topology.devices.push_back(
        {kinds[d], d == kSwitch ? sim::kNoNode : d / 3U, 0U, "device" + std::to_string(d)});
  for (int n = 0; n < 2; ++n) {
    sim::Node node;
    node.gpus = {DeviceId(3 * n)};
    node.nics = {DeviceId(3 * n + 2)};
    topology.nodes.push_back(node);
  }
  const auto join = [&](int a, int b, LinkClass link_class, sim::Bandwidth rate) {
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      sim::Link link;
      link.from = DeviceId(from);
      link.to = DeviceId(to);
      link.link_class = link_class;
      link.capacity = rate;
      topology.links.push_back(link);
    }
  };
  join(kPlace0, kCpu0, LinkClass::pcie, 32_GBps);
  join(kPlace1, kCpu1, LinkClass::pcie, 32_GBps);
  join(kCpu0, kNic0, LinkClass::pcie, 16_GBps);
  join(kCpu1, kNic1, LinkClass::pcie, 16_GBps);
  join(kNic0, kSwitch, LinkClass::nic, 2_GBps);
  join(kNic1, kSwitch, LinkClass::nic, 2_GBps);
  topology.routing = std::make_shared<Shortest>(topology.links);
  return topology;
}

sim::Group processes(std::initializer_list<std::pair<int, std::uint32_t>> places) {
  sim::Group group;
  for (const auto& [device, node] : places) {
    sim::Member member;
    member.rank = sim::Rank(group.size());
    member.gpu = DeviceId(device);
    member.node = node;
    group.push_back(member);
  }
  return group;
}

sim::Parameters parameters() {
  sim::Parameters out;
  out.gloo = {.stream_rate = 3_GBps,
              .reduce_rate = 5_GBps,
              .copy_rate = 8_GBps,
              .op_overhead = 10_us,
              .message = 4_us,
              .latency = 20_us,
              .start = 30_us};
  out.links[static_cast<std::size_t>(LinkClass::pcie)].latency = 200_ns;
  out.links[static_cast<std::size_t>(LinkClass::nic)] = {.efficiency = 0.9, .latency = 300_ns};
  return out;
}

// Gloo's ring of two ranks, four segments of `segment` bytes: each sends two and receives two,
// first to add them up, then as they are. Connections: 0 and 1 of the first phase, 2 and 3 of the
// second.
sim::Schedule ring_of_two(std::int64_t segment, DeviceId nic0 = {}, DeviceId nic1 = {}) {
  using sim::Op;
  using sim::Primitive;
  sim::Schedule schedule;
  schedule.call.size = bytes(4 * segment);
  schedule.ranks = 2;
  schedule.programs = {{Op{.primitive = Primitive::send, .repeat = 2},
                        Op{.primitive = Primitive::recv_reduce_copy, .repeat = 2}},
                       {Op{.primitive = Primitive::send, .repeat = 2},
                        Op{.primitive = Primitive::recv, .repeat = 2}}};
  sim::Work work;
  work.layout = sim::Layout::rotating;
  work.size = bytes(4 * segment);
  work.chunk = bytes(segment);
  work.align = segment;
  work.blocks = 4;
  schedule.works = {work};
  for (std::uint32_t l = 0; l < 4; ++l) {
    sim::Lane lane;
    lane.rank = l % 2;
    lane.batch = static_cast<std::uint16_t>(l / 2);
    lane.role = l < 2 ? LaneRole::gloo_reduce : LaneRole::gloo_move;
    lane.program = sim::ProgramId(l / 2);
    lane.recv_count = lane.send_count = 1;
    schedule.lanes.push_back(lane);
    sim::Connection connection;
    connection.from = sim::LaneId(l);
    connection.to = sim::LaneId(l ^ 1U);
    connection.nic_out = l % 2 == 0 ? nic0 : nic1;
    connection.nic_in = l % 2 == 0 ? nic1 : nic0;
    schedule.connections.push_back(connection);
  }
  return schedule;
}

TEST_CASE("gloo costs: between hosts data go from memory to memory, by the device threads") {
  const sim::Topology topology = two_hosts();
  const sim::Parameters costs = parameters();
  const sim::Group group = processes({{kPlace0, 0}, {kPlace1, 1}});
  const GlooCosts model(topology, costs);
  const sim::Schedule schedule = ring_of_two(1 << 18, DeviceId(kNic0), DeviceId(kNic1));
  const auto cost = model.connection(schedule, group, ConnectionId(0));
  REQUIRE(cost.ok());
  CHECK(cost.value().route.size() == 4);  // not by the places: pcie, nic, nic, pcie
  CHECK(cost.value().latency == 2 * 200_ns + 2 * 300_ns + 20_us);
  CHECK(cost.value().credit_latency == cost.value().latency);
  CHECK(cost.value().staged);
  CHECK(cost.value().cap.raw() == 0);
  CHECK(cost.value().wire_cap == 3_GBps);
  CHECK(cost.value().send_service == 4_us);
  CHECK(cost.value().recv_service == 4_us);
  CHECK(sim::to_gigabytes_per_second(model.link_capacity(topology.links[8])) ==
        doctest::Approx(1.8));
  CHECK(model.start(schedule) == 30_us);
  CHECK(model.slowdown(schedule, group).compute == 1.0);
  for (const sim::Lane& lane : schedule.lanes) {
    const sim::LaneCost found = model.lane(schedule, lane);
    CHECK(found.op_overhead == 10_us);
    CHECK(found.local_rate == (lane.role == LaneRole::gloo_reduce ? 5_GBps : sim::Bandwidth{}));
  }
  sim::Lane copy;
  copy.role = LaneRole::local;
  CHECK(model.lane(schedule, copy).local_rate == 8_GBps);
  CHECK(model.lane(schedule, copy).op_overhead == sim::Duration{});
}

TEST_CASE("gloo costs: within a host the loopback") {
  sim::Topology topology = two_hosts();
  topology.devices.push_back({DeviceKind::gpu, 0, 1, "another place"});
  const sim::Parameters costs = parameters();
  const sim::Group group = processes({{kPlace0, 0}, {kSwitch + 1, 0}});
  const GlooCosts model(topology, costs);
  const sim::Schedule schedule = ring_of_two(1'024);
  const auto cost = model.connection(schedule, group, ConnectionId(0));
  REQUIRE(cost.ok());
  CHECK(cost.value().route.empty());
  CHECK(cost.value().latency == 20_us);
  CHECK(cost.value().wire_cap == 3_GBps);
}

TEST_CASE("gloo costs: without a way between the hosts") {
  sim::Topology topology = two_hosts();
  topology.routing = std::make_shared<Shortest>(std::vector<sim::Link>{});
  const sim::Parameters costs = parameters();
  const sim::Group group = processes({{kPlace0, 0}, {kPlace1, 1}});
  const sim::Schedule schedule = ring_of_two(1'024, DeviceId(kNic0), DeviceId(kNic1));
  CHECK_FALSE(GlooCosts(topology, costs).connection(schedule, group, ConnectionId(0)).ok());
}

// Two ranks, 4 MiB: four segments of 1 MiB. Each rank sends two and receives two in either phase
// and adds two; operations: 2 sends and 2 receives a phase.
TEST_CASE("gloo costs: processor time by hand") {
  const sim::Schedule schedule = ring_of_two(1 << 20);
  const GlooWork work = gloo_work(schedule);
  CHECK(work.messages == 8);
  CHECK(work.moved == bytes(8 << 20));
  CHECK(work.added == bytes(2 << 20));
  CHECK(work.operations == 8);
  const double expected = (8 << 20) / 3e9 + (2 << 20) / 5e9 + 8 * 4e-6 + 8 * 10e-6;
  CHECK(sim::to_seconds(gloo_processor_time(work, parameters().gloo)) ==
        doctest::Approx(expected).epsilon(1e-6));
}

}  // namespace
}  // namespace railyard::models
