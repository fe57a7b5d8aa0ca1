// LogGP endpoint mode, for comparison with LogGOPSim: hosts with one CPU and one NIC, no network
// between them. Whole nanoseconds. For a message of s bytes:
//
//   send     begins when its round has begun, the CPU is free and the NIC has left the last send;
//            CPU busy o + (s-1) O, sending NIC g + (s-1) G; the first byte arrives o + L later
//   arrival  the receiving NIC takes messages in order of their first bytes; busy g + (s-1) G each;
//            the message is there (s-1) G after it began to take it
//   receive  begins when the message is there, the receive was posted (its round has begun) and the
//            CPU is free; CPU busy o + (s-1) O
//   A send is done with the CPU (s <= S) or when the receive is done (s > S). A receive is done
//   with the CPU. Messages of a pair of hosts arrive in order.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace railyard::sim {

struct LogGP {
  std::int64_t L = 2500;
  std::int64_t o = 1500;
  std::int64_t g = 1000;
  std::int64_t G = 6;
  std::int64_t O = 0;
  std::int64_t S = 65535;
};

struct HostOp {
  bool is_send = false;
  std::uint32_t peer = 0;
  std::int64_t bytes = 1;
};

// Appends the operations of a host's round, which begin when those of the round before are done;
// false if the host has no such round. Called once per host and round.
using HostProgram =
    std::function<bool(std::uint32_t host, std::uint32_t round, std::vector<HostOp>& out)>;

// When each host is done. Every message must be received.
std::vector<std::int64_t> run_loggp(const LogGP& parameters, std::uint32_t hosts,
                                    const HostProgram& program);

// Message lists of well-known patterns. n hosts, `bytes` as LogGOPSim's Schedgen takes them.
HostProgram binomial_broadcast(std::uint32_t hosts, std::int64_t bytes);
HostProgram binomial_reduce(std::uint32_t hosts, std::int64_t bytes);
HostProgram dissemination(std::uint32_t hosts, std::int64_t bytes);
HostProgram ring_allreduce(std::uint32_t hosts, std::int64_t bytes);
HostProgram recursive_halving_doubling(std::uint32_t hosts, std::int64_t bytes);  // n = 2^k
HostProgram linear_all_to_all(std::uint32_t hosts, std::int64_t bytes_per_peer);

}  // namespace railyard::sim
