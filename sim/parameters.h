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
#include "sim/comm_parameters.h"
#include "sim/field_table.h"
#include "sim/size_band.h"
#include "sim/topology.h"
#include "sim/units.h"

namespace railyard::sim {

struct FlopsRate {
  double per_second = 0;
  friend auto operator<=>(const FlopsRate&, const FlopsRate&) = default;
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
  // Broadcasts between two RTX 4090 without P2P reach 18.2 GB/s (rtx4090-2g-perstart) with NCCL's
  // two channels; A40s half as much, Gen5 cards more.
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
  Collective collective = Collective::all_reduce;
  SizeBand band = SizeBand::small;
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
  GlooParameters gloo;
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
