// A workload: what a scenario runs besides plain collectives, a DDP step or raw traffic. Each is
// named by one top-level key ("fsdp:"), has one line in the table of workloads.cpp, and keeps its
// specification to itself: the reader decodes it, the binder asks which groups it needs, the runner
// runs it.
//
// A workload is a value: decoded once, never changed, shared by the copies of its scenario.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/decode.h"

namespace railyard::scenarios {

struct Bound;
struct Estimate;
struct RunContext;
struct NamedGroup;
struct Scenario;

class Workload {
 public:
  Workload() = default;
  virtual ~Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  // The top-level key, for places in errors.
  [[nodiscard]] virtual std::string_view key() const = 0;
  // Groups whose communicators it uses: `world` or names of ranks.groups.
  [[nodiscard]] virtual std::vector<std::string> groups() const = 0;
  // Groups of its own in a world of so many ranks, which the scenario does not name; several of one
  // name are communicators of their own. An error names the key that does not fit (Error::where).
  [[nodiscard]] virtual Result<std::vector<NamedGroup>> own_groups(std::uint32_t world) const;
  // Whether it makes collectives at all.
  [[nodiscard]] virtual bool communicates() const { return !groups().empty(); }
  // Whether its result is that of training steps (RunResult::training).
  [[nodiscard]] virtual bool trains() const { return true; }
  // Whether it sends anything beside collectives, so that none of those may be replayed.
  [[nodiscard]] virtual bool sends() const { return false; }
  // Its report needs the spans of so many ranks, from the first on.
  [[nodiscard]] virtual std::uint32_t traced_ranks(std::uint32_t /*world*/) const { return 1; }
  // Adds what the run will cost.
  virtual Result<void> add_estimate(const Scenario& scenario, Bound& bound,
                                    Estimate& estimate) const = 0;
  // Runs it to its end and puts its result into the context's.
  virtual Result<void> run(RunContext& context) const = 0;
};

struct WorkloadKind {
  std::string_view key;
  Result<std::shared_ptr<const Workload>> (*decode)(const Place& place);
};

// All kinds, in the order in which help and errors name them.
std::span<const WorkloadKind> workload_kinds();

}  // namespace railyard::scenarios
