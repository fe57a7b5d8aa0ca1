// HappensBefore: which operations of an untimed run must come before which others. By lane order,
// batches, messages and signals alone, never by the order of one run nor by FIFO depth, so that
// lanes that merely race are told from lanes that wait for each other. Vector clocks, one entry per
// lane of a connected component.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/expand.h"

namespace railyard::sim {

// An operation of a lane, as something that touched memory.
struct Access {
  LaneId lane;
  std::uint32_t op = 0;
  friend bool operator==(const Access&, const Access&) = default;
};

class HappensBefore {
 public:
  explicit HappensBefore(const Expansion& expansion);

  // In an order that an UntimedRun gives: begin() for an operation, then its messages in and out.
  void begin(LaneId lane, std::uint32_t op);
  void receive(ConnectionId connection, MessagePart part = {});
  void send(ConnectionId connection, MessagePart part = {});

  [[nodiscard]] Access now() const { return now_; }
  // Whether an operation that ran must come before the present one, or is it.
  [[nodiscard]] bool ordered(Access earlier) const;

 private:
  using Clock = std::vector<std::uint32_t>;  // operations done, by position in the component
  void learn(const Clock& clock);

  std::vector<std::vector<LaneId>> before_;                    // by lane: earlier batch
  std::vector<std::uint32_t> component_, index_in_component_;  // by lane
  std::vector<Clock> clocks_;                                  // by lane
  std::vector<std::deque<Clock>> in_flight_;                   // by connection
  Access now_;
};

}  // namespace railyard::sim
