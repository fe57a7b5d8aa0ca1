// What depends on who else communicates, and on what an operation does besides sending: three GPUs
// on one NVSwitch, gpu <-> nvswitch at 100 GB/s.
#include <doctest/doctest.h>

#include <array>
#include <memory>

#include "models/comm/comm_costs.h"
#include "tests/models/comm/hardware.h"

namespace railyard::models {
namespace {

using namespace sim::literals;
using sim::Collective;
using sim::DeviceId;
using sim::DeviceKind;
using sim::LinkClass;
using sim::LinkId;
using sim::Protocol;

constexpr std::uint32_t kGpus = 3;  // devices 0..2; the NVSwitch is device 3

// Links 2i and 2i + 1 lead from GPU i to the NVSwitch and back.
class Star final : public sim::Routing {
 public:
  bool append_route(DeviceId from, DeviceId to, std::uint64_t, sim::Route& out) const override {
    out.insert(out.end(), {LinkId(2 * from.index()), LinkId(2 * to.index() + 1)});
    return true;
  }
};

// `domains`: the NVLink domain of each GPU's node.
struct Switched : tests::Hardware {
  explicit Switched(std::array<std::uint32_t, kGpus> domains)
      : Hardware({DeviceKind::gpu, DeviceKind::gpu, DeviceKind::gpu, DeviceKind::nvswitch},
                 {{0, 0}, {1, 1}, {2, 2}}) {
    for (int gpu = 0; gpu < static_cast<int>(kGpus); ++gpu) {
      add(gpu, kGpus, LinkClass::nvlink, 100_GBps);
      add(kGpus, gpu, LinkClass::nvlink, 100_GBps);
      topology.nodes[static_cast<std::size_t>(gpu)].nvlink_domain =
          domains[static_cast<std::size_t>(gpu)];
    }
    topology.routing = std::make_shared<Star>();
    of(Protocol::ll).channel_rate = 10_GBps;
    of(Protocol::ll).local_rate = 15_GBps;
    parameters.send_recv.mixed_efficiency = 0.8;
  }
};

// Rank 0 sends to rank 1.
sim::Schedule call_of(Collective collective, Protocol protocol) {
  sim::Schedule schedule;
  schedule.call.collective = collective;
  schedule.call.protocol = protocol;
  schedule.ranks = kGpus;
  schedule.channels = 1;
  schedule.lanes.resize(2);
  schedule.lanes[1].rank = 1;
  schedule.connections.emplace_back();
  schedule.connections[0].from = sim::LaneId(0);
  schedule.connections[0].to = sim::LaneId(1);
  return schedule;
}

sim::Bytes wire(const Switched& machine, Collective collective, Protocol protocol) {
  const CommCosts costs(machine.topology, machine.parameters);
  const auto cost =
      costs.connection(call_of(collective, protocol), machine.group, sim::ConnectionId(0));
  REQUIRE_MESSAGE(cost.ok(), (cost.ok() ? "" : cost.error().text()));
  return sim::wire_bytes(cost.value(), 1'000_B);
}

TEST_CASE("mixed efficiency: several peers behind one NVSwitch, Simple, not in a ring of sends") {
  const Switched machine({0, 0, 0});
  for (const Collective collective :
       {Collective::all_to_all, Collective::gather, Collective::scatter})
    CHECK(wire(machine, collective, Protocol::simple) == 1'250_B);
  CHECK(wire(machine, Collective::send_recv, Protocol::simple) == 1'000_B);
  CHECK(wire(machine, Collective::all_gather, Protocol::simple) == 1'000_B);
  CHECK(wire(machine, Collective::all_to_all, Protocol::ll) == 2'000_B);
}

TEST_CASE("mixed efficiency: two GPUs of a domain have one peer each") {
  CHECK(wire(Switched({0, 0, 1}), Collective::all_to_all, Protocol::simple) == 1'000_B);
  CHECK(wire(Switched({7, 7, 7}), Collective::all_to_all, Protocol::simple) == 1'250_B);
}

TEST_CASE("keep rate: of collectives with LL, both stores one after the other") {
  const Switched machine({0, 0, 0});
  const CommCosts costs(machine.topology, machine.parameters);
  const auto kept = [&](Collective collective, Protocol protocol) {
    const sim::Schedule schedule = call_of(collective, protocol);
    return sim::to_gigabytes_per_second(costs.lane(schedule, schedule.lanes[0]).keep_rate);
  };
  CHECK(kept(Collective::all_gather, Protocol::ll) == doctest::Approx(6).epsilon(1e-6));
  CHECK(kept(Collective::all_gather, Protocol::simple) == 0);
  CHECK(kept(Collective::all_gather, Protocol::ll128) == 0);
  CHECK(kept(Collective::all_to_all, Protocol::ll) == 0);
}

}  // namespace
}  // namespace railyard::models
