// InPlaceWatch: would the schedule still be right if input and output were one buffer? It is unsafe
// if a write of the output changes a byte of the input whose read does not happen before it.
// "Happens before" is by lane order, batches and messages alone, never by the order of one run nor
// by FIFO depth, so that lanes that merely race are found. Vector clocks, one entry per lane of a
// connected component.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sim/expand.h"
#include "sim/interval_map.h"

namespace railyard::sim {

class InPlaceWatch {
 public:
  explicit InPlaceWatch(const Expansion& expansion);

  // In an order that an UntimedRun gives: begin() for an operation, then its messages in, reads,
  // writes, messages out. Offsets are in the common buffer.
  // `aligned`: it reads and writes every byte at the same place of the common buffer, if it does
  // both.
  void begin(LaneId lane, std::uint32_t op, bool aligned);
  void receive(ConnectionId connection);
  void read(std::int64_t begin, std::int64_t end);
  void destroy(std::int64_t begin, std::int64_t end);  // a write that changes the bytes
  void send(ConnectionId connection);

  // The first danger found; empty if none.
  [[nodiscard]] const std::string& violation() const { return violation_; }

 private:
  using Clock = std::vector<std::uint32_t>;  // operations done, by position in the component
  struct Access {
    LaneId lane;
    std::uint32_t op = 0;
  };
  [[nodiscard]] bool happened_before_now(Access access) const;
  void learn(const Clock& clock);
  void report(std::int64_t begin, std::int64_t end, Access reader, Access writer);

  const Expansion& expansion_;
  std::vector<std::vector<LaneId>> before_;                    // by lane: earlier batch
  std::vector<std::uint32_t> component_, index_in_component_;  // by lane
  std::vector<Clock> clocks_;                                  // by lane
  std::vector<std::deque<Clock>> in_flight_;                   // by connection
  std::vector<IntervalMap<std::vector<Access>>> readers_;  // by rank; the last read of each lane
  std::vector<IntervalMap<Access>> destroyed_;             // by rank
  Access now_;
  bool aligned_ = true;
  std::string violation_;
};

}  // namespace railyard::sim
