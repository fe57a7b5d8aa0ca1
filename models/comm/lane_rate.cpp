#include "models/comm/lane_rate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace railyard::models {

using sim::Bandwidth;
using sim::ConnectionCost;
using sim::Protocol;

namespace {

constexpr std::int64_t kEfficiencyUnit = 10'000;  // efficiencies enter wire ratios in steps of 1e-4

// Half of a CTA's warps reach what a ring's reduce-copy of all of them does: public two-node trees
// on 200 Gb/s NICs keep 90 of 100 GB/s with the 40 % of their threads that go down.
double copy_share(const sim::Lane& lane) {
  const double share = lane.copy_percent / 100.0;
  const bool tree = lane.role == sim::LaneRole::tree_up || lane.role == sim::LaneRole::tree_down;
  return tree ? std::min(1.0, 2 * share) : share;
}

}  // namespace

void set_wire_ratio(Protocol protocol, double efficiency, ConnectionCost& cost) {
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
  if (protocol == Protocol::ll) numerator = 2;
  if (protocol == Protocol::ll128) {
    numerator = 16;
    denominator = 15;
  }
  numerator *= kEfficiencyUnit;
  denominator *= std::max<std::int64_t>(1, std::llround(efficiency * kEfficiencyUnit));
  const std::int64_t common = std::gcd(numerator, denominator);
  cost.wire_numerator = numerator / common;
  cost.wire_denominator = denominator / common;
}

void set_send_service(const sim::NetworkParameters& network, Protocol protocol,
                      ConnectionCost& cost) {
  cost.send_service = network.proxy_send;
  if (protocol == Protocol::ll) cost.send_byte_rate = network.ll_check_rate;
  cost.rendezvous_from = network.rendezvous_from;
  cost.rendezvous_to = network.rendezvous_to;
  cost.rendezvous = network.rendezvous_cost;
}

void set_copies(const sim::NetworkParameters& network, bool from_gpu, bool to_gpu,
                ConnectionCost& cost) {
  if (from_gpu) {
    cost.inline_to = network.inline_to;
    cost.inline_copy = network.inline_copy;
  }
  if (to_gpu) {
    cost.eager_to = network.eager_to;
    cost.eager_copy = network.eager_copy;
    cost.eager_interval = network.eager_interval;
  }
}

Bandwidth lane_rate(Bandwidth payload_rate, const sim::Lane& lane, const ConnectionCost& cost) {
  if (payload_rate.raw() == 0) return {};
  const double share = copy_share(lane);
  const double ratio =
      static_cast<double>(cost.wire_numerator) / static_cast<double>(cost.wire_denominator);
  return std::max(Bandwidth::from_raw(1), sim::scale(payload_rate, share * ratio));
}

Bandwidth in_turn(Bandwidth a, Bandwidth b) {
  if (a.raw() == 0 || b.raw() == 0) return std::max(a, b);
  const double ga = sim::to_gigabytes_per_second(a);
  const double gb = sim::to_gigabytes_per_second(b);
  return sim::gigabytes_per_second(ga * gb / (ga + gb));
}

}  // namespace railyard::models
