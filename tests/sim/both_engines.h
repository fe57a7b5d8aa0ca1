// A schedule made by hand, with costs made by hand, through both engines.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/dataflow.h"
#include "sim/executor.h"
#include "sim/longest_path.h"
#include "sim/validate.h"

namespace railyard::sim::by_hand {

using namespace literals;

struct Costs {
  std::vector<ConnectionCost> connections;
  std::vector<LaneCost> lanes;
  std::vector<Bandwidth> links;
  Duration start{};
};

// A link of 1 GB/s for every connection (1 ns a byte), 100 ns of latency, 10 ns an operation.
inline Costs simple_costs(const Schedule& schedule) {
  Costs costs;
  for (std::size_t c = 0; c < schedule.connections.size(); ++c) {
    ConnectionCost cost;
    if (!schedule.connections[c].signal) {
      cost.latency = 100_ns;
      cost.route = {LinkId(c)};
    }
    costs.connections.push_back(cost);
    costs.links.push_back(1_GBps);
  }
  costs.lanes.assign(schedule.lanes.size(), {.op_overhead = 10_ns});
  return costs;
}

struct Fluid {
  Duration end{};
  std::int64_t messages = 0;
  std::vector<Bytes> carried;
  std::vector<std::vector<Duration>> arrivals;  // [connection][message]
};

struct Arrivals final : MessageObserver {
  std::vector<std::vector<Duration>> by_connection;
  void on_message(const Schedule&, const Message& message) override {
    by_connection.at(message.connection.index()).push_back(message.arrival.time_since_epoch());
  }
};

inline Fluid run_fluid(const Schedule& schedule, const Costs& costs) {
  EventQueue queue;
  Network network(queue);
  queue.set_settler(&network);
  for (const Bandwidth link : costs.links) network.add_resource(link);
  ScheduleCosts bound{costs.connections, costs.lanes, costs.start};
  Arrivals arrivals;
  arrivals.by_connection.resize(schedule.connections.size());
  Executor executor(std::make_shared<const Schedule>(schedule),
                    std::make_shared<const ScheduleCosts>(bound), queue, network,
                    {.observer = &arrivals});
  for (std::uint32_t r = 0; r < schedule.ranks; ++r) executor.start_rank(r);
  queue.run();
  REQUIRE(executor.finished());
  Fluid fluid{queue.now().time_since_epoch(), executor.messages(), {}, arrivals.by_connection};
  for (std::size_t l = 0; l < costs.links.size(); ++l)
    fluid.carried.push_back(network.carried(ResourceId(l)));
  return fluid;
}

// Both engines; the same end, the same bytes.
inline Fluid run_both(const Schedule& schedule, const Costs& costs) {
  REQUIRE(validate(schedule).ok());
  const LongestPathResult slow =
      longest_path(schedule, costs.connections, costs.lanes, costs.links, {});
  Fluid fluid = run_fluid(schedule, costs);
  CHECK(fluid.end == slow.end);
  CHECK(fluid.messages == slow.messages);
  CHECK(fluid.carried == slow.link_payload);
  return fluid;
}

inline std::string refusal(const Schedule& schedule) {
  const auto report = check_dataflow(schedule);
  return report.ok() ? "" : report.error().message;
}

}  // namespace railyard::sim::by_hand
