// Parameters: what a link, a protocol, a GPU and a host cost on one platform. A *profile* file
// holds one set; calibration writes the same format. Every number has an origin (scenario, profile,
// class, datasheet) kept beside it, so that a result can say where it came from.
//
// Validity: one profile serves all sizes, collectives, algorithms and scales of its platform.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/collective.h"
#include "sim/field_table.h"
#include "sim/topology.h"
#include "sim/units.h"

namespace railyard::sim {

struct FlopsRate {
  double per_second = 0;
  friend auto operator<=>(const FlopsRate&, const FlopsRate&) = default;
};

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
      1;  // payload / (wire bytes the format needs); on top of LL 1/2, LL128 15/16
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
            "until a peer in the node sees a slice"}};
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
struct NetworkParameters {
  Duration proxy_send{};       // proxy's time per message sent (serial per rank)
  Duration proxy_recv{};       // proxy's time per message received (serial per rank)
  Duration flush{};            // after a receive into GPU memory, before Hopper
  Bandwidth ll_check_rate{};   // LL wire bytes whose flags the proxy checks; 0 = no time
  Bytes rendezvous_from{};     // shortest message that pays rendezvous_cost
  Bytes rendezvous_to{};       // longest one; 0 = none does
  Duration rendezvous_cost{};  // proxy's time on top
  // Sockets (TCP) instead of InfiniBand verbs. A proxy without helper threads that sends and
  // receives at once moves 2 GB/s each way (AllReduce on two g4dn), one that only sends 3.75 GB/s
  // (Broadcast over loopback); 0 = no limit.
  Bandwidth socket_rate = gigabytes_per_second(2);  // of one stream or proxy
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
      Field{"ll_check_rate", &NetworkParameters::ll_check_rate,
            "rate at which the proxy checks the flags of LL data"},
      Field{"rendezvous_from", &NetworkParameters::rendezvous_from,
            "shortest message with a handshake that costs the proxy time"},
      Field{"rendezvous_to", &NetworkParameters::rendezvous_to, "longest such message, 0 for none"},
      Field{"rendezvous_cost", &NetworkParameters::rendezvous_cost, "what the handshake costs"},
      Field{"socket_rate", &NetworkParameters::socket_rate, "rate of one TCP stream, 0 unlimited"},
      Field{"socket_latency", &NetworkParameters::socket_latency,
            "of the TCP stacks on both sides, on top of the links"},
      Field{"socket_message", &NetworkParameters::socket_message,
            "proxy thread's further time per message over TCP"}};
};

// Peak rates are dense, as in the datasheet; efficiencies are what kernels reach of them.
struct GpuParameters {
  int sms = 0;
  FlopsRate peak_fp32{};
  FlopsRate peak_tf32{};  // 0 where the GPU has none: fp32 is used
  FlopsRate peak_fp16{};  // fp16 and bf16
  Bandwidth hbm_bandwidth{};
  Bytes hbm_capacity{};
  double gemm_efficiency = 0.6;    // of the peak, matrix products
  double conv_efficiency = 0.4;    // of the peak, convolutions
  double memory_efficiency = 0.8;  // of hbm_bandwidth, bandwidth-bound kernels
  Duration kernel_gap{};           // between dependent kernels of a stream
  // The shortest kernels (fills of a few elements) of a public A100 training trace take 1.34 us,
  // one in a hundred kernels less than 1.5 us (HolisticTraceAnalysis, nccl_parser_config).
  Duration min_kernel_time = nanoseconds(1'400);
  double comm_hbm_factor = 2.5;  // HBM bytes a collective moves per payload byte on the wire
  // Broadcasts between two RTX 4090 without P2P reach 18.2 GB/s (rtx4090-2g-perstart) with NCCL's two
  // channels; A40s half as much, Gen5 cards more.
  Bandwidth host_load_rate = gigabytes_per_second(9);  // one CTA, from host memory; 0 = no limit
};
template <>
struct FieldTable<GpuParameters> {
  static constexpr std::tuple fields{
      Field{"sms", &GpuParameters::sms, "streaming multiprocessors"},
      Field{"peak_fp32", &GpuParameters::peak_fp32, "dense FP32 peak"},
      Field{"peak_tf32", &GpuParameters::peak_tf32, "dense TF32 peak, 0 if there is none"},
      Field{"peak_fp16", &GpuParameters::peak_fp16, "dense FP16/BF16 tensor peak"},
      Field{"hbm_bandwidth", &GpuParameters::hbm_bandwidth, "memory bandwidth"},
      Field{"hbm_capacity", &GpuParameters::hbm_capacity, "memory size"},
      Field{"gemm_efficiency", &GpuParameters::gemm_efficiency,
            "share of the peak that GEMMs reach"},
      Field{"conv_efficiency", &GpuParameters::conv_efficiency,
            "share of the peak that convolutions reach"},
      Field{"memory_efficiency", &GpuParameters::memory_efficiency,
            "share of hbm_bandwidth that kernels reach"},
      Field{"kernel_gap", &GpuParameters::kernel_gap, "between consecutive kernels of a stream"},
      Field{"min_kernel_time", &GpuParameters::min_kernel_time,
            "the least that a kernel takes, however small"},
      Field{"comm_hbm_factor", &GpuParameters::comm_hbm_factor,
            "HBM bytes moved per byte a collective sends"},
      Field{"host_load_rate", &GpuParameters::host_load_rate,
            "rate at which one CTA loads from host memory, 0 for no limit"}};
};

// The host thread that runs the framework.
struct HostParameters {
  Duration op_launch{};          // framework + driver time to launch one kernel
  Duration collective_launch{};  // to launch one collective (stream switch, enqueue, launch)
  Duration launch_latency{};     // from the launch call to the kernel's start on an idle stream
  Duration collective_start{};   // from the NCCL kernel's start to its first operation
  Duration multi_cta_start{};    // on top, with more than one CTA (= channel)
  Duration grad_hook{};          // DDP's autograd hook, per parameter
};
template <>
struct FieldTable<HostParameters> {
  static constexpr std::tuple fields{
      Field{"op_launch", &HostParameters::op_launch,
            "host time per kernel launched by the framework"},
      Field{"collective_launch", &HostParameters::collective_launch,
            "host time per collective launched"},
      Field{"launch_latency", &HostParameters::launch_latency,
            "launch call to kernel start, idle stream"},
      Field{"collective_start", &HostParameters::collective_start,
            "NCCL kernel start to its first operation"},
      Field{"multi_cta_start", &HostParameters::multi_cta_start,
            "on top, for a kernel of more than one CTA"},
      Field{"grad_hook", &HostParameters::grad_hook, "host time of DDP's hook, per parameter"}};
};

// Where a number comes from, weakest last.
enum class Origin { scenario, profile, device_class, datasheet };
template <>
struct EnumTable<Origin> {
  static constexpr std::string_view kind = "origin";
  static constexpr std::array entries{
      EnumEntry{Origin::scenario, "scenario"}, EnumEntry{Origin::profile, "profile"},
      EnumEntry{Origin::device_class, "class"}, EnumEntry{Origin::datasheet, "datasheet"}};
};

struct Provenance {
  std::string parameter;  // dotted path: "links.nvlink.efficiency", "protocols.LL.hop_latency"
  Origin origin = Origin::datasheet;
  std::string source;  // where the figure was published or how it was fitted
};

// |predicted / measured - 1| over measurements that nothing was fitted to.
struct ErrorBand {
  std::string collective;
  std::string band;  // by size: S < 64 KiB <= M <= 16 MiB < L
  std::int64_t count = 0;
  double median = 0;
  double p90 = 0;
};

struct Parameters {
  std::string name;  // of the profile
  GpuParameters gpu;
  HostParameters host;
  NetworkParameters network;
  NvlsParameters nvls;
  SendRecvParameters send_recv;
  std::array<LinkParameters, kLinkClasses> links;        // by LinkClass
  std::array<ProtocolParameters, kProtocols> protocols;  // by Protocol
  std::vector<Provenance> provenance;
  std::vector<std::string> fitted_runs;  // measurements that some of these numbers were fitted to
  std::vector<ErrorBand> validated;      // how well they predicted measurements not fitted to

  [[nodiscard]] const LinkParameters& link(LinkClass c) const {
    return links[static_cast<std::size_t>(c)];
  }
  [[nodiscard]] const ProtocolParameters& protocol(Protocol p) const {
    return protocols[static_cast<std::size_t>(p)];
  }
};

// Ranges that every number must keep (efficiencies from 0.001 to 1, delays of at most 10 s, ...);
// the error names the dotted path.
Result<void> validate(const Parameters& parameters);

}  // namespace railyard::sim
