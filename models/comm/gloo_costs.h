// GlooCosts: the sim::CostModel of Gloo over TCP on processors (algorithms/gloo), from a Topology
// and a profile's `gloo` parameters G. Data lie in the memory of the processor nearest to where a
// rank stands; without processors in the topology they leave from the place itself.
//
//   lane, gloo_reduce   G.op_overhead per segment, then the sum of what arrived at G.reduce_rate
//   lane, gloo_move     G.op_overhead: the device thread has put the data into place
//   lane, local         a copy at G.copy_rate
//   between hosts       device thread G.message -> flow over CPU, NIC, fabric, NIC, CPU at most at
//                       G.stream_rate -> L + G.latency -> device thread G.message
//   within a host       the same without links: loopback
//   next segment        when the receiver has done with the one before the last and L + G.latency
//                       have passed: it asks for every segment
//   start               G.start, once per call
//   links               line rate x efficiency (of full TCP segments: 1448 payload bytes of 1538 on
//                       the wire, or of 1514 where a shaper counts them)
//
// (L = sum of link latencies.) A device thread serves one message after the other, sent or
// received; a connection sends one segment after the other.
//
// Processor time of a call and rank, for the utilisation that a result reports:
//   bytes sent and received / G.stream_rate + messages sent and received x G.message
//     + bytes added / G.reduce_rate + operations x G.op_overhead
//
// Source: pytorch/gloo, transport/tcp (pair.cc: requests and notifications, one epoll loop a
// device). Not modelled: processors that are busy with other work, TCP's loss and recovery, the
// second worker thread of PyTorch's process group, which lets two collectives overlap.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/cost.h"
#include "sim/parameters.h"
#include "sim/topology.h"

namespace railyard::models {

// What one rank's processor does in a call.
struct GlooWork {
  sim::Bytes moved{};  // sent and received
  sim::Bytes added{};
  std::int64_t messages = 0;
  std::int64_t operations = 0;
};

class GlooCosts final : public sim::CostModel {
 public:
  // Both must outlive the object.
  GlooCosts(const sim::Topology& topology, const sim::Parameters& parameters);

  [[nodiscard]] sim::Bandwidth link_capacity(const sim::Link& link) const override;
  [[nodiscard]] sim::Result<sim::ConnectionCost> connection(
      const sim::Schedule& schedule, const sim::Group& group,
      sim::ConnectionId connection) const override;
  [[nodiscard]] sim::LaneCost lane(const sim::Schedule& schedule,
                                   const sim::Lane& lane) const override;
  [[nodiscard]] sim::Duration start(const sim::Schedule& schedule) const override;
  // None: compute kernels and Gloo's threads have processors of their own.
  [[nodiscard]] sim::Slowdown slowdown(const sim::Schedule& schedule,
                                       const sim::Group& group) const override;

 private:
  [[nodiscard]] sim::Result<sim::Route> route(const sim::Schedule& schedule,
                                              const sim::Group& group,
                                              const sim::Connection& connection) const;

  const sim::Topology* topology_;
  const sim::Parameters* parameters_;
  std::vector<sim::DeviceId> memory_;  // by device: the nearest processor, or the device itself
};

// Of the busiest rank.
GlooWork gloo_work(const sim::Schedule& schedule);
sim::Duration gloo_processor_time(const GlooWork& work, const sim::GlooParameters& parameters);

}  // namespace railyard::models
