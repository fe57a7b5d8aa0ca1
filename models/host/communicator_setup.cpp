#include "models/host/communicator_setup.h"

#include "sim/check.h"

namespace railyard::models {
namespace {

// Of a rank: three sockets that listen, and the connection to the next rank.
constexpr std::int64_t kOpenPorts = 4;

}  // namespace

SetupCosts setup_costs(int major, int minor) {
  if (major < 2 || (major == 2 && minor < 23))
    return {sim::microseconds(1'300'000), sim::microseconds(87'500)};
  constexpr std::int64_t kReportsPerSecond = 7000;
  constexpr std::int64_t kGathers = 3;
  constexpr sim::Duration kSecond = sim::microseconds(1'000'000);
  return {kSecond, kSecond / kReportsPerSecond + sim::microseconds(50) * kGathers};
}

sim::Duration setup_time(const SetupCosts& costs, std::uint64_t ranks) {
  if (ranks < 2) return costs.fixed;
  return costs.fixed + costs.per_rank * static_cast<std::int64_t>(ranks);
}

std::int64_t PortLedger::make(sim::Time now, const HostShare& share) {
  open_ += kOpenPorts * share.memberships + share.connections;
  linger(now, share.memberships);  // to the root
  return in_use(now) + share.memberships;
}

void PortLedger::destroy(sim::Time now, const HostShare& share) {
  const std::int64_t all = kOpenPorts * share.memberships + share.connections;
  RAILYARD_CHECK(all <= open_, "what is destroyed was made");
  open_ -= all;
  linger(now, share.memberships + share.connections);
}

void PortLedger::linger(sim::Time now, std::int64_t ports) {
  lingering_ += ports;
  closed_.emplace_back(now + kTimeWait, ports);
}

std::int64_t PortLedger::in_use(sim::Time now) {
  while (!closed_.empty() && closed_.front().first <= now) {
    lingering_ -= closed_.front().second;
    closed_.pop_front();
  }
  return open_ + lingering_;
}

}  // namespace railyard::models
