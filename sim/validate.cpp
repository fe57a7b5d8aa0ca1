#include "sim/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "sim/untimed_run.h"

namespace railyard::sim {
namespace {

template <typename... Args>
Error refuse(fmt::format_string<Args...> format, Args&&... args) {
  return bad_input("schedule: " + fmt::format(format, std::forward<Args>(args)...));
}

Result<void> check_header(const Schedule& schedule) {
  if (schedule.ranks == 0) return refuse("it has no ranks");
  if (schedule.fifo_slices == 0) return refuse("fifo_slices is 0; a connection needs a slot");
  if (schedule.call.root >= schedule.ranks)
    return refuse("root {} is not one of {} ranks", schedule.call.root, schedule.ranks);
  if (schedule.call.size.raw() < 0) return refuse("the call's size is negative");
  if (schedule.scratch.raw() < 0) return refuse("the size of the scratch is negative");
  return {};
}

Result<void> check_work(const Work& work, std::size_t index) {
  const auto wrong = [index](const char* what) { return refuse("work {}: {}", index, what); };
  if (work.chunk.raw() <= 0) return wrong("chunk must be positive");
  if (work.size.raw() < 0) return wrong("size is negative");
  if (work.offset.raw() < 0) return wrong("offset is negative");
  if (work.stride.raw() < 0) return wrong("stride is negative");
  if (work.min_slice.raw() < 0) return wrong("min_slice is negative");
  if (work.blocks == 0) return wrong("blocks is 0");
  if (work.outer_block >= work.outer_blocks) return wrong("outer_block is none of outer_blocks");
  if (work.layout != Layout::rotating && work.outer_blocks != 1)
    return wrong("outer_blocks is for the layout rotating only");
  if (work.slices_per_chunk == 0) return wrong("slices_per_chunk is 0");
  if (work.align <= 0) return wrong("align must be positive");
  if (work.slice_align <= 0) return wrong("slice_align must be positive");
  if (work.layout != Layout::per_rank && (work.single_block_input || work.single_block_output))
    return wrong("single_block_* is for the layout per_rank only");
  if (work.layout != Layout::per_rank && work.block_order != kIdentityOrder)
    return wrong("block_order is for the layout per_rank only");
  return {};
}

Result<void> check_block_orders(const Schedule& schedule) {
  for (std::size_t i = 0; i < schedule.block_orders.size(); ++i) {
    std::vector<std::uint32_t> order = schedule.block_orders[i];
    std::ranges::sort(order);
    bool permutation = order.size() == schedule.ranks;
    for (std::uint32_t r = 0; permutation && r < order.size(); ++r) permutation = order[r] == r;
    if (!permutation) return refuse("block order {} is no permutation of the ranks", i);
  }
  for (std::size_t i = 0; i < schedule.works.size(); ++i) {
    const Work& work = schedule.works[i];
    if (work.block_order == kIdentityOrder) continue;
    if (work.block_order >= schedule.block_orders.size())
      return refuse("work {}: block order {} out of range", i, work.block_order);
    if (work.blocks > schedule.ranks)
      return refuse("work {}: more blocks than its block order has ranks", i);
  }
  return {};
}

// How many of `count` slots an operation with this mask uses.
std::uint32_t used_slots(std::uint32_t mask, std::uint32_t count) {
  if (mask == kAllSlots) return count;
  std::uint32_t used = 0;
  for (std::uint32_t k = 0; k < 32; ++k) used += mask >> k & 1;
  return used;
}

bool mask_in_range(std::uint32_t mask, std::uint32_t count) {
  return mask == kAllSlots || count >= 32 || mask >> count == 0;
}

// Of the slots [first, first + count) that `mask` names, whether all lead to connections that are
// signals, or none is.
bool all_of_kind(const Schedule& schedule, std::uint32_t first, std::uint32_t count,
                 std::uint32_t mask, bool signal) {
  for (std::uint32_t k = 0; k < count; ++k) {
    if (!names_slot(mask, k)) continue;
    const ConnectionId id = schedule.slots[first + k];
    if (id.index() < schedule.connections.size() &&
        schedule.connections[id.index()].signal != signal)
      return false;
  }
  return true;
}

// What is wrong with an operation's receiving side; null if nothing.
const char* wrong_recv(const Schedule& schedule, const Op& op, const Lane& lane) {
  if (receives(op.primitive)) {
    const std::uint32_t used = used_slots(op.recv_slots, lane.recv_count);
    if (!mask_in_range(op.recv_slots, lane.recv_count))
      return "recv_slots names a connection that the lane lacks";
    if (used == 0) return "it receives, but from no connection";
    const bool sums = op.primitive != Primitive::recv && op.primitive != Primitive::recv_copy_send;
    if (used > 1 && !sums) return "it receives from several connections without a sum";
    if (!all_of_kind(schedule, lane.first_recv, lane.recv_count, op.recv_slots, false))
      return "recv_slots names a signal";
  }
  if (op.wait_slots == 0) return nullptr;
  if (op.wait_slots == kAllSlots || !mask_in_range(op.wait_slots, lane.recv_count))
    return "wait_slots names a connection that the lane lacks";
  return all_of_kind(schedule, lane.first_recv, lane.recv_count, op.wait_slots, true)
             ? nullptr
             : "wait_slots names a connection that is no signal";
}

const char* wrong_send(const Schedule& schedule, const Op& op, const Lane& lane) {
  if (sends(op.primitive)) {
    if (!mask_in_range(op.send_slots, lane.send_count))
      return "send_slots names a connection that the lane lacks";
    if (used_slots(op.send_slots, lane.send_count) == 0) return "it sends, but to no connection";
    if (!all_of_kind(schedule, lane.first_send, lane.send_count, op.send_slots, false))
      return "send_slots names a signal";
  }
  if (op.signal_slots == 0) return nullptr;
  if (op.signal_slots == kAllSlots || !mask_in_range(op.signal_slots, lane.send_count))
    return "signal_slots names a connection that the lane lacks";
  return all_of_kind(schedule, lane.first_send, lane.send_count, op.signal_slots, true)
             ? nullptr
             : "signal_slots names a connection that is no signal";
}

const char* wrong_buffers(const Op& op, const Work& work) {
  if (writes_target(op.primitive) && op.target != Buffer::output && op.target != Buffer::scratch)
    return "its target is no buffer that may be written";
  const bool copies = op.primitive == Primitive::copy || op.primitive == Primitive::copy_send ||
                      op.primitive == Primitive::send || op.primitive == Primitive::reduce;
  if (copies && op.source == Buffer::none) return "it has no source";
  if (op.target_shift != 0 && work.layout != Layout::per_rank)
    return "target_shift is for the layout per_rank only";
  if (op.holds && (!sends(op.primitive) || !op.send_part.whole()))
    return "only whole messages are held";
  if (op.recv_part.whole() && op.send_part.whole()) return nullptr;
  if (work.layout == Layout::rotating) return "parts of a message are for blocks of one size";
  if (work.slices_per_chunk != 1) return "parts of a message are for chunks of one slice";
  if (op.repeat != 1) return "parts of a message are for operations that are not repeated";
  if ((op.recv_part.ahead > 0 && !op.recv_part.more) ||
      (op.send_part.ahead > 0 && !op.send_part.more))
    return "messages are sent and consumed in order";
  return nullptr;
}

Result<void> check_op(const Schedule& schedule, const Op& op, const Lane& lane,
                      const std::string& where) {
  const char* wrong = wrong_recv(schedule, op, lane);
  if (wrong == nullptr) wrong = wrong_send(schedule, op, lane);
  if (wrong == nullptr) wrong = wrong_buffers(op, schedule.works[lane.work]);
  if (wrong == nullptr) return {};
  return refuse("{} ({}): {}", where, to_text(op.primitive), wrong);
}

Result<void> check_lane(const Schedule& schedule, std::size_t index) {
  const Lane& lane = schedule.lanes[index];
  if (lane.rank >= schedule.ranks)
    return refuse("lane {}: rank {} is not one of {}", index, lane.rank, schedule.ranks);
  if (lane.program.index() >= schedule.programs.size())
    return refuse("lane {} (rank {}): program id out of range", index, lane.rank);
  if (lane.work >= schedule.works.size())
    return refuse("lane {} (rank {}): work {} out of range", index, lane.rank, lane.work);
  if (lane.multiplicity == 0)
    return refuse("lane {} (rank {}): multiplicity is 0", index, lane.rank);
  const auto outside = [&](std::uint64_t first, std::uint64_t count) {
    return first + count > schedule.slots.size();
  };
  if (outside(lane.first_recv, lane.recv_count) || outside(lane.first_send, lane.send_count))
    return refuse("lane {} (rank {}): slots out of range", index, lane.rank);
  if (loop_count(schedule.works[lane.work]) == 0) return {};
  const Program& program = schedule.programs[lane.program.index()];
  for (std::size_t op = 0; op < program.size(); ++op)
    RAILYARD_TRY(check_op(schedule, program[op], lane,
                          fmt::format("lane {} (rank {}), op {}", index, lane.rank, op)));
  if (!program.empty() && program.back().holds)
    return refuse("lane {} (rank {}): its last operation holds what nothing after it tells of",
                  index, lane.rank);
  return {};
}

// The slots of every lane name its own connections, each connection once at either end.
Result<void> check_slots(const Schedule& schedule) {
  std::vector<std::uint8_t> seen(schedule.connections.size(), 0);  // bit 0: sent, bit 1: received
  const auto check_end = [&](std::size_t lane, std::uint32_t slot, bool sending) -> Result<void> {
    const ConnectionId id = schedule.slots[slot];
    const char* verb = sending ? "sends on" : "receives from";
    if (id.index() >= schedule.connections.size())
      return refuse("lane {}: slot {} names no connection", lane, slot);
    const Connection& connection = schedule.connections[id.index()];
    const LaneId end = sending ? connection.from : connection.to;
    if (end != LaneId(lane))
      return refuse("lane {} {} connection {}, whose {} is lane {}", lane, verb, id.value(),
                    sending ? "sender" : "receiver", static_cast<std::int32_t>(end.value()));
    const auto bit = static_cast<std::uint8_t>(sending ? 1 : 2);
    if ((seen[id.index()] & bit) != 0)
      return refuse("lane {} {} connection {} in two slots", lane, verb, id.value());
    seen[id.index()] = static_cast<std::uint8_t>(seen[id.index()] | bit);
    return {};
  };
  for (std::size_t l = 0; l < schedule.lanes.size(); ++l) {
    const Lane& lane = schedule.lanes[l];
    for (std::uint32_t k = 0; k < lane.recv_count; ++k)
      RAILYARD_TRY(check_end(l, lane.first_recv + k, false));
    for (std::uint32_t k = 0; k < lane.send_count; ++k)
      RAILYARD_TRY(check_end(l, lane.first_send + k, true));
  }
  const auto lonely = std::ranges::find_if(seen, [](std::uint8_t bits) { return bits != 3; });
  if (lonely != seen.end())
    return refuse("connection {} has no slot at its {}", lonely - seen.begin(),
                  (*lonely & 1) == 0 ? "sender" : "receiver");
  return {};
}

// Whole slices by their sizes; of those in parts only how many there are.
struct ConnectionSizes {
  std::vector<Bytes> sent, received;
  bool in_parts = false;
};

void add_size(const MessageRef& ref, Bytes size, ConnectionSizes& sizes, bool sending) {
  sizes.in_parts = sizes.in_parts || !ref.part.whole();
  if (!ref.part.more) (sending ? sizes.sent : sizes.received).push_back(size);
}

Result<void> add_sizes(const Expansion& expansion, LaneId lane, const SliceOp& op,
                       std::vector<ConnectionSizes>& sizes) {
  for (const ConnectionId id : op.signal) sizes[id.index()].sent.emplace_back();
  for (const ConnectionId id : op.wait) sizes[id.index()].received.emplace_back();
  const auto own = [&](const MessageRef& ref, bool sending) {
    if (ref.connection.index() >= expansion.connections.size()) return false;
    const Connection& connection = expansion.connections[ref.connection.index()];
    return (sending ? connection.from : connection.to) == lane;
  };
  for (const MessageRef& ref : op.send) {
    if (!own(ref, true))
      return refuse("lane {} sends on connection {}, which is not its own", lane.value(),
                    ref.connection.value());
    add_size(ref, op.size, sizes[ref.connection.index()], true);
  }
  for (const MessageRef& ref : op.recv) {
    if (!own(ref, false))
      return refuse("lane {} receives from connection {}, which is not its own", lane.value(),
                    ref.connection.value());
    add_size(ref, op.size, sizes[ref.connection.index()], false);
  }
  return {};
}

Result<std::vector<ConnectionSizes>> collect_sizes(const Expansion& expansion) {
  std::vector<ConnectionSizes> sizes(expansion.connections.size());
  for (std::size_t lane = 0; lane < expansion.lanes.size(); ++lane)
    for (const SliceOp& op : expansion.lanes[lane].ops)
      RAILYARD_TRY(add_sizes(expansion, LaneId(lane), op, sizes));
  return sizes;
}

std::int64_t magnitude(std::int64_t n) { return n < 0 ? -n : n; }

// Bytes that all iterations of `op` move in loop `loop`. With steps of 0 or +-1 the blocks are one
// cyclic range, whose bytes are differences of block offsets; other steps are walked.
Bytes iteration_bytes(const Op& op, const Lane& lane, const Work& work, std::uint32_t loop) {
  const auto size_of = [&](std::uint32_t block) { return block_region(work, loop, block).size; };
  if (work.layout != Layout::rotating || op.block_step == 0)
    return size_of(block_of(op, lane, work, 0)) * op.repeat;
  if (magnitude(op.block_step) != 1) {
    Bytes total;
    for (std::uint32_t j = 0; j < op.repeat; ++j) total += size_of(block_of(op, lane, work, j));
    return total;
  }
  const std::uint32_t blocks = work.blocks;
  const Bytes base = block_region(work, loop, 0).offset;
  const auto before = [&](std::uint32_t block) {  // bytes of the blocks below `block`
    if (block == 0) return bytes(0);
    const Region last = block_region(work, loop, block - 1);
    return last.offset + last.size - base;
  };
  const std::uint32_t whole_rounds = op.repeat / blocks;
  const std::uint32_t rest = op.repeat % blocks;
  Bytes total = before(blocks) * whole_rounds;
  if (rest == 0) return total;
  const std::uint32_t lowest = block_of(op, lane, work, op.block_step > 0 ? 0 : rest - 1);
  const std::uint32_t end = lowest + rest;
  if (end <= blocks) return total + before(end) - before(lowest);
  return total + before(blocks) - before(lowest) + before(end - blocks);
}

}  // namespace

Result<void> validate_structure(const Schedule& schedule) {
  RAILYARD_TRY(check_header(schedule));
  for (std::size_t i = 0; i < schedule.works.size(); ++i)
    RAILYARD_TRY(check_work(schedule.works[i], i));
  RAILYARD_TRY(check_block_orders(schedule));
  for (std::size_t i = 0; i < schedule.programs.size(); ++i)
    for (const Op& op : schedule.programs[i])
      if (op.repeat == 0) return refuse("program {}: an op with repeat 0", i);
  for (std::size_t i = 0; i < schedule.connections.size(); ++i) {
    const Connection& connection = schedule.connections[i];
    if (connection.from.index() >= schedule.lanes.size() ||
        connection.to.index() >= schedule.lanes.size())
      return refuse("connection {} has an end that is no lane", i);
  }
  for (std::size_t i = 0; i < schedule.lanes.size(); ++i) RAILYARD_TRY(check_lane(schedule, i));
  return check_slots(schedule);
}

Result<void> validate_flow(const Expansion& expansion) {
  RAILYARD_ASSIGN(const std::vector<ConnectionSizes> all, collect_sizes(expansion));
  for (std::size_t c = 0; c < all.size(); ++c) {
    const ConnectionSizes& sizes = all[c];
    const Connection& connection = expansion.connections[c];
    const std::string name = fmt::format("connection {} (lane {} -> lane {})", c,
                                         connection.from.value(), connection.to.value());
    if (sizes.sent.size() != sizes.received.size())
      return refuse("{}: {} slices are sent and {} received", name, sizes.sent.size(),
                    sizes.received.size());
    if (sizes.in_parts) continue;
    const auto [sent, received] = std::ranges::mismatch(sizes.sent, sizes.received);
    if (sent != sizes.sent.end())
      return refuse("{}: slice {} is sent with {} bytes and received with {}", name,
                    sent - sizes.sent.begin(), sent->raw(), received->raw());
  }
  UntimedRun run(expansion);
  if (run.run([](LaneId, std::uint32_t) {})) return {};
  return Error{ErrorCode::would_hang, "schedule: it never ends: " + run.wait_chain(), {}};
}

Result<void> validate(const Schedule& schedule) {
  RAILYARD_TRY(validate_structure(schedule));
  return validate_flow(expand(schedule));
}

namespace {

// By how many parts the operations of a program lengthen their messages, in its order. A part that
// is written again lengthens nothing, one beyond a gap by the gap too.
class MessageGrowth {
 public:
  std::uint32_t of(const Op& op, std::uint32_t send_count) {
    std::uint32_t growth = 0;
    for (std::uint32_t slot = 0; slot < send_count; ++slot)
      if (names_slot(op.send_slots, slot)) growth += grow(op.send_part, slot);
    return growth;
  }

 private:
  std::uint32_t grow(MessagePart part, std::uint32_t slot) {
    std::deque<std::uint32_t>& lengths = open_[slot];
    if (lengths.size() <= part.ahead) lengths.resize(part.ahead + std::size_t{1}, 0);
    const std::uint32_t before = lengths[part.ahead];
    const std::uint32_t after = std::max<std::uint32_t>(before, part.index + 1U);
    lengths[part.ahead] = after;
    if (!part.more) lengths.pop_front();
    return after - before;
  }
  std::map<std::uint32_t, std::deque<std::uint32_t>> open_;  // by slot, in parts
};

}  // namespace

ScheduleTotals totals(const Schedule& schedule) {
  ScheduleTotals totals;
  for (const Lane& lane : schedule.lanes) {
    const Work& work = schedule.works[lane.work];
    const std::int64_t loops = loop_count(work);
    if (loops == 0) continue;
    MessageGrowth growth;
    for (const Op& op : schedule.programs[lane.program.index()]) {
      if (!sends(op.primitive)) continue;
      std::int64_t copies = used_slots(op.send_slots, lane.send_count);
      if (!op.send_part.more)
        totals.messages += copies * lane.multiplicity * loops * op.repeat * work.slices_per_chunk;
      if (work.slices_per_chunk == 1 && op.repeat == 1) copies = growth.of(op, lane.send_count);
      Bytes payload = work.chunk * op.repeat * (loops - 1);  // all loops but the last are full
      payload += iteration_bytes(op, lane, work, static_cast<std::uint32_t>(loops - 1));
      totals.payload += payload * copies * lane.multiplicity;
    }
  }
  return totals;
}

}  // namespace railyard::sim
