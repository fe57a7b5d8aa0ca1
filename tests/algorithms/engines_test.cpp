// Both engines on the real schedules: where nothing is shared they agree to the picosecond, and
// where links are shared the fluid one is never faster than the longest path.
#include <doctest/doctest.h>

#include <memory>
#include <random>

#include "algorithms/channels.h"
#include "algorithms/communicator.h"
#include "sim/executor.h"
#include "sim/longest_path.h"
#include "tests/algorithms/clusters.h"

using namespace railyard;              // NOLINT
using namespace railyard::sim;         // NOLINT
using namespace railyard::algorithms;  // NOLINT

namespace {

struct Ends : RunListener, EventHandler {
  EventQueue* queue = nullptr;
  Executor* executor = nullptr;
  std::vector<Duration> rank;
  void on_rank_done(std::uint32_t r) override { rank[r] = queue->now().time_since_epoch(); }
  void on_event(std::uint32_t, std::uint32_t r) override { executor->start_rank(r); }
};

struct Fluid {
  std::vector<Duration> rank_end;
  std::int64_t messages = 0;
  std::uint64_t digest = 0;
};

Fluid run_fluid(const std::shared_ptr<const Schedule>& schedule, const ScheduleCosts& costs,
                const std::vector<Bandwidth>& links, const std::vector<Duration>& starts) {
  EventQueue queue;
  Network network(queue);
  queue.set_settler(&network);
  for (const Bandwidth link : links) network.add_resource(link);
  Executor executor(schedule, std::make_shared<const ScheduleCosts>(costs), queue, network, {});
  Ends ends;
  ends.queue = &queue;
  ends.executor = &executor;
  ends.rank.resize(schedule->ranks);
  executor.set_listener(&ends);
  for (std::uint32_t r = 0; r < schedule->ranks; ++r) queue.schedule(Time(starts[r]), ends, 0, r);
  queue.run();
  REQUIRE(executor.finished());
  return {ends.rank, executor.messages(), executor.digest()};
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }

 private:
  std::mt19937_64 random_;
};

// The first flow of a lane, over two links of its own or all the shared ones.
std::shared_ptr<const SwitchFlow> draw_lane_flow(bool shared, Draw& draw,
                                                 std::vector<Bandwidth>& links) {
  SwitchFlow flow;
  if (shared) {
    for (std::size_t i = 0; i < 3; ++i) flow.uses.push_back({LinkId(i), i == 1 ? 2U : 1U});
  } else {
    for (int i = 0; i < 2; ++i) {
      flow.uses.push_back({LinkId(links.size()), static_cast<std::uint32_t>(draw.between(1, 2))});
      links.push_back(Bandwidth::from_raw(draw.between(1'000'000'000'000, 1'000'000'000'000'000)));
    }
  }
  if (draw.one_in(3)) flow.cap = Bandwidth::from_raw(draw.between(1'000'000'000'000, 1LL << 50));
  return std::make_shared<const SwitchFlow>(flow);
}

// Costs drawn at random. `shared`: all connections on a few links; else a link for each.
ScheduleCosts draw_costs(const Schedule& schedule, bool shared, Draw& draw,
                         std::vector<Bandwidth>& links) {
  ScheduleCosts costs;
  links.clear();
  for (int i = 0; shared && i < 3; ++i)
    links.push_back(gigabytes_per_second(static_cast<double>(draw.between(1, 20))));
  const bool cut_through = draw.one_in(2);
  const bool fetches = draw.one_in(3);
  for (std::size_t c = 0; c < schedule.connections.size(); ++c) {
    ConnectionCost cost;
    if (schedule.connections[c].signal) {
      costs.connections.push_back(cost);
      continue;
    }
    if (shared) {
      cost.route = {LinkId(static_cast<std::size_t>(draw.between(0, 2)))};
    } else {
      cost.route = {LinkId(links.size())};
      links.push_back(Bandwidth::from_raw(draw.between(1'000'000'000'000, 1'000'000'000'000'000)));
    }
    cost.latency = picoseconds(draw.one_in(4) ? 0 : draw.between(1, 3'000'000));
    cost.credit_latency = picoseconds(draw.one_in(4) ? 0 : draw.between(1, 3'000'000));
    if (draw.one_in(3))
      cost.cap = Bandwidth::from_raw(draw.between(1'000'000'000'000, 1'000'000'000'000'000));
    if (draw.one_in(3)) cost.wire_numerator = 2;
    cost.staged = draw.one_in(4);
    if (cost.staged) cost.completion = picoseconds(draw.between(0, 2'000'000));
    if (cost.staged && draw.one_in(3))
      cost.wire_cap = Bandwidth::from_raw(draw.between(1'000'000'000'000, 1'000'000'000'000'000));
    cost.fetched = fetches && draw.one_in(2);
    if (cut_through && schedule.call.algorithm != Algorithm::pat)
      cost.grain = bytes(draw.between(1, 4000));
    costs.connections.push_back(cost);
  }
  for (std::size_t l = 0; l < schedule.lanes.size(); ++l)
    costs.lanes.push_back({picoseconds(draw.one_in(2) ? 0 : draw.between(1, 2'000'000)),
                           draw.one_in(2) ? Bandwidth{}
                                          : Bandwidth::from_raw(draw.between(
                                                1'000'000'000'000, 1'000'000'000'000'000))});
  for (std::size_t l = 0; l < schedule.lanes.size(); ++l)
    if (schedule.lanes[l].in_switch.valid())
      costs.lanes[l].in_switch = draw_lane_flow(shared, draw, links);
    else if (fetches)
      costs.lanes[l].fetch = draw_lane_flow(shared, draw, links);
  return costs;
}

std::vector<std::shared_ptr<const Schedule>> schedules_of(std::uint32_t ranks,
                                                          std::uint32_t channels) {
  const Topology topology = railyard::test::gpus_on_a_switch(ranks);
  const std::unique_ptr<Communicator> communicator =
      Communicator::create(topology, railyard::test::everyone(topology),
                           railyard::test::random_channels(ranks, channels, ranks))
          .value();
  std::vector<std::shared_ptr<const Schedule>> schedules;
  for (const Collective collective :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
        Collective::broadcast, Collective::reduce})
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree})
      for (const Protocol protocol :
           {Protocol::ll, Protocol::ll128, Protocol::simple, Protocol::plain}) {
        if (algorithm == Algorithm::tree && collective != Collective::all_reduce) continue;
        // 1.5 MB: within the FIFO for most; Simple Broadcast in 512 KiB steps; LL in several loops.
        for (const std::int64_t size : {4LL, 1'000'000LL, 6'000'000LL})
          schedules.push_back(communicator
                                  ->schedule({.collective = collective,
                                              .size = bytes(size),
                                              .algorithm = algorithm,
                                              .protocol = protocol})
                                  .value());
      }
  return schedules;
}

// The algorithms that depend on nodes, switches and NICs.
std::vector<std::shared_ptr<const Schedule>> schedules_on(
    const railyard::test::ClusterSpec& spec, const std::vector<CollectiveCall>& calls) {
  const Topology topology = railyard::test::cluster(spec);
  const Group group = railyard::test::everyone(topology);
  const std::unique_ptr<Communicator> communicator =
      Communicator::create(topology, group,
                           default_channels(topology, group, {.count = 2, .rails = 0}).value())
          .value();
  std::vector<std::shared_ptr<const Schedule>> schedules;
  for (CollectiveCall call : calls)
    for (const Protocol protocol : {Protocol::simple, Protocol::plain})
      for (const std::int64_t size : {4LL, 1'000'000LL, 5'000'004LL}) {
        call.size = bytes(size);
        call.protocol = protocol;
        schedules.push_back(communicator->schedule(call).value());
      }
  return schedules;
}

std::vector<std::shared_ptr<const Schedule>> schedules_in_switches() {
  using C = Collective;
  using A = Algorithm;
  std::vector<std::shared_ptr<const Schedule>> all;
  const auto add = [&](const railyard::test::ClusterSpec& spec,
                       const std::vector<CollectiveCall>& calls) {
    for (const auto& schedule : schedules_on(spec, calls)) all.push_back(schedule);
  };
  add({.gpus = 4}, {{.collective = C::all_reduce, .algorithm = A::nvls},
                    {.collective = C::all_gather, .algorithm = A::nvls},
                    {.collective = C::reduce_scatter, .algorithm = A::nvls},
                    {.collective = C::gather, .root = 1},
                    {.collective = C::scatter, .root = 2},
                    {.collective = C::send_recv}});
  add({.nodes = 3, .gpus = 2, .nics = 2}, {{.algorithm = A::nvls_tree},
                                           {.algorithm = A::collnet_direct},
                                           {.algorithm = A::collnet_chain},
                                           {.algorithm = A::hierarchical},
                                           {.collective = C::gather, .root = 1}});
  for (const std::uint32_t nodes : {5U, 8U})
    add({.nodes = nodes, .gpus = 1, .nics = 1},
        {{.collective = C::all_gather, .algorithm = A::pat},
         {.collective = C::reduce_scatter, .algorithm = A::pat}});
  return all;
}

}  // namespace

TEST_CASE("engines: they agree on algorithms in switches, PAT and messages to one rank") {
  Draw draw(11);
  for (const auto& schedule : schedules_in_switches()) {
    std::vector<Bandwidth> links;
    const ScheduleCosts costs = draw_costs(*schedule, false, draw, links);
    const std::vector<Duration> starts(schedule->ranks);
    const LongestPathResult slow =
        longest_path(*schedule, costs.connections, costs.lanes, links, starts);
    const Fluid fluid = run_fluid(schedule, costs, links, starts);
    CAPTURE(to_text(schedule->call.collective));
    CAPTURE(to_text(schedule->call.algorithm));
    CAPTURE(to_text(schedule->call.protocol));
    CAPTURE(schedule->call.size.raw());
    REQUIRE(fluid.rank_end == slow.rank_end);
    REQUIRE(fluid.messages == slow.messages);
  }
}

TEST_CASE("engines: on shared links, switches and PAT are never faster in the fluid one") {
  Draw draw(12);
  for (const auto& schedule : schedules_in_switches()) {
    std::vector<Bandwidth> links;
    ScheduleCosts costs = draw_costs(*schedule, true, draw, links);
    for (ConnectionCost& cost : costs.connections) cost.grain = {};
    const std::vector<Duration> starts(schedule->ranks);
    const LongestPathResult slow =
        longest_path(*schedule, costs.connections, costs.lanes, links, starts);
    const Fluid fluid = run_fluid(schedule, costs, links, starts);
    for (std::uint32_t r = 0; r < schedule->ranks; ++r)
      CHECK(fluid.rank_end[r] >= slow.rank_end[r]);
  }
}

TEST_CASE("engines: fluid and longest path agree to the picosecond where nothing is shared") {
  Draw draw(42);
  int compared = 0;
  for (const std::uint32_t ranks : {2U, 3U, 5U, 8U})
    for (const auto& schedule : schedules_of(ranks, 2)) {
      std::vector<Bandwidth> links;
      const ScheduleCosts costs = draw_costs(*schedule, false, draw, links);
      std::vector<Duration> starts;
      for (std::uint32_t r = 0; r < ranks; ++r)
        starts.push_back(picoseconds(draw.one_in(2) ? 0 : draw.between(0, 50'000'000)));
      const LongestPathResult slow =
          longest_path(*schedule, costs.connections, costs.lanes, links, starts);
      const Fluid fluid = run_fluid(schedule, costs, links, starts);
      CAPTURE(ranks);
      CAPTURE(to_text(schedule->call.collective));
      CAPTURE(to_text(schedule->call.algorithm));
      CAPTURE(to_text(schedule->call.protocol));
      CAPTURE(schedule->call.size.raw());
      REQUIRE(fluid.rank_end == slow.rank_end);
      REQUIRE(fluid.messages == slow.messages);
      ++compared;
    }
  MESSAGE(compared << " schedules compared");
}

TEST_CASE("engines: the fluid engine is never faster than the longest path on shared links") {
  Draw draw(7);
  for (const std::uint32_t ranks : {2U, 4U, 7U})
    for (const auto& schedule : schedules_of(ranks, 3)) {
      std::vector<Bandwidth> links;
      ScheduleCosts costs = draw_costs(*schedule, true, draw, links);
      // Grain times are those of the unshared rate in both engines; without them the bound is
      // strict.
      for (ConnectionCost& cost : costs.connections) cost.grain = {};
      const std::vector<Duration> starts(ranks);
      const LongestPathResult slow =
          longest_path(*schedule, costs.connections, costs.lanes, links, starts);
      const Fluid fluid = run_fluid(schedule, costs, links, starts);
      for (std::uint32_t r = 0; r < ranks; ++r) CHECK(fluid.rank_end[r] >= slow.rank_end[r]);
    }
}

TEST_CASE("engines: the digest does not depend on when a run starts") {
  Draw draw(3);
  for (const auto& schedule : schedules_of(4, 2)) {
    std::vector<Bandwidth> links;
    const ScheduleCosts costs = draw_costs(*schedule, true, draw, links);
    const Fluid now = run_fluid(schedule, costs, links, std::vector<Duration>(4));
    const Fluid later =
        run_fluid(schedule, costs, links, std::vector<Duration>(4, picoseconds(123'456'789'123)));
    CHECK(now.digest == later.digest);
    for (std::uint32_t r = 0; r < 4; ++r)
      CHECK(later.rank_end[r] - now.rank_end[r] == picoseconds(123'456'789'123));
  }
}
