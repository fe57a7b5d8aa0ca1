// expand(): a schedule as the flat list of what really happens, one entry per lane and slice, in
// each lane's program order. For small cases: validators, the data-flow checker, the longest path
// and golden tests read it. O(slices x lanes) memory; engines never call it.
//
// An expansion stands alone (it does not refer to its schedule), so a test may change it at will:
// the checkers take the k-th slice that a lane sends on a connection to be the k-th that the other
// end receives, whatever `sequence` says; `part` counts from there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/schedule.h"

namespace railyard::sim {

struct MessageRef {
  ConnectionId connection;
  std::uint32_t sequence = 0;  // slices before it on this connection
  MessagePart part{};
};

// One slice of one operation. Loops, then operations, then their repetitions, then slices.
struct SliceOp {
  Primitive primitive = Primitive::send;
  std::uint32_t loop = 0;
  std::uint32_t op = 0;         // index into the program
  std::uint32_t iteration = 0;  // of Op::repeat
  std::uint32_t block = 0;      // as the program counts them, before Work::block_order
  std::uint32_t slice = 0;
  Buffer source = Buffer::input;
  Buffer target = Buffer::output;
  Bytes source_offset;                     // where it reads `source`, if reads_source(primitive)
  Bytes target_offset;                     // where it writes `target`, if writes_target(primitive)
  Bytes size;                              // may be 0
  std::vector<MessageRef> recv;            // one slice from each
  std::vector<MessageRef> send;            // one slice to each
  std::vector<ConnectionId> wait, signal;  // signals before and after it
  bool holds = false;                      // see Op::holds
};
// Whether it reads a buffer of its rank (the primitive has a source, and that is none but `none`).
inline bool reads(const SliceOp& op) {
  return reads_source(op.primitive) && op.source != Buffer::none;
}

struct ExpandedLane {
  std::uint32_t rank = 0;
  std::uint16_t channel = 0;
  LaneRole role = LaneRole::ring;
  std::uint16_t batch = 0;
  std::vector<SliceOp> ops;
};

struct Expansion {
  std::uint32_t ranks = 0;
  std::uint32_t fifo_slices = 1;
  Bytes scratch{};                      // of every rank
  std::vector<ExpandedLane> lanes;      // by LaneId
  std::vector<Connection> connections;  // by ConnectionId
};

// The block of iteration `iteration` of an operation of `lane`.
std::uint32_t block_of(const Op& op, const Lane& lane, const Work& work, std::uint32_t iteration);

// Offsets of a region in the two buffers. `place` is the block_rank() that the region was made for:
// a buffer with one block only holds it at 0. The shifts are added.
Bytes input_offset(const Work& work, std::uint32_t place, Region region);
Bytes output_offset(const Work& work, std::uint32_t place, Region region);
// In any buffer; the scratch has no shifts.
Bytes buffer_offset(Buffer buffer, const Work& work, std::uint32_t place, Region region);

// The schedule must pass validate_structure() (sim/validate.h). Multiplicity is not unfolded.
Expansion expand(const Schedule& schedule);

// By lane: the lanes that must have ended before it begins, those with operations of the next lower
// batch of its (rank, channel) that has any.
std::vector<std::vector<LaneId>> lanes_before(const Expansion& expansion);

// One line per connection and per slice operation; stable, for golden tests:
//   connection 0: lane 0 -> lane 1
//   lane 0 rank 0 ch 0 ring: loop 0 op 0.0 slice 0 send block 2 in [8,12) to c0#0
std::string to_text(const Expansion& expansion);
std::string to_text(const SliceOp& op);

}  // namespace railyard::sim
