// What the training script and its host do around the framework. Part of a scenario (`host:`), for
// every workload that trains; each key is off by default.
//
//   host:
//     synchronize_every: 10          .item() or torch.cuda.synchronize() at the end of every tenth
//     step print: {every: 10, time: 2ms}  the same, and then the output takes its time
//     step_overhead: 300us           of the script, before every step
//     data_loader: {batch_time: 150ms, workers: 4, prefetch: 2}
//     cuda_graphs: {after: 11, launch: 50us}      one launch per step, from the twelfth on
//     memory_growth: {size: 30GiB, allocation: 300us, segment: 20MiB, steps: 2, registration:
//     10GB/s} communicators: {create: every_step, ports: [32768, 60999]} numa: {bound_to: 0,
//     factor: 1.3}            all host threads run on NUMA node 0
//
// cuda_graphs: PyTorch wants 11 eager steps of DistributedDataParallel before it captures one (CUDA
// semantics, "Whole-network capture"); that is the default. Kernels still start one after another.
// memory_growth: during the first `steps` the caching allocator takes `size` in segments (20 MiB,
// its kLargeBuffer) with one cudaMalloc each, on the host's time; memory that is also registered
// with a NIC adds size / registration.
// communicators: costs and ports of models/host/communicator_setup.h; `create: once` delays the
// first step. More ports on a host than its range has (Linux: net.ipv4.ip_local_port_range, 28232)
// end the job, as bind() or connect() do: status 3.
// Where collectives are run without training, `communicators: {create: once}` checks the ports.
// numa: ranks whose GPU hangs off another NUMA node need `factor` times the host time per launch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/host/data_loader.h"
#include "scenarios/decode.h"
#include "scenarios/run_parts.h"
#include "sim/enum_table.h"
#include "sim/host.h"

namespace railyard::scenarios {

enum class Creation { once, every_step };

struct CommunicatorSpec {
  Creation create = Creation::once;
  std::optional<sim::Duration> fixed;  // else by NCCL's version
  std::optional<sim::Duration> per_rank;
  std::int64_t first_port = 32'768;
  std::int64_t last_port = 60'999;
};

struct MemoryGrowthSpec {
  sim::Bytes size{};
  sim::Duration allocation{};  // of one segment
  sim::Bytes segment = sim::bytes(std::int64_t{20} << 20);
  std::int64_t steps = 1;
  sim::Bandwidth registration{};  // zero: none
};

struct CudaGraphsSpec {
  std::int64_t after = 11;
  sim::Duration launch{};
};

struct NumaSpec {
  std::int64_t bound_to = 0;
  double factor = 1;
};

struct HostSpec {
  std::int64_t synchronize_every = 0;
  std::int64_t print_every = 0;
  sim::Duration print_time{};
  sim::Duration step_overhead{};
  models::DataLoaderSpec data_loader;
  std::optional<CudaGraphsSpec> cuda_graphs;
  std::optional<MemoryGrowthSpec> memory_growth;
  std::optional<CommunicatorSpec> communicators;
  std::optional<NumaSpec> numa;
};
Result<std::shared_ptr<const HostSpec>> decode_host(const Place& place);  // decode_host.cpp

// Host time that a memory growth costs in step `step` (from 0).
sim::Duration growth_time(const MemoryGrowthSpec& spec, std::int64_t step);

// What the hosts of one run share. Held by the RunContext from start_host() on.
class HostState {
 public:
  virtual ~HostState() = default;
  // The communicators that the job will make, with all they connect. False: there are not enough
  // ports for them; failures() says so.
  virtual bool open(const std::vector<const sim::CollectiveRunner*>& runners) = 0;
  // `jitter` is lost before every step.
  virtual sim::HostHabits habits(std::uint32_t rank, std::function<sim::Duration()> jitter) = 0;
  // What makes this rank's host slow, for the report; empty if nothing.
  virtual std::string cause(std::uint32_t rank) const = 0;
  // Host time by cause, on the rank that lost most of it; largest first.
  virtual std::vector<HostLoss> losses() const = 0;
  // Why the job ended before its time; empty if it did not.
  virtual const std::vector<std::string>& failures() const = 0;
};

// Errors: keys that do not fit the workload, a NUMA node that the machine does not have.
Result<void> start_host(RunContext& context);

}  // namespace railyard::scenarios

template <>
struct railyard::sim::EnumTable<railyard::scenarios::Creation> {
  using Creation = railyard::scenarios::Creation;
  static constexpr std::string_view kind = "time of creation";
  static constexpr std::array entries{EnumEntry{Creation::once, "once"},
                                      EnumEntry{Creation::every_step, "every_step"}};
};
