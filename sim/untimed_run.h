// UntimedRun: executes an expansion without a clock, honouring lane order, batches, data and FIFO
// depth, in some order that respects them all. If a lane cannot go on, no order would let it: every
// operation only waits for others and none is ever withdrawn.
//
//   UntimedRun run(expansion);
//   const bool ended = run.run([&](LaneId lane, std::uint32_t op) { ... });
//   if (!ended) return Error{ErrorCode::would_hang, run.wait_chain()};
//
// O(slice operations + messages).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/expand.h"

namespace railyard::sim {

class UntimedRun {
 public:
  explicit UntimedRun(const Expansion& expansion);

  // Calls visit(lane, index of the operation in the lane) for every operation that can run; true if
  // all lanes ended. Call once.
  template <typename Visit>
  bool run(Visit&& visit) {
    for (LaneId lane = next_lane(); lane.valid(); lane = next_lane())
      while (runnable(lane)) {
        visit(lane, position_[lane.index()]);
        finish_op(lane);
      }
    return unfinished_ == 0;
  }

  // After run() was false: who waits for whom, from the first waiting lane to a lane that ended or
  // to the one that closes the circle.
  [[nodiscard]] std::string wait_chain() const;

  // Slices that were sent (or begun) and never received, and signals that nobody waited for, over
  // all connections; the first such connection.
  struct Leftover {
    std::int64_t slices = 0;
    ConnectionId connection;
  };
  [[nodiscard]] Leftover leftover() const;

 private:
  LaneId next_lane();
  [[nodiscard]] bool runnable(LaneId lane) const;
  void finish_op(LaneId lane);
  void tell(LaneId lane);
  void wake(LaneId lane);
  [[nodiscard]] bool ended(LaneId lane) const {
    return position_[lane.index()] == expansion_.lanes[lane.index()].ops.size();
  }
  // What the lane's next operation waits for: the end of a lane of an earlier batch, a slice, a
  // slot or a signal; `lane` is who must act, invalid if none.
  struct Blocker {
    LaneId lane{};
    ConnectionId connection{};  // invalid: a batch
    bool for_data = false;
  };
  [[nodiscard]] Blocker blocked_recv(const SliceOp& op) const;
  [[nodiscard]] Blocker blocked_send(const SliceOp& op) const;
  [[nodiscard]] Blocker blocker(LaneId lane) const;
  [[nodiscard]] std::string describe_wait(LaneId lane, const Blocker& blocker) const;

  const Expansion& expansion_;
  std::vector<std::vector<LaneId>> before_, after_;  // by lane: of the next batch below and above
  std::vector<std::uint32_t> position_;              // by lane
  std::vector<std::uint32_t> sent_, received_;       // by connection; sent: told of
  std::vector<std::uint32_t> issued_;                // by connection: sent, or held (Op::holds)
  std::vector<std::uint32_t> begun_;                 // by connection: sent, or left open
  std::vector<std::vector<ConnectionId>> held_;      // by lane: issued, not sent
  std::vector<LaneId> ready_;                        // stack of lanes that may be able to run
  std::vector<bool> in_ready_;                       // by lane
  std::size_t unfinished_ = 0;
};

}  // namespace railyard::sim
