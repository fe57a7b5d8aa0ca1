#include "sim/untimed_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard::sim {
namespace {

// How often refs[i]'s connection occurs among refs[0..i].
std::uint32_t occurrences(const std::vector<MessageRef>& refs, std::size_t i) {
  std::uint32_t count = 0;
  for (std::size_t j = 0; j <= i; ++j)
    if (refs[j].connection == refs[i].connection) ++count;
  return count;
}

}  // namespace

UntimedRun::UntimedRun(const Expansion& expansion)
    : expansion_(expansion),
      before_(lanes_before(expansion)),
      after_(expansion.lanes.size()),
      position_(expansion.lanes.size(), 0),
      sent_(expansion.connections.size(), 0),
      received_(expansion.connections.size(), 0),
      issued_(expansion.connections.size(), 0),
      begun_(expansion.connections.size(), 0),
      held_(expansion.lanes.size()),
      in_ready_(expansion.lanes.size(), false) {
  for (std::size_t lane = expansion.lanes.size(); lane-- > 0;) {
    if (!expansion.lanes[lane].ops.empty()) ++unfinished_;
    wake(LaneId(lane));
    for (const LaneId earlier : before_[lane]) after_[earlier.index()].push_back(LaneId(lane));
  }
}

LaneId UntimedRun::next_lane() {
  if (ready_.empty()) return {};
  const LaneId lane = ready_.back();
  ready_.pop_back();
  in_ready_[lane.index()] = false;
  return lane;
}

void UntimedRun::wake(LaneId lane) {
  if (in_ready_[lane.index()]) return;
  in_ready_[lane.index()] = true;
  ready_.push_back(lane);
}

UntimedRun::Blocker UntimedRun::blocked_recv(const SliceOp& op) const {
  for (const ConnectionId id : op.wait)
    if (sent_[id.index()] <= received_[id.index()])
      return {expansion_.connections[id.index()].from, id, true};
  for (std::size_t i = 0; i < op.recv.size(); ++i) {
    const std::size_t c = op.recv[i].connection.index();
    if (sent_[c] < received_[c] + op.recv[i].part.ahead + occurrences(op.recv, i))
      return {expansion_.connections[c].from, op.recv[i].connection, true};
  }
  return {};
}

UntimedRun::Blocker UntimedRun::blocked_send(const SliceOp& op) const {
  for (std::size_t i = 0; i < op.send.size(); ++i) {
    const std::size_t c = op.send[i].connection.index();
    const std::uint32_t slots = issued_[c] + op.send[i].part.ahead + occurrences(op.send, i);
    if (slots > begun_[c] && slots > received_[c] + expansion_.fifo_slices)
      return {expansion_.connections[c].to, op.send[i].connection, false};
  }
  return {};
}

UntimedRun::Blocker UntimedRun::blocker(LaneId lane) const {
  if (position_[lane.index()] == 0)
    for (const LaneId earlier : before_[lane.index()])
      if (!ended(earlier)) return {earlier};
  const SliceOp& op = expansion_.lanes[lane.index()].ops[position_[lane.index()]];
  const Blocker recv = blocked_recv(op);
  return recv.lane.valid() ? recv : blocked_send(op);
}

bool UntimedRun::runnable(LaneId lane) const { return !ended(lane) && !blocker(lane).lane.valid(); }

void UntimedRun::finish_op(LaneId lane) {
  const std::vector<SliceOp>& ops = expansion_.lanes[lane.index()].ops;
  const SliceOp& op = ops[position_[lane.index()]++];
  for (const ConnectionId id : op.wait) ++received_[id.index()];
  for (const MessageRef& ref : op.recv) {
    if (ref.part.more) continue;
    ++received_[ref.connection.index()];
    wake(expansion_.connections[ref.connection.index()].from);
  }
  for (const MessageRef& ref : op.send) {
    const std::size_t c = ref.connection.index();
    begun_[c] = std::max(begun_[c], issued_[c] + ref.part.ahead + 1);
    if (ref.part.more) continue;
    ++issued_[c];
    held_[lane.index()].push_back(ref.connection);
  }
  if (!op.holds) tell(lane);
  for (const ConnectionId id : op.signal) {
    begun_[id.index()] = issued_[id.index()] = ++sent_[id.index()];
    wake(expansion_.connections[id.index()].to);
  }
  if (!ended(lane)) return;
  --unfinished_;
  for (const LaneId later : after_[lane.index()]) wake(later);
}

void UntimedRun::tell(LaneId lane) {
  for (const ConnectionId id : held_[lane.index()]) {
    ++sent_[id.index()];
    wake(expansion_.connections[id.index()].to);
  }
  held_[lane.index()].clear();
}

std::string UntimedRun::describe_wait(LaneId lane, const Blocker& blocker) const {
  if (!blocker.connection.valid())
    return fmt::format(" waits for the earlier batch of lane {}", blocker.lane.value());
  const std::uint32_t position = position_[lane.index()];
  const SliceOp& op = expansion_.lanes[lane.index()].ops[position];
  const std::size_t c = blocker.connection.index();
  std::string what = blocker.for_data ? fmt::format("slice {} from", received_[c])
                                      : fmt::format("a slot for slice {} at", issued_[c]);
  if (expansion_.connections[c].signal) what = fmt::format("signal {} from", received_[c]);
  return fmt::format(
      " at operation {} (loop {} op {}.{} slice {} {}) waits for {} lane {} on "
      "connection {}",
      position, op.loop, op.op, op.iteration, op.slice, to_text(op.primitive), what,
      blocker.lane.value(), c);
}

std::string UntimedRun::wait_chain() const {
  std::vector<bool> named(expansion_.lanes.size(), false);
  LaneId lane(0);
  while (ended(lane)) lane = LaneId(lane.value() + 1);
  std::string chain;
  while (true) {
    const ExpandedLane& at = expansion_.lanes[lane.index()];
    if (!chain.empty()) chain += "; ";
    chain += fmt::format("lane {} (rank {}, channel {}, {})", lane.value(), at.rank, at.channel,
                         to_text(at.role));
    if (ended(lane)) return chain + " has ended";
    if (named[lane.index()]) return chain + " closes the circle";
    named[lane.index()] = true;
    const Blocker what = blocker(lane);
    chain += describe_wait(lane, what);
    lane = what.lane;
  }
}

UntimedRun::Leftover UntimedRun::leftover() const {
  Leftover leftover;
  for (std::size_t c = 0; c < sent_.size(); ++c) {
    if (begun_[c] == received_[c]) continue;
    if (!leftover.connection.valid()) leftover.connection = ConnectionId(c);
    leftover.slices += begun_[c] - received_[c];
  }
  return leftover;
}

}  // namespace railyard::sim
