// What goes wrong in a run: slow GPUs, hosts that come late, links that degrade, fail or flap, and
// other people's traffic. Part of a scenario (`faults:`), the same for every workload.
//
//   faults:
//     seed: 1                                      default: the scenario's
//     slow_gpus:
//       - {ranks: [13], factor: 1.2}               kernels take 1.2 times as long
//       - {ranks: [3], steps: [{at: 0s, factor: 1}, {at: 200ms, factor: 1.4}]}     thermal
//     jitter:                                      host time lost before every iteration
//       - {ranks: all, distribution: exponential, mean: 200us}
//       - {ranks: [5], distribution: lognormal, median: 1ms, sigma: 0.5}
//     links:                                       patterns as in cluster.slow
//       - {link: "node0/nic3", at: 10ms, for: 5ms, speed: 0.1}
//       - {link: "node1/nic0->*", at: 0s, for: 2ms, every: 50ms, speed: 0}         flapping
//     retry_timeout: 4.3s                          of a retransmission round; default 0
//     give_up: 30s                                 of a dead link, then the job hangs
//     neighbours:                                  flows that start again and again
//       - {from: 8, to: 16, size: 256MiB, pause: 1ms}         ranks of the job, or any GPUs
//       - {from: node4/gpu0, to: node5/gpu0, size: 256MiB}
//
// speed 0 is a link that is down: what is under way waits for it. RDMA senders notice a lost packet
// when their timer runs out and try again then, so traffic flows again at the first multiple of
// `retry_timeout` after the link went down at which it is up; with 0, as soon as it is up. NCCL's
// timer is 4.096 us x 2^NCCL_IB_TIMEOUT (20: 4.3 s; many NICs retry earlier on their own) and it
// gives up after NCCL_IB_RETRY_CNT (7) rounds: give_up is 7 retry_timeouts by default, or 30 s.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/decode.h"
#include "scenarios/run_parts.h"
#include "sim/gpu.h"
#include "sim/host.h"

namespace railyard::scenarios {

struct RankSet {
  bool all = false;
  std::vector<std::uint32_t> ranks;
  [[nodiscard]] bool contains(std::uint32_t rank) const;
};

struct SlowGpu {
  struct Step {
    sim::Duration at{};
    double factor = 1;
  };
  RankSet ranks;
  std::vector<Step> steps;  // by time
};

enum class Distribution { constant, exponential, normal, lognormal };

struct Jitter {
  RankSet ranks;
  Distribution distribution = Distribution::exponential;
  sim::Duration scale{};  // mean; lognormal: median
  double sigma = 0;       // lognormal: of the logarithm; normal: in units of the mean
};

struct LinkFault {
  std::string pattern;
  Mark mark;
  sim::Duration at{};
  std::optional<sim::Duration> lasts;  // none: for good
  std::optional<sim::Duration> every;
  double speed = 0;
};

// A GPU by its rank in the job, or by its device's name.
struct GpuName {
  std::uint32_t rank = 0;
  std::string device;  // empty: the rank
  friend bool operator==(const GpuName&, const GpuName&) = default;
};

struct Neighbour {
  GpuName from;
  GpuName to;
  sim::Bytes size{};
  sim::Duration start{};
  sim::Duration pause{};  // between the end of a transfer and the next
};

// How long traffic is without a link that is slow or down for `lasts`, which must be given.
sim::Duration outage(const LinkFault& fault, sim::Duration retry_timeout);

struct FaultSpec {
  std::optional<std::uint64_t> seed;
  std::vector<SlowGpu> slow_gpus;
  std::vector<Jitter> jitter;
  std::vector<LinkFault> links;
  sim::Duration retry_timeout{};
  sim::Duration give_up{};
  std::vector<Neighbour> neighbours;
  // Whether anything but the job's own calls changes what its transfers take.
  [[nodiscard]] bool disturb_network() const { return !links.empty() || !neighbours.empty(); }
};
Result<std::shared_ptr<const FaultSpec>> decode_faults(const Place& place);  // decode_faults.cpp

// The faults of one run at work. Made before the job, and told when it has ended.
class Faults {
 public:
  virtual ~Faults() = default;
  virtual void job_ended() = 0;
  // Sentences about links that were given up; empty if none was.
  [[nodiscard]] virtual std::vector<std::string> given_up() const = 0;
};

// Starts the network's faults. Null where the scenario has none. Errors: a pattern without links, a
// neighbour that the job does not have.
Result<std::unique_ptr<Faults>> start_faults(RunContext& context);
// Sets pace and habits of one rank.
void apply_faults(RunContext& context, std::uint32_t rank, sim::Gpu& gpu, sim::HostThread& host);
// The workload has ended: nothing more goes wrong, and the queue may run dry.
void end_faults(RunContext& context);

// What a scenario says of a rank's slowness, for the report; empty if nothing.
std::string fault_of_rank(const Scenario& scenario, std::uint32_t rank);

// Which ranks kept the others waiting: over all collectives, who entered last and by how much
// behind the median rank. Ranks that were last in at least a tenth of the calls and cost a fiftieth
// of the run, latest first. (Less than that is how broadcasts reach one rank after the other.)
std::vector<LateRank> late_ranks(const RunContext& context,
                                 const std::vector<const sim::CollectiveRunner*>& runners);

}  // namespace railyard::scenarios

template <>
struct railyard::sim::EnumTable<railyard::scenarios::Distribution> {
  using Distribution = railyard::scenarios::Distribution;
  static constexpr std::string_view kind = "distribution";
  static constexpr std::array entries{EnumEntry{Distribution::constant, "constant"},
                                      EnumEntry{Distribution::exponential, "exponential"},
                                      EnumEntry{Distribution::normal, "normal"},
                                      EnumEntry{Distribution::lognormal, "lognormal"}};
};
