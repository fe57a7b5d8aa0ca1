// CommCosts: the sim::CostModel of NCCL-like communication, from a Topology and a profile.
//
// Equations (L = sum of link latencies on the route; P = the protocol's parameters; a direct
// connection stays in a node or NVLink domain, a staged one crosses the network):
//
//   wire bytes   payload x 2 (LL), x 16/15 (LL128), x 1 (Simple, plain), / P.wire_efficiency
//   direct       cap     = P.channel_rate x lane's copy share, in wire bytes
//                latency = L + P.hop_latency             credit = L + P.hop_latency
//                grain   = P.forward_grain: cut-through, where it is smaller than the slice
//   staged       copy    = payload at P.channel_rate x share (into the FIFO), then the proxy
//                latency = L + P.net_hop_latency (+ flush for Simple)    credit = completion = L
//                send service = network.proxy_send (+ wire bytes / ll_check_rate with LL: the proxy
//                checks the flags; + rendezvous_cost by size); recv_service = network.proxy_recv
//                for Simple; LL and LL128 flags are seen without the proxy, which must post the
//                next receive all the same (recv_busy = network.proxy_recv). With PXN the relay's
//                proxy sends. Every protocol is step-granular (no cut-through)
//   copies       + inline_copy to send a small message out of GPU memory, + eager_copy (LL too then
//                waits for the proxy) at most every eager_interval to receive one into it
//   GPU-initiated sends: latency = L + network.gpu_hop_latency (+ flush for Simple), no services
//   queue pairs  each with a hash of its own, so with a path of its own in a fabric with ECMP;
//                messages take them in turn or are split over all (sim/cost.h)
//   poll         ring, LL: whoever receives looks for P.poll_time at every 4 KiB of the slice but
//                the first (sim::poll_time()): 512 threads look at a line of 8 bytes of payload
//                each, and go on when it is there. The first look is part of the hop
//   kept         LL, collectives: an operation that sends and keeps stores twice, first at
//                P.channel_rate and then at P.local_rate (sim::keep_time())
//   plain        no cap, no latency but L, no services: what simulators without protocols compute
//   host memory  see host_stops.h: shared-memory transport, network without GPUDirect, sockets, PXN
//   NVSwitch     a lane in it: one flow over GPU -> NVSwitch of all whose data it sums and NVSwitch
//                -> its own GPU, then its own GPU -> NVSwitch and NVSwitch -> GPU of all that it
//                stores to, payload / nvls.efficiency, capped at nvls.reduce_rate x share; what
//                goes over the network goes on at once. Scatter, gather: latency = L (to the
//                NVSwitch and on) + nvls.hop_latency; copies at nvls.copy_rate x share; every stage
//                costs nvls.op_overhead, that of scatter and gather divided by their blocks
//   send/receive with Simple: send_recv.* in place of P.*; grain 0, since a chunk is one slice
//   mixed        the same where several peers meet at an NVSwitch's ports: wire bytes /
//                send_recv.mixed_efficiency
//   start        host.multi_cta_start with more than one channel, + nvls.start with NVLS
//   fabric       a lane in a fabric switch (SHARP): one flow over GPU -> NIC and the tree of
//                shortest paths to the switch, and back; each link once. To it: copy, proxy_send
//                and L; from it: L + P.net_hop_latency, flush and proxy_recv
//   link         line rate x efficiency, at least 1 kB/s: shares of less would round to nothing
//   slowdown     compute kernels  sms / (sms - channels), waves not quantised
//                memory kernels   1 / (1 - h x r / B): r = the rate at which this GPU's connections
//                can send, h = gpu.comm_hbm_factor, B = gpu.hbm_bandwidth x gpu.memory_efficiency
//
// Sources: NCCL src/device/prims_*.h, transport/net.cc, proxy.cc for the structure; the numbers are
// the profile's. Not modelled: what SHARP's leaves do without GPUDirect; that one queue pair keeps
// only so many work requests in flight.
#pragma once

#include <map>

#include "sim/cost.h"
#include "sim/fabric_tree.h"
#include "sim/parameters.h"
#include "sim/topology.h"

namespace railyard::models {

// Not for concurrent use: it keeps what it has found out about the fabric.
class CommCosts final : public sim::CostModel {
 public:
  // Both must outlive the object.
  CommCosts(const sim::Topology& topology, const sim::Parameters& parameters)
      : topology_(&topology), parameters_(&parameters) {}

  [[nodiscard]] sim::Bandwidth link_capacity(const sim::Link& link) const override;
  [[nodiscard]] sim::Result<sim::ConnectionCost> connection(
      const sim::Schedule& schedule, const sim::Group& group,
      sim::ConnectionId connection) const override;
  [[nodiscard]] sim::LaneCost lane(const sim::Schedule& schedule,
                                   const sim::Lane& lane) const override;
  [[nodiscard]] sim::Result<sim::SwitchFlow> switch_flow(const sim::Schedule& schedule,
                                                         const sim::Group& group,
                                                         sim::LaneId lane) const override;
  [[nodiscard]] sim::Duration start(const sim::Schedule& schedule) const override;
  [[nodiscard]] sim::Result<std::optional<sim::SwitchFlow>> fetch_flow(
      const sim::Schedule& schedule, const sim::Group& group, sim::LaneId lane) const override;
  [[nodiscard]] sim::Slowdown slowdown(const sim::Schedule& schedule,
                                       const sim::Group& group) const override;

 private:
  [[nodiscard]] sim::Result<sim::Route> route(const sim::Schedule& schedule,
                                              const sim::Group& group,
                                              const sim::Connection& connection,
                                              std::uint32_t pair) const;
  // The paths of its other queue pairs; none where all take one, since they share its links alike.
  [[nodiscard]] sim::Result<void> add_queue_pairs(const sim::Schedule& schedule,
                                                  const sim::Group& group,
                                                  const sim::Connection& connection,
                                                  sim::ConnectionCost& cost) const;
  [[nodiscard]] sim::ProtocolParameters costs_of(const sim::Schedule& schedule) const;
  [[nodiscard]] sim::Duration latency(const sim::Route& route) const;
  [[nodiscard]] bool mixes(const sim::Schedule& schedule, const sim::Group& group,
                           const sim::Route& route, std::uint32_t rank) const;
  // host_costs.cpp: what passes the memory of hosts, sockets and relays
  [[nodiscard]] sim::Result<void> add_host_costs(const sim::Schedule& schedule,
                                                 const sim::Group& group,
                                                 const sim::Connection& connection,
                                                 sim::ConnectionCost& cost) const;
  // Bytes that a lane loads from host memory: its share of the CTA's rate.
  [[nodiscard]] sim::Bandwidth load_rate(const sim::Lane& lane) const;
  void add_socket_costs(std::int64_t message, std::uint32_t streams,
                        sim::ConnectionCost& cost) const;
  // switch_costs.cpp: connections of lanes in switches
  [[nodiscard]] sim::Result<sim::ConnectionCost> beside_nvswitch(
      const sim::Schedule& schedule, const sim::Group& group,
      const sim::Connection& connection) const;
  [[nodiscard]] sim::Result<sim::ConnectionCost> beside_fabric_switch(
      const sim::Schedule& schedule, const sim::Group& group,
      const sim::Connection& connection) const;
  [[nodiscard]] sim::Result<sim::SwitchFlow> nvswitch_flow(const sim::Schedule& schedule,
                                                           const sim::Group& group,
                                                           const sim::Lane& lane) const;
  [[nodiscard]] sim::Result<sim::SwitchFlow> fabric_switch_flow(const sim::Schedule& schedule,
                                                                const sim::Group& group,
                                                                const sim::Lane& lane) const;

  [[nodiscard]] const sim::FabricTree& fabric_tree(sim::DeviceId root) const;

  const sim::Topology* topology_;
  const sim::Parameters* parameters_;
  mutable std::map<sim::DeviceId, sim::FabricTree> fabric_trees_;  // as asked for
};

}  // namespace railyard::models
