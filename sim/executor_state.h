// What an Executor keeps of every lane, group of lanes and connection while it runs.
#pragma once

#include <cstdint>

#include "sim/network.h"
#include "sim/schedule.h"

namespace railyard::sim {

enum class LanePhase : std::uint8_t {
  idle,         // not started
  wait_data,    // for a slice on `waits_on` that is not under way yet
  wait_credit,  // for a slot of `waits_on`
  wait_time,    // for a known time
  busy,         // legs under way
  wait_tail,    // legs done, but a cut-through input on `waits_on` has not ended
  done
};

struct LaneState {
  const Op* op = nullptr;
  std::int64_t op_bytes = 0;     // of the current operation (one chunk)
  std::int64_t even_slice = 0;   // every slice but the last of the operation
  std::int64_t slice_bytes = 0;  // of the current slice
  std::int64_t chunk = 0;        // of this loop
  std::int64_t rest = 0;         // rotating layout: bytes of this loop
  std::int64_t slice_end = 0;    // cut-through: latest end of a leg so far
  std::int64_t ready_since = 0;  // end of the previous operation
  std::int64_t least_end = 0;    // the slice's legs end no earlier
  std::uint32_t op_index = 0;
  std::uint32_t iteration = 0;
  std::uint32_t block = 0;
  std::uint32_t loop = 0;
  std::uint32_t loops = 0;
  std::uint32_t waits_on = 0;  // connection
  std::uint16_t slice = 0;
  std::uint16_t pending = 0;  // legs of the slice under way
  LanePhase phase = LanePhase::idle;
  bool cut_through = false;  // some input of the current operation is cut-through
  bool holds = false;        // has sent slices that their receivers are not told of yet
};
// Lanes of one (rank, channel, batch); the next batch starts when all of them have ended.
struct LaneGroup {
  std::uint32_t first = 0;  // range in grouped_lanes_
  std::uint32_t count = 0;
  std::uint32_t left = 0;
  std::uint32_t rank = 0;
  bool more = false;  // the next group is the next batch of the same rank and channel
  bool head = false;  // starts with its rank
};
constexpr std::int64_t kNever = -1;

struct ConnectionState {
  std::uint32_t issued = 0;    // slices whose operation the sender has begun
  std::uint32_t headed = 0;    // slices whose first grain's arrival is known
  std::uint32_t sent = 0;      // slices whose arrival is known
  std::uint32_t consumed = 0;  // slices the receiver has finished with
  std::uint32_t posted = 0;    // staged: slices handed to the sender's proxy,
  std::uint32_t served = 0;    // staged: slices that the sender's proxy has served,
  std::uint32_t wired = 0;     //   and whose flow ended
  FlowId flow;
  bool receiver_waits = false;
  bool sender_waits = false;
  bool wire_busy = false;
  std::int64_t growth = 0;     // bytes by which the sender's operation lengthens its slice
  std::uint32_t begun = 0;     // slices that are issued or open (see MessagePart)
  bool leg_ended = false;      // cut-through: the leg has ended, its input's tail is awaited
  std::int64_t look = kNever;  // staged: when its next message, an eager one, is looked at
  std::int64_t seen = 0;       // staged: when the receiver saw the last one
};

// One slice on its way; together, since whoever needs one of these needs others of the same slice.
struct SliceState {
  std::int64_t arrival = 0;    // all of it is there (first: its leg's end at the sender)
  std::int64_t head = 0;       // its first grain is there; only of cut-through connections
  std::int64_t credit = 0;     // its slot at the receiver is free again
  std::int64_t completed = 0;  // staged: its slot at the sender is free again
  std::int64_t issue = 0;      // start of the sender's operation
  std::int64_t size = 0;       // payload
};

// One of the queue pairs of a connection that has several.
struct QueuePair {
  FlowId flow;
  std::uint32_t connection = 0;
  std::uint32_t number = 0;   // among the connection's
  std::uint32_t carried = 0;  // messages, or parts of messages, whose flow ended
  bool busy = false;
};

}  // namespace railyard::sim
