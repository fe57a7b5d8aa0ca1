// DDP's communication hooks (torch/distributed/algorithms/ddp_comm_hooks): what a full bucket of E
// elements of e bytes costs on the wire and in kernels.
//
//   none              AllReduce E e; gradients were divided on their way into the bucket
//   fp16_compress     cast and division, AllReduce 2 E, cast back (nothing to gain if e is 2)
//   bf16_compress     the same
//   powerSGD          see power_sgd.h; until it starts, division and AllReduce E e
//   batched_powerSGD  the same
//   in backward       not one of PyTorch's named hooks, but how _apply_optimizer_in_backward works:
//                     AllReduce E e, then division and every parameter's own optimizer step
//
// The kernels before the first collective run on the compute stream, which the autograd thread has
// as its current one; all others in the future's callbacks, on a stream of their own. Their work
// counts bytes moved, so products with P and Q are taken as bound by memory: true for ranks well
// below the GPU's FLOPs per byte. Gram-Schmidt (rank 1 or 2, and half precision) is two kernels a
// column and four for each that follows; QR is taken as two kernels (factor, form Q). Random Q are
// drawn by the host; that time is not known here and not counted.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/compute/kernels.h"
#include "models/ddp/calls.h"
#include "models/ddp/power_sgd.h"
#include "sim/enum_table.h"
#include "sim/gpu.h"
#include "sim/trace.h"

namespace railyard::models {

enum class CommHook : std::uint8_t {
  none,
  fp16_compress,
  bf16_compress,
  power_sgd,
  batched_power_sgd
};

struct HookOptions {
  CommHook kind = CommHook::none;
  PowerSgdOptions power_sgd{};
  bool optimizer_in_backward = false;  // only with `none`
  std::int64_t optimizer_bytes = 0;    // HBM traffic per parameter, of that optimizer
  // A hook: gradients reach the bucket undivided.
  [[nodiscard]] bool any() const { return kind != CommHook::none || optimizer_in_backward; }
};

// A full bucket as a hook gets it.
struct HookBucket {
  std::vector<std::vector<std::int64_t>> shapes;  // of its tensors
  std::int64_t elements = 0;
  std::int64_t element_size = 4;
};

// What the hook does with it, one after the other: kernels, a collective, kernels, ... `after` runs
// behind the last collective; then the host may wait for the whole GPU; `last` ends the future.
struct BucketHook {
  std::vector<std::vector<sim::Kernel>> before;  // as many as collectives
  std::vector<sim::Kernel> after;
  bool device_synchronize = false;
  std::vector<sim::Kernel> last;
};

// The collectives of a bucket in iteration `iteration` (from 1), in their order. One of no bytes is
// not launched: NCCL returns at once.
std::vector<DdpCall> hook_calls(const HookBucket& bucket, const HookOptions& options,
                                std::int64_t iteration);
BucketHook bucket_hook(const HookBucket& bucket, const HookOptions& options, std::int64_t iteration,
                       const KernelModel& kernels, sim::Trace& trace);

}  // namespace railyard::models

template <>
struct railyard::sim::EnumTable<railyard::models::CommHook> {
  using CommHook = railyard::models::CommHook;
  static constexpr std::string_view kind = "communication hook";
  static constexpr std::array entries{EnumEntry{CommHook::none, "none"},
                                      EnumEntry{CommHook::fp16_compress, "fp16_compress"},
                                      EnumEntry{CommHook::bf16_compress, "bf16_compress"},
                                      EnumEntry{CommHook::power_sgd, "powerSGD"},
                                      EnumEntry{CommHook::batched_power_sgd, "batched_powerSGD"}};
};
