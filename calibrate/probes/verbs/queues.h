// Connected queue pairs towards one peer, and work on them.
//
// Every call that waits gives up with a ProbeError after a while, so that a peer that has gone
// does not hang the probe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/probes/common/store.h"
#include "calibrate/probes/verbs/adapter.h"

namespace railyard::probe {

enum class Verb { write, read, send };

// Where the peer's memory lies.
struct RemoteMemory {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
};

class Queues {
 public:
  // `depth`: requests in flight on each of `count` pairs. Both ends call this with the same name.
  Queues(const Adapter& adapter, Store& store, const std::string& name, int count, int depth);

  [[nodiscard]] int count() const { return static_cast<int>(queues_.size()); }
  [[nodiscard]] int depth() const { return depth_; }
  [[nodiscard]] int receives() const;  // that a pair takes: twice the depth

  struct Work {
    Verb verb = Verb::write;
    const Region& local;
    RemoteMemory remote;
    std::uint32_t bytes = 0;
  };
  void post(int queue, const Work& work);
  void post_receive(int queue, const Region& local);  // for a message of any size up to its own
  // Waits for one completion; the number of the queue it belongs to.
  int wait_for_one();

 private:
  CompletionPointer completions_;  // must outlive the pairs that report to it
  std::vector<QueuePointer> queues_;
  int depth_;
};

// Tells the peer where `region` is, and learns where the peer's is.
RemoteMemory exchange(Store& store, const std::string& name, const Region& region);

}  // namespace railyard::probe
