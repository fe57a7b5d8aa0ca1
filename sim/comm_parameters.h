// Parameters of communication: what links, protocols, NVLS, send/receive kernels and the network
// path cost. Part of sim::Parameters; rates are payload rates unless said otherwise.
#pragma once

#include "sim/field_table.h"
#include "sim/units.h"

namespace railyard::sim {

// Of one link class. Achievable rate = line rate x efficiency.
struct LinkParameters {
  double efficiency = 1.0;
  Duration latency{};  // of one link of this class, switch traversal included
};
template <>
struct FieldTable<LinkParameters> {
  static constexpr std::tuple fields{
      Field{"efficiency", &LinkParameters::efficiency, "achievable share of the line rate, 0..1"},
      Field{"latency", &LinkParameters::latency, "of one link, the switch behind it included"}};
};

// Of one protocol (LL, LL128, Simple, plain), for a CTA (= channel).
struct ProtocolParameters {
  Bandwidth channel_rate{};    // payload one channel copies to a peer; 0 = unlimited
  Bandwidth local_rate{};      // payload one channel copies or reduces locally; 0 = unlimited
  Duration op_overhead{};      // fixed cost of moving one slice (barrier, fence, pointers)
  Duration hop_latency{};      // flag or tail visible at a peer over NVLink or PCIe
  Duration net_hop_latency{};  // the same over the network, wire latency not included
  double wire_efficiency =
      1;                  // payload / (wire bytes the format needs); on top of LL 1/2, LL128 15/16
  Duration poll_time{};   // ring, LL: a receiver's look at 4 KiB of lines, behind a slice's first
  Bytes forward_grain{};  // in a node a slice is passed on when so much of it is there; 0 = all
};
template <>
struct FieldTable<ProtocolParameters> {
  static constexpr std::tuple fields{
      Field{"channel_rate", &ProtocolParameters::channel_rate,
            "payload rate of one channel to a peer"},
      Field{"local_rate", &ProtocolParameters::local_rate,
            "rate of one channel's local copy or reduction"},
      Field{"op_overhead", &ProtocolParameters::op_overhead, "fixed cost of moving one slice"},
      Field{"hop_latency", &ProtocolParameters::hop_latency,
            "until a peer in the node sees a slice"},
      Field{"net_hop_latency", &ProtocolParameters::net_hop_latency, "the same across the network"},
      Field{"wire_efficiency", &ProtocolParameters::wire_efficiency,
            "payload share of the wire bytes beyond the format's own 1/2 (LL) or 15/16 (LL128)"},
      Field{"poll_time", &ProtocolParameters::poll_time,
            "LL rings: receiver's time for each 4 KiB of a slice behind the first"},
      Field{"forward_grain", &ProtocolParameters::forward_grain,
            "part of a slice that must be there to be passed on in a node, 0 for all of it"}};
};

// Send/receive kernels with Simple (SendRecv, AllToAll, Gather, Scatter): plain copies, unlike the
// ring's reduce-copy. They replace the protocol's own; of a whole CTA, shared by its works.
struct SendRecvParameters {
  Bandwidth channel_rate{};  // 0 = the protocol's
  Bandwidth local_rate{};    // 0 = the protocol's
  Duration op_overhead{};
  Duration hop_latency{};
  // Of an NVLink where a GPU exchanges with several others through an NVSwitch at once: flows meet
  // at the switch's ports, unlike those of a ring, in which each port serves one pair.
  double mixed_efficiency = 1;
};
template <>
struct FieldTable<SendRecvParameters> {
  static constexpr std::tuple fields{
      Field{"channel_rate", &SendRecvParameters::channel_rate,
            "payload rate of one channel to its peers, 0: Simple's"},
      Field{"local_rate", &SendRecvParameters::local_rate,
            "rate of one channel's copies into the user's buffer, 0: Simple's"},
      Field{"op_overhead", &SendRecvParameters::op_overhead, "fixed cost of moving one slice"},
      Field{"hop_latency", &SendRecvParameters::hop_latency,
            "until a peer in the node sees a slice"},
      Field{"mixed_efficiency", &SendRecvParameters::mixed_efficiency,
            "payload share of an NVLink whose NVSwitch port serves several peers, 0..1"}};
};

// What runs in an NVSwitch (NVLS): three groups of warps of a CTA that copy into the multicast
// buffer, reduce and multicast, and copy out of it. Rates are those of a whole CTA.
struct NvlsParameters {
  Bandwidth copy_rate{};    // user's buffer to and from the multicast buffer; 0 = unlimited
  Bandwidth reduce_rate{};  // multimem loads and stores that one CTA keeps up; 0 = unlimited
  double efficiency = 1;    // of multimem traffic on a link, on top of the link's own
  Duration op_overhead{};   // of one group of warps, per loop
  Duration hop_latency{};   // from one group to the next, links not included
  Duration start{};         // before the first loop, beyond that of other algorithms
};
template <>
struct FieldTable<NvlsParameters> {
  static constexpr std::tuple fields{
      Field{"copy_rate", &NvlsParameters::copy_rate, "a CTA's copies to and from the NVLS buffer"},
      Field{"reduce_rate", &NvlsParameters::reduce_rate, "a CTA's multimem loads and stores"},
      Field{"efficiency", &NvlsParameters::efficiency,
            "payload share of multimem traffic on a link"},
      Field{"op_overhead", &NvlsParameters::op_overhead, "fixed cost of a stage, per loop"},
      Field{"hop_latency", &NvlsParameters::hop_latency, "from one stage to the next"},
      Field{"start", &NvlsParameters::start, "before the first loop"}};
};

// The network path of NCCL: one proxy thread per rank, NIC, flush.
//
// A message occupies the sending proxy for proxy_send + wire bytes / ll_check_rate (LL: the proxy
// looks at every flag before it sends) + rendezvous_cost (from rendezvous_from to rendezvous_to
// wire bytes: too long to be sent eagerly, too short for the NIC to hide the handshake).
// Libraries that copy small messages themselves (Slingshot's, fi_cxi(7)): one of 1 to inline_to
// wire bytes out of GPU memory + inline_copy, since the CPU hands it to the NIC. One of 1 to
// eager_to that goes into GPU memory is first received into the library's own buffers: it takes the
// receiving proxy eager_copy before it is seen, and is looked at eager_interval behind the one
// before.
struct NetworkParameters {
  Duration proxy_send{};  // proxy's time per message sent (serial per rank)
  Duration proxy_recv{};  // proxy's time per message received (serial per rank)
  Duration flush{};       // after a receive into GPU memory, before Hopper
  // GPU-initiated: from the post to where the peer's GPU sees the data, wire latency not included,
  // in place of the protocol's net_hop_latency. NCCL's GIN takes 16.7 us there and back on two H100
  // over InfiniBand (arXiv 2511.15076): 8.35 us less 2.08 of a path through one switch and 0.97 of
  // send_recv.op_overhead.
  Duration gpu_hop_latency = nanoseconds(5300);
  Bandwidth ll_check_rate{};   // LL wire bytes whose flags the proxy checks; 0 = no time
  Bytes rendezvous_from{};     // shortest message that pays rendezvous_cost
  Bytes rendezvous_to{};       // longest one; 0 = none does
  Duration rendezvous_cost{};  // proxy's time on top
  Bytes inline_to{};           // longest message that the CPU hands to the NIC; 0 = none
  Duration inline_copy{};      // its copy out of GPU memory
  Bytes eager_to{};            // longest message that arrives in the library's buffers; 0 = none
  Duration eager_copy{};       // its copy into GPU memory
  Duration eager_interval{};   // of a rank, from look to look
  // Sockets (TCP) instead of InfiniBand verbs. A thread that only sends moves 3.75 GB/s (Broadcast
  // over loopback), a proxy that sends and receives at once 2 GB/s each way (AllReduce on two
  // g4dn); 0 = no limit.
  Bandwidth socket_rate = gigabytes_per_second(3.75);  // of one stream or proxy
  // Small AllReduces of two nodes take 24 us more by TCP than by RDMA on the same Slingshot wire:
  // two hops of 12 us, of which two proxies' system calls take 2 us each.
  Duration socket_latency = microseconds(8);  // of both TCP stacks, on top of the links
  Duration socket_message = microseconds(2);  // either proxy's time per message, on top
};
template <>
struct FieldTable<NetworkParameters> {
  static constexpr std::tuple fields{
      Field{"proxy_send", &NetworkParameters::proxy_send, "proxy thread's time per message sent"},
      Field{"proxy_recv", &NetworkParameters::proxy_recv,
            "proxy thread's time per message received"},
      Field{"flush", &NetworkParameters::flush, "flush after a GPUDirect receive (pre-Hopper)"},
      Field{"gpu_hop_latency", &NetworkParameters::gpu_hop_latency,
            "until a peer sees what a GPU sent without its proxy"},
      Field{"ll_check_rate", &NetworkParameters::ll_check_rate,
            "rate at which the proxy checks the flags of LL data"},
      Field{"rendezvous_from", &NetworkParameters::rendezvous_from,
            "shortest message with a handshake that costs the proxy time"},
      Field{"rendezvous_to", &NetworkParameters::rendezvous_to, "longest such message, 0 for none"},
      Field{"rendezvous_cost", &NetworkParameters::rendezvous_cost, "what the handshake costs"},
      Field{"inline_to", &NetworkParameters::inline_to,
            "longest message that the CPU copies out of GPU memory to send it, 0 for none"},
      Field{"inline_copy", &NetworkParameters::inline_copy, "what that copy costs"},
      Field{"eager_to", &NetworkParameters::eager_to,
            "longest message that the CPU copies into GPU memory, 0 for none"},
      Field{"eager_copy", &NetworkParameters::eager_copy, "what that copy costs"},
      Field{"eager_interval", &NetworkParameters::eager_interval,
            "from one such message of a rank to the next"},
      Field{"socket_rate", &NetworkParameters::socket_rate, "rate of one TCP stream, 0 unlimited"},
      Field{"socket_latency", &NetworkParameters::socket_latency,
            "of the TCP stacks on both sides, on top of the links"},
      Field{"socket_message", &NetworkParameters::socket_message,
            "proxy thread's further time per message over TCP"}};
};

// Gloo on TCP: a process has a caller's thread, which reduces, and a device thread, which serves
// the sockets of all its connections. models/comm/gloo_costs.h has the formulas. The defaults are
// one core of a current server.
struct GlooParameters {
  // A stream of one connection, both ends copying: torchft's Gloo reaches 19 Gb/s over TCP.
  Bandwidth stream_rate = gigabytes_per_second(2.4);
  // float sums of probe_gloo's host, an EPYC virtual machine: 4 bytes read twice and written once.
  Bandwidth reduce_rate = gigabytes_per_second(5);
  Bandwidth copy_rate = gigabytes_per_second(8);  // memcpy beyond the caches
  // Small AllReduces of two ranks over one veth pair take 300 us of 8 messages in a row.
  Duration op_overhead = microseconds(10);  // caller's thread, per segment: post, wait, wake up
  Duration message = microseconds(5);       // device thread, per message, on either side
  Duration latency = microseconds(15);      // of both TCP stacks, on top of the links
  Duration start = microseconds(30);        // of a call: buffers, and the first request to send
};
template <>
struct FieldTable<GlooParameters> {
  static constexpr std::tuple fields{
      Field{"stream_rate", &GlooParameters::stream_rate, "rate of one TCP connection, 0 unlimited"},
      Field{"reduce_rate", &GlooParameters::reduce_rate,
            "bytes that one core adds to others in memory, 0 unlimited"},
      Field{"copy_rate", &GlooParameters::copy_rate, "bytes that one core copies, 0 unlimited"},
      Field{"op_overhead", &GlooParameters::op_overhead, "caller's time per segment"},
      Field{"message", &GlooParameters::message, "device thread's time per message"},
      Field{"latency", &GlooParameters::latency, "of both TCP stacks, on top of the links"},
      Field{"start", &GlooParameters::start, "of a call, before its first segment"}};
};

}  // namespace railyard::sim
