// What a training program is written against: a rank with a host thread, a GPU with streams, and
// communicators with one stream each, as PyTorch's process groups have them.
//
// A program is built once for all ranks. It names its collectives by CallId in a CallTable, which
// whoever runs it turns into plans; the ranks differ in their host, GPU and memberships only.
//
//   const CallId gather = calls.add({.group = 0, .collective = Collective::all_gather, ...});
//   ...
//   Task step(WorkloadRank& rank) {
//     co_await rank.host->launch(rank.compute, kernel);
//     GpuEventId done;
//     co_await rank.issue({gather, name}, rank.record(rank.compute), done);  // host time, then the
//     rank.wait(rank.compute, done);                                         // group's stream
//   }
//
// One communicator runs its calls in the order in which they were issued, whatever they wait for:
// ProcessGroupNCCL keeps one stream per group, and NCCL serialises per communicator.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "sim/collective_runner.h"
#include "sim/gpu.h"
#include "sim/host.h"
#include "sim/result.h"

namespace railyard::models {

using CallId = sim::Id<struct CallTag>;

// A collective on one of the program's groups; sizes as in sim::CollectiveCall.
struct GroupCall {
  std::uint32_t group = 0;
  sim::Collective collective = sim::Collective::all_reduce;
  sim::Bytes size{};
  std::int64_t element_size = 4;
  std::uint32_t root = 0;
  friend bool operator==(const GroupCall&, const GroupCall&) = default;
};

// Every distinct call of a program, once.
class CallTable {
 public:
  // `times`: how often an iteration makes it.
  CallId add(const GroupCall& call, std::int64_t times = 1);
  [[nodiscard]] const std::vector<GroupCall>& calls() const { return calls_; }
  // About how often an iteration makes the call.
  [[nodiscard]] std::int64_t uses(CallId call) const { return uses_[call.index()]; }
  [[nodiscard]] const GroupCall& operator[](CallId call) const { return calls_[call.index()]; }

 private:
  using Key = std::tuple<std::uint32_t, sim::Collective, sim::Bytes, std::int64_t, std::uint32_t>;
  std::vector<GroupCall> calls_;
  std::vector<std::int64_t> uses_;
  std::map<Key, CallId> known_;
};

// A communicator as one of its ranks sees it.
struct Membership {
  sim::CollectiveRunner* runner = nullptr;
  std::uint32_t group_rank = 0;
  const std::vector<sim::PlanId>* plans = nullptr;  // by CallId; invalid for other groups' calls
  sim::StreamId stream;                             // of its collectives
  std::uint32_t launched = 0;                       // the number of its next call
};

// What a program asks for, and what the trace calls it.
struct NamedCall {
  CallId call;
  std::uint32_t name = 0;
};

// A collective that a rank issued.
struct IssuedCall {
  NamedCall what;
  std::uint32_t number = 0;  // of the runner's call
  std::uint32_t iteration = 0;
};

struct WorkloadRank {
  std::uint32_t index = 0;  // of the world
  sim::HostThread* host = nullptr;
  sim::StreamId compute;
  std::vector<Membership> groups;  // by the program's groups
  const CallTable* calls = nullptr;

  // On the compute stream, by iteration.
  struct Marks {
    sim::GpuEventId forward_end, backward_end, end;
  };
  std::vector<Marks> marks;
  std::vector<IssuedCall> issued;  // kept where `keep_issued` is set
  bool keep_issued = false;
  // Plans a call that is not in the table yet, for programs that decide sizes while they run. Empty
  // unless the program asked for it.
  std::function<sim::Result<CallId>(const GroupCall&)> add_call;

  // An event of what a stream has been given so far.
  sim::GpuEventId record(sim::StreamId stream) const { return host->gpu().record(stream); }
  // The stream goes on when the event has fired; an invalid event is nothing to wait for.
  void wait(sim::StreamId stream, sim::GpuEventId event) const {
    if (event.valid()) host->gpu().wait(stream, event);
  }
  // The stream goes on when the other one is done with what it has been given.
  void wait_stream(sim::StreamId stream, sim::StreamId other) const {
    if (stream != other) wait(stream, record(other));
  }
  // The host launches them one after the other.
  sim::Task launch_all(sim::StreamId stream, const std::vector<sim::Kernel>& kernels);
  // A blocking call: behind what the stream has been given, and the stream waits for it.
  sim::Task call_on(sim::StreamId stream, NamedCall what);
  // The host launches the call; its group's stream runs it behind `after`, and `done` is its end.
  sim::Task issue(NamedCall what, sim::GpuEventId after, sim::GpuEventId& done);
  // The same without host time: for the calls of a group launch but its first, and for a thread
  // that launches on several GPUs. Returns the call's end.
  sim::GpuEventId enqueue(NamedCall what, sim::GpuEventId after);
  // The next iteration begins: its marks, all yet to be recorded.
  Marks& begin_iteration() { return marks.emplace_back(); }
  [[nodiscard]] const Membership& member(CallId call) const { return groups[(*calls)[call].group]; }
};

}  // namespace railyard::models
