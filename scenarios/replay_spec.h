// replay: a recorded step, as a scenario states it.
//
//   replay:
//     name: gpt2 rank 0, ProfilerStep#4
//     iterations: 3
//     forward:                       and backward:, after_backward:, in this order
//       - {before: 1.2ms, kernel: 310us, after: 100us, name: 45 kernels, bound: compute}
//       - {before: 60us, call: AllReduce, size: 8196000B, dtype: fp32, group: dp}
//       - {before: 20us, call: sends of stage 2, time: 1.2ms}   of which only the time is known
//       - {wait: 1}                  the compute stream, for the first call of the step
//       - {synchronize: true}        the host, for the compute stream
//       - {kernel: 80us, stream: copies}
//
// Sizes are nccl-tests': the whole buffer, also of AllGather and ReduceScatter, so that a scenario
// can be given another group. What each means: models/replay/replay.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/nn/dtype.h"
#include "models/replay/replay.h"
#include "scenarios/decode.h"
#include "scenarios/training_spec.h"
#include "sim/collective.h"

namespace railyard::scenarios {

struct ReplayItemSpec {
  models::ReplayAction action = models::ReplayAction::kernels;
  std::string name;
  sim::Duration before{};
  sim::Duration after{};
  std::optional<sim::Duration> kernel;  // of kernels, and of calls with a known time only
  sim::KernelBound bound = sim::KernelBound::memory;
  std::string stream;  // empty: the compute stream
  std::optional<sim::Collective> collective;
  sim::Bytes size{};
  models::Dtype dtype = models::Dtype::fp32;
  std::uint32_t root = 0;
  std::string group;
  std::uint32_t waits_for = 0;
};

struct ReplaySpec {
  std::string name = "recorded step";
  TrainingSpec training;  // its number of iterations
  std::vector<ReplayItemSpec> forward, backward, after_backward;
};

Result<void> decode(const Place& place, ReplayItemSpec& out);
Result<void> decode(const Place& place, ReplaySpec& out);

}  // namespace railyard::scenarios

namespace railyard::sim {
template <>
struct EnumTable<KernelBound> {
  static constexpr std::string_view kind = "bound of a kernel";
  static constexpr std::array entries{EnumEntry{KernelBound::compute, "compute"},
                                      EnumEntry{KernelBound::memory, "memory"}};
};
}  // namespace railyard::sim
