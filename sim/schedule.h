// Schedule: who sends, reduces and copies which slice on which channel. Data, not code: an
// algorithm builds it once, any number of runs execute it.
//
// A *lane* is (rank, channel, role): a program, a position and its connections; in NCCL's terms the
// warps of one CTA that run one primitives object. A *program* is shared by all lanes that run it.
// It is a list of operations, executed once per *loop*; every operation moves one *chunk* (one
// block of its lane's work), slice by slice. Memory is O(lanes + connections), never O(steps x
// ranks).
//
// A *connection* is a FIFO of `fifo_slices` slices between two lanes. An operation that receives
// and sends waits for the incoming slice AND for a free slot on every outgoing connection, then
// moves it.
//
// Units: bytes. Source of the structure: NCCL src/device/primitives.h and prims_*.h semantics.
// Invariants (validate() checks them): ids in range; a connection's sender and receiver move the
// same number of slices of the same sizes in the same order; the schedule ends (no circular wait).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collective.h"
#include "sim/ids.h"
#include "sim/primitive.h"
#include "sim/units.h"

namespace railyard::sim {

inline constexpr std::uint32_t kAllSlots = 0xffffffff;
// Whether a mask names the k-th slot; kAllSlots names those beyond the 32nd too.
constexpr bool names_slot(std::uint32_t mask, std::uint32_t k) {
  return mask == kAllSlots || (k < 32 && (mask >> k & 1U) != 0);
}

// `repeat` consecutive operations; iteration j works on block
// (block_base + position * block_per_position + j * block_step) mod blocks  of the lane's work.
struct Op {
  Primitive primitive = Primitive::send;
  std::uint32_t repeat = 1;
  std::int32_t block_base = 0;
  std::int32_t block_per_position = 0;
  std::int32_t block_step = 0;
  std::uint32_t recv_slots = kAllSlots;  // bit k: the lane's k-th incoming connection
  std::uint32_t send_slots = kAllSlots;  // bit k: the lane's k-th outgoing connection
  Buffer source = Buffer::input;
  Buffer target = Buffer::output;
  std::int32_t target_shift = 0;  // blocks from the source's place to the target's
  MessagePart recv_part{};
  MessagePart send_part{};
  // Lanes of one rank wait for each other by signals (Connection::signal): before its first slice
  // an operation waits for one on each of these slots, and after its last it gives one on those.
  std::uint32_t wait_slots = 0;    // of the incoming connections
  std::uint32_t signal_slots = 0;  // of the outgoing connections
  // Receivers are told of what it sends (its proxy, where that takes it on) when the lane's next
  // operation that does not hold has ended: a CTA that copies to several peers and then posts to
  // all.
  bool holds = false;
};
using Program = std::vector<Op>;  // run once per loop

// Where the blocks of a channel's part lie in the buffers.
enum class Layout : std::uint8_t {
  // AllReduce ring: each loop covers blocks * chunk consecutive bytes, one chunk a block; in the
  // last loop the chunk shrinks to ceil(rest / blocks) rounded up to `align`, so late blocks may be
  // empty. With outer_blocks > 1 these are the blocks of one block (outer_block) of such a loop of
  // outer_blocks * blocks * chunk bytes.
  rotating,
  // AllGather, ReduceScatter: block b is the part of rank block_rank(b), at that rank * stride;
  // each loop moves one chunk of every block. The buffer with one block only (AllGather's input,
  // ReduceScatter's output) is addressed with b = 0: see `single_block_*`.
  per_rank,
  // Broadcast, Reduce, Tree, point-to-point: one block, one chunk per loop.
  linear
};

inline constexpr std::uint32_t kIdentityOrder = 0xffffffff;

// The part of a message that one channel (or one point-to-point work) carries.
struct Work {
  Layout layout = Layout::linear;
  Bytes offset{};  // of the part in the buffer (per_rank: within a rank's block)
  Bytes size{};    // of the part (per_rank: of one rank's part)
  Bytes chunk{};   // largest bytes of one operation; > 0
  Bytes stride{};  // per_rank: bytes of one rank's block
  std::uint32_t blocks = 1;
  std::uint32_t outer_blocks = 1;  // rotating
  std::uint32_t outer_block = 0;
  std::int64_t align = 16;  // rotating: the last loop's chunk is a multiple of this
  std::uint32_t slices_per_chunk = 1;
  Bytes min_slice{};  // an operation is cut into slices of at least this (Simple: max slice / 32)
  std::int64_t slice_align = 1;     // slices are multiples of this many bytes (Simple: 16 elements)
  bool single_block_input = false;  // the input buffer holds this rank's block alone, at 0
  bool single_block_output = false;  // likewise the output buffer
  Bytes
      input_shift{};  // added to input offsets (point-to-point: where the data for this peer lies)
  Bytes output_shift{};  // added to output offsets
  // per_rank: which of Schedule::block_orders turns a block (a place in the ring) into a rank.
  std::uint32_t block_order = kIdentityOrder;
};

struct Region {
  Bytes offset{};
  Bytes size{};
};

// Loops a lane makes over its program; 0 for an empty part (NCCL launches no work for it).
std::uint32_t loop_count(const Work& work);
// Bytes that all blocks of a rotating work have in loop `loop`.
Bytes loop_bytes(const Work& work, std::uint32_t loop);
// The region of block `block` in loop `loop`, as offset in a full-sized buffer; size may be 0.
// Sizes do not depend on the block order; who needs the address of a per_rank block passes
// block_rank().
Region block_region(const Work& work, std::uint32_t loop, std::uint32_t block);
// Slice `slice` (0..slices_per_chunk-1) of a region; trailing slices may be empty. Empty slices are
// still sent, received and credited, as in NCCL.
Region slice_region(const Work& work, Region region, std::uint32_t slice);

// What a lane is within its CTA. Lanes of one CTA share its copy rate by `copy_share`.
enum class LaneRole : std::uint8_t {
  ring,
  tree_up,
  tree_down,
  tree_root,
  p2p_send,
  p2p_recv,
  local,
  pat,
  nvls_scatter,
  nvls_reduce,
  nvls_broadcast,  // NVLSTree: what comes down the tree, into the node
  nvls_gather,
  collnet_scatter,
  collnet_up,
  collnet_switch,  // the fabric switch; its rank's GPU does nothing for it
  collnet_down,
  collnet_gather,
  hierarchical_reduce,    // ReduceScatter inside the node
  hierarchical_exchange,  // AllReduce across nodes
  hierarchical_gather,    // AllGather inside the node
  gloo_reduce,            // the processor adds what arrives to its own data
  gloo_move,              // data arrive where they belong and go on as they are
  custom
};
template <>
struct EnumTable<LaneRole> {
  static constexpr std::string_view kind = "lane role";
  static constexpr std::array entries{
      EnumEntry{LaneRole::ring, "ring"},
      EnumEntry{LaneRole::tree_up, "treeUp"},
      EnumEntry{LaneRole::tree_down, "treeDown"},
      EnumEntry{LaneRole::tree_root, "treeRoot"},
      EnumEntry{LaneRole::p2p_send, "p2pSend"},
      EnumEntry{LaneRole::p2p_recv, "p2pRecv"},
      EnumEntry{LaneRole::local, "local"},
      EnumEntry{LaneRole::pat, "pat"},
      EnumEntry{LaneRole::nvls_scatter, "nvlsScatter"},
      EnumEntry{LaneRole::nvls_reduce, "nvlsReduce"},
      EnumEntry{LaneRole::nvls_broadcast, "nvlsBroadcast"},
      EnumEntry{LaneRole::nvls_gather, "nvlsGather"},
      EnumEntry{LaneRole::collnet_scatter, "collnetScatter"},
      EnumEntry{LaneRole::collnet_up, "collnetUp"},
      EnumEntry{LaneRole::collnet_switch, "collnetSwitch"},
      EnumEntry{LaneRole::collnet_down, "collnetDown"},
      EnumEntry{LaneRole::collnet_gather, "collnetGather"},
      EnumEntry{LaneRole::hierarchical_reduce, "hierarchicalReduce"},
      EnumEntry{LaneRole::hierarchical_exchange, "hierarchicalExchange"},
      EnumEntry{LaneRole::hierarchical_gather, "hierarchicalGather"},
      EnumEntry{LaneRole::gloo_reduce, "glooReduce"},
      EnumEntry{LaneRole::gloo_move, "glooMove"},
      EnumEntry{LaneRole::custom, "custom"}};
};

struct Lane {
  std::uint32_t rank = 0;  // group rank
  std::uint16_t channel = 0;
  LaneRole role = LaneRole::ring;
  std::uint8_t copy_percent = 100;  // share of the CTA's copy rate
  ProgramId program{};
  std::uint32_t work = 0;      // index into Schedule::works
  std::uint32_t position = 0;  // e.g. distance from the ring's origin; enters block expressions
  std::uint32_t first_recv = 0, recv_count = 0;  // range in Schedule::slots
  std::uint32_t first_send = 0, send_count = 0;  // range in Schedule::slots
  std::uint32_t multiplicity = 1;                // equal lanes that this one stands for
  // Lanes of one (rank, channel) start when all its lanes of lower batches have ended
  // (point-to-point works run eight at a time on a channel).
  std::uint16_t batch = 0;
  // The switch in which the lane's operations take place. An NVSwitch: the GPU reads the sum of
  // what the senders hold (multimem.ld_reduce) and stores to all receivers (multimem.st). A fabric
  // switch: it sums what the senders' NICs bring and sends the sum to the receivers' (SHARP).
  DeviceId in_switch{};
};

struct Connection {
  LaneId from{};
  LaneId to{};
  DeviceId nic_out{};  // both invalid when the edge stays in the NVLink domain or host
  DeviceId nic_in{};
  // PXN: the GPU of the sender's node that data passes on its way to nic_out; invalid = none.
  DeviceId relay{};
  HostStops host{};
  bool signal = false;  // carries nothing, takes no time and is never full: see Op::wait_slots
};

struct Schedule {
  CollectiveCall call;
  std::uint32_t ranks = 0;
  std::uint32_t channels = 0;     // channels that carry something
  std::uint32_t fifo_slices = 8;  // credits of every connection, in slices
  Bytes scratch{};                // of every rank, beside the user's buffers
  std::vector<Program> programs;
  std::vector<Work> works;
  std::vector<Lane> lanes;
  std::vector<ConnectionId> slots;
  std::vector<Connection> connections;
  std::vector<std::vector<std::uint32_t>> block_orders;  // permutations of the ranks: see Work
};

// The rank whose part block `block` of a per_rank work is.
std::uint32_t block_rank(const Schedule& schedule, const Work& work, std::uint32_t block);

// Structural checks; the data-flow checker (sim/dataflow.h) proves the result.
Result<void> validate(const Schedule& schedule);

// Messages (slices sent over connections, empty ones included) and their payload, gaps between the
// parts of a message included. O(lanes x ops).
struct ScheduleTotals {
  std::int64_t messages = 0;
  Bytes payload{};
};
ScheduleTotals totals(const Schedule& schedule);

}  // namespace railyard::sim
