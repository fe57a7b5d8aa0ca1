// A scenario: one typed value for everything a run needs, read from a YAML file. The schema:
//
//   railyard: 1                    schema version; required
//   include: base.yaml             other files to start from (document.h)
//   name, description, seed        seed: of everything that is drawn at random
//   cluster:                       -> topologies::ClusterSpec (decode_cluster.cpp lists the keys)
//   ranks:                         -> topologies::PlacementSpec, and named groups
//   profile: h100-hgx              default: the machine's own; a list: later files override;
//                                  parameters: overrides of its values
//   nccl: auto                     NCCL decides; {choice: auto, version: ...} -> NcclSetup. Or
//         {algorithm: Ring, protocol: Simple, channels: 16}      or a list by size (`up_to`)
//   backend: gloo                  Gloo on TCP in place of NCCL, or gloo-bcube; then without `nccl`
//   env: {NCCL_ALGO: Ring}         NCCL's variables, in NCCL's own syntax
//   collectives | ddp | traffic    what is run, or one of the workloads of workload.h; traffic may
//                                  accompany one of the others
//   faults, host                   what goes wrong, what the script does: faults.h
//   explore:                       axes of a parameter study
//   engine:                        how the simulation itself is done
//
// Quantities carry units, counts and ratios are bare, keys of PyTorch and NCCL keep their spelling
// and units (bucket_cap_mb is MiB). Ranges are checked here, so that an error can name the line;
// what needs the built topology is checked by whoever builds it.
//
//   RAILYARD_ASSIGN(const Scenario scenario, read_scenario("my.yaml", {.sets = {"seed=2"}}));
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/ddp/buckets.h"
#include "models/ddp/comm_hook.h"
#include "models/ddp/step.h"
#include "scenarios/document.h"
#include "scenarios/nccl_setup.h"
#include "scenarios/training_spec.h"
#include "sim/collective.h"
#include "sim/enum_table.h"
#include "sim/parameters.h"
#include "topologies/cluster.h"
#include "topologies/placement.h"

namespace railyard::scenarios {

struct FaultSpec;
struct HostSpec;
class Workload;

inline constexpr int kSchemaVersion = 1;
inline constexpr std::string_view kWorld = "world";  // the group of all ranks

// Ranks that communicate: every group of a regular division, or one list of ranks.
struct NamedGroup {
  std::string name;
  std::optional<topologies::SubGroupSpec> division;
  std::vector<std::uint32_t> ranks;  // world ranks, used without a division
};

// One collective at several sizes, one call after the other.
struct CollectiveRun {
  sim::Collective collective = sim::Collective::all_reduce;
  std::vector<sim::Bytes> sizes;  // nccl-tests' "size" column: for AllGather and ReduceScatter the
                                  // total over the ranks
  models::Dtype dtype = models::Dtype::fp32;
  std::uint32_t root = 0;  // group rank
  std::string group{kWorld};
};

// A message between two ranks, by itself.
struct Flow {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  sim::Bytes size;
  sim::Duration start{};
  friend bool operator==(const Flow&, const Flow&) = default;
};

enum class Pattern {
  all_to_all,   // every rank to every other
  permutation,  // every rank to one other, and from one other
  incast,       // `count` ranks (0 = all others) to rank `to`
  uniform       // `count` flows between random ranks
};

struct TrafficPattern {
  Pattern pattern = Pattern::all_to_all;
  sim::Bytes size;
  double spread = 0;  // sizes are uniform in size * (1 - spread) .. size * (1 + spread)
  std::uint32_t count = 0;
  std::uint32_t to = 0;
  sim::Duration start{};
  std::optional<std::uint64_t> seed;  // default: the scenario's
};

struct Traffic {
  std::vector<Flow> flows;
  std::vector<TrafficPattern> patterns;
  [[nodiscard]] bool empty() const { return flows.empty() && patterns.empty(); }
};

// Whether a job of so many ranks has those that are named.
Result<void> check_traffic(const Flow& flow, std::uint32_t ranks);
Result<void> check_traffic(const TrafficPattern& pattern, std::uint32_t ranks);

// The flows of all patterns after the listed ones. Equal arguments, equal flows.
Result<std::vector<Flow>> expand_traffic(const Traffic& traffic, std::uint32_t ranks,
                                         std::uint64_t scenario_seed);

struct JoinInputs {
  std::uint32_t rank = 0;
  std::int64_t iterations = 1;
};

struct DdpSpec : TrainingSpec {
  models::BucketOptions buckets;  // of DistributedDataParallel's own arguments
  bool broadcast_buffers = true;
  std::int64_t gradient_accumulation = 1;  // micro-batches per step, all but the last in no_sync()
  models::HookOptions hook;                // comm_hook and its state; the optimizer in backward
  bool convert_sync_batchnorm = false;
  std::vector<JoinInputs> join;  // join(): of ranks that have inputs for fewer iterations
  std::optional<models::DdpMeasured> measured;  // host times of a trace (railyard trace import)
};

enum class Objective { step_time, time, busbw, exposed_communication };

struct Axis {
  std::string path;  // dotted: "ddp.bucket_cap_mb"
  Mark mark;
  std::vector<Node> values;
};

struct Exploration {
  std::vector<Axis> axes;
  Objective objective = Objective::time;
};

enum class TraceDetail { none, collectives, messages, automatic };

struct EngineOptions {
  bool credits = true;  // NCCL's FIFO credits limit how far a sender runs ahead
  bool replay = true;   // an undisturbed collective is simulated once and replayed
  TraceDetail trace = TraceDetail::automatic;  // messages up to a million, then collectives
};

struct Scenario {
  std::string name;
  std::string description;
  std::uint64_t seed = 1;
  topologies::ClusterSpec cluster;
  topologies::PlacementSpec ranks;
  std::vector<NamedGroup> groups;
  std::string profile;  // as written, or the machine's own; several with " + " between them
  sim::Parameters parameters;
  std::vector<NcclChoice> nccl;  // ascending `up_to`, the last without limit; empty where NCCL
                                 // chooses or only traffic is run
  NcclSetup nccl_setup;
  Backend backend = Backend::nccl;
  std::vector<CollectiveRun> collectives;
  std::optional<DdpSpec> ddp;
  std::shared_ptr<const Workload> workload;  // one of workload.h, in place of the two above
  Traffic traffic;
  std::shared_ptr<const FaultSpec> faults;  // what goes wrong; faults.h
  std::shared_ptr<const HostSpec> host;     // what the script does around the framework
  std::optional<Exploration> explore;
  EngineOptions engine;

  std::vector<SourceFile> inputs;            // every file that was read
  std::shared_ptr<const Document> document;  // with includes and sets applied
  bool read_files = true;                    // see ReadOptions
};

// Whether its result is that of training steps.
bool trains(const Scenario& scenario);

struct ReadOptions {
  std::vector<std::string> sets;  // "path=value", applied in order
  // False: nothing is read beside the scenario itself; `include:` is an error and the parameters
  // are the program's defaults under the scenario's own. For untrusted texts.
  bool read_files = true;
};

Result<Scenario> read_scenario(const std::string& path, const ReadOptions& options = {});
Result<Scenario> scenario_from_text(std::string_view text, const std::string& name,
                                    const ReadOptions& options = {});

// The scenario as one self-contained YAML text: includes and sets applied, the profile named.
std::string resolved_yaml(const Scenario& scenario);

}  // namespace railyard::scenarios

namespace railyard::sim {
template <>
struct EnumTable<scenarios::Pattern> {
  static constexpr std::string_view kind = "traffic pattern";
  static constexpr std::array entries{EnumEntry{scenarios::Pattern::all_to_all, "all-to-all"},
                                      EnumEntry{scenarios::Pattern::permutation, "permutation"},
                                      EnumEntry{scenarios::Pattern::incast, "incast"},
                                      EnumEntry{scenarios::Pattern::uniform, "uniform"}};
};
template <>
struct EnumTable<scenarios::Objective> {
  static constexpr std::string_view kind = "objective";
  static constexpr std::array entries{
      EnumEntry{scenarios::Objective::step_time, "step_time"},
      EnumEntry{scenarios::Objective::time, "time"},
      EnumEntry{scenarios::Objective::busbw, "busbw"},
      EnumEntry{scenarios::Objective::exposed_communication, "exposed_communication"}};
};
template <>
struct EnumTable<scenarios::TraceDetail> {
  static constexpr std::string_view kind = "trace detail";
  static constexpr std::array entries{EnumEntry{scenarios::TraceDetail::none, "none"},
                                      EnumEntry{scenarios::TraceDetail::collectives, "collectives"},
                                      EnumEntry{scenarios::TraceDetail::messages, "messages"},
                                      EnumEntry{scenarios::TraceDetail::automatic, "auto"}};
};
}  // namespace railyard::sim
