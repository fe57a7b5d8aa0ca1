// What it takes to make an NCCL communicator: host time by the number of ranks, and TCP ports.
//
//   time = fixed + per_rank x ranks
//
// Before 2.23: through the two runs of NVIDIA/nccl#534 (V100, 2021: 2.0 s for 8 ranks, 4.1 s for
// 32), 1.3 s and 87.5 ms. Others report 2.46 s for 8 H100 (2.22.3, same issue), 3.27 s for 16
// (p5-h100-2n16g-allreduce-nccl2223) and 2.5 minutes at "above certain K" GPUs (#1156).
//
// From 2.23 on the ranks report to the root at 7000 a second (NCCL_UID_STAGGER_RATE,
// src/bootstrap.cc) and then gather what all need over a ring of N - 1 steps three times; 50 us a
// step are assumed, a TCP message between two hosts. fixed is what NCCL's "Init timings" have
// beside the bootstrap (kernels, topology, graphs, connections, rest): 0.57 s (4 H100,
// snellius-h100-1n4g), 0.85 s (8 H100, #534), 0.97 s (16, p5); 1 s is assumed. A warm process needs
// a third of it.
//
// Good for the order of magnitude. Not valid above some 30,000 ranks, where loops over all pairs of
// ranks take over (NVIDIA/nccl PR 1789).
//
// Ports of a rank (src/bootstrap.cc, 2.30): three sockets that listen (ring, proxy, peers) and one
// to the next rank stay open; one that listens and one to the root are closed when it is done. A
// connection to another node (one per channel and pair, RDMA too) is one more port at its sender.
//
//   setup_time(setup_costs(2, 22), 32)   4.1 s
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "sim/units.h"

namespace railyard::models {

struct SetupCosts {
  sim::Duration fixed{};
  sim::Duration per_rank{};
};

// Of NCCL `major`.`minor`.
SetupCosts setup_costs(int major, int minor);

sim::Duration setup_time(const SetupCosts& costs, std::uint64_t ranks);

// Linux keeps the port of a closed connection for a minute (TCP_TIMEWAIT_LEN).
inline constexpr sim::Duration kTimeWait = sim::microseconds(60'000'000);

// What a host has of the communicators made at one time: memberships (ranks, summed over
// communicators) and connections that its ranks open to other nodes.
struct HostShare {
  std::int64_t memberships = 0;
  std::int64_t connections = 0;
};

// The TCP ports of one host.
class PortLedger {
 public:
  // Communicators are made; returns the ports in use at the busiest moment.
  std::int64_t make(sim::Time now, const HostShare& share);
  // They are destroyed: what listened is free, connections linger.
  void destroy(sim::Time now, const HostShare& share);
  [[nodiscard]] std::int64_t in_use(sim::Time now);

 private:
  void linger(sim::Time now, std::int64_t ports);

  std::int64_t open_ = 0;
  std::int64_t lingering_ = 0;
  std::deque<std::pair<sim::Time, std::int64_t>> closed_;  // free again at the time
};

}  // namespace railyard::models
