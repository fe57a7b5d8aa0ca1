#include "sim/expand.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <utility>

namespace railyard::sim {
namespace {

std::string interval(Bytes offset, Bytes size) {
  return fmt::format("[{},{})", offset.raw(), (offset + size).raw());
}

// A receiving or sending operation's connections: those of the lane's slots that `mask` names.
struct SlotRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t mask = 0;
};

class Expander {
 public:
  explicit Expander(const Schedule& schedule)
      : schedule_(schedule),
        sent_(schedule.connections.size(), 0),
        received_(schedule.connections.size(), 0) {}

  Expansion run() {
    Expansion expansion{
        schedule_.ranks, schedule_.fifo_slices, schedule_.scratch, {}, schedule_.connections};
    expansion.lanes.reserve(schedule_.lanes.size());
    for (const Lane& lane : schedule_.lanes) expansion.lanes.push_back(expand_lane(lane));
    return expansion;
  }

 private:
  ExpandedLane expand_lane(const Lane& lane) {
    ExpandedLane expanded{lane.rank, lane.channel, lane.role, lane.batch, {}};
    const Work& work = schedule_.works[lane.work];
    const Program& program = schedule_.programs[lane.program.index()];
    const std::uint32_t loops = loop_count(work);
    for (std::uint32_t loop = 0; loop < loops; ++loop)
      for (std::uint32_t op = 0; op < program.size(); ++op)
        for (std::uint32_t j = 0; j < program[op].repeat; ++j) {
          SliceOp base;
          base.primitive = program[op].primitive;
          base.loop = loop;
          base.op = op;
          base.iteration = j;
          base.source = program[op].source;
          base.target = program[op].target;
          base.holds = program[op].holds;
          base.block = block_of(program[op], lane, work, j);
          append_slices(lane, program[op], base, expanded.ops);
        }
    return expanded;
  }

  void append_slices(const Lane& lane, const Op& op, const SliceOp& base,
                     std::vector<SliceOp>& out) {
    const Work& work = schedule_.works[lane.work];
    const std::uint32_t place = place_of(work, base.block);
    const Bytes shift = target_distance(op, work, base.block);
    const Region chunk = block_region(work, base.loop, place);
    for (std::uint32_t slice = 0; slice < work.slices_per_chunk; ++slice) {
      const Region region = slice_region(work, chunk, slice);
      SliceOp next = base;
      next.slice = slice;
      next.size = region.size;
      next.source_offset = buffer_offset(op.source, work, place, region);
      next.target_offset = buffer_offset(op.target, work, place, region) + shift;
      if (receives(op.primitive))
        next.recv =
            messages({lane.first_recv, lane.recv_count, op.recv_slots}, op.recv_part, received_);
      if (sends(op.primitive))
        next.send =
            messages({lane.first_send, lane.send_count, op.send_slots}, op.send_part, sent_);
      if (slice == 0 && base.iteration == 0)
        next.wait = signals({lane.first_recv, lane.recv_count, op.wait_slots});
      if (slice + 1 == work.slices_per_chunk && base.iteration + 1 == op.repeat)
        next.signal = signals({lane.first_send, lane.send_count, op.signal_slots});
      out.push_back(std::move(next));
    }
  }

  [[nodiscard]] std::uint32_t place_of(const Work& work, std::uint32_t block) const {
    return work.layout == Layout::per_rank ? block_rank(schedule_, work, block) : block;
  }

  [[nodiscard]] Bytes target_distance(const Op& op, const Work& work, std::uint32_t block) const {
    if (op.target_shift == 0) return {};
    const auto blocks = static_cast<std::int32_t>(work.blocks);
    const std::int32_t moved = static_cast<std::int32_t>(block) + op.target_shift % blocks;
    const auto target = static_cast<std::uint32_t>((moved + blocks) % blocks);
    return work.stride * (std::int64_t{place_of(work, target)} - place_of(work, block));
  }

  std::vector<MessageRef> messages(SlotRange slots, MessagePart part,
                                   std::vector<std::uint32_t>& counters) {
    std::vector<MessageRef> refs;
    for (std::uint32_t k = 0; k < slots.count; ++k) {
      if (!names_slot(slots.mask, k)) continue;
      const ConnectionId connection = schedule_.slots[slots.first + k];
      refs.push_back({connection, counters[connection.index()] + part.ahead, part});
      if (!part.more) ++counters[connection.index()];
    }
    return refs;
  }

  [[nodiscard]] std::vector<ConnectionId> signals(SlotRange slots) const {
    std::vector<ConnectionId> ids;
    for (std::uint32_t k = 0; k < slots.count; ++k)
      if (names_slot(slots.mask, k)) ids.push_back(schedule_.slots[slots.first + k]);
    return ids;
  }

  const Schedule& schedule_;
  std::vector<std::uint32_t> sent_, received_;  // by ConnectionId
};

}  // namespace

std::uint32_t block_of(const Op& op, const Lane& lane, const Work& work, std::uint32_t iteration) {
  const std::int64_t blocks = work.blocks;
  const std::int64_t block = op.block_base + std::int64_t{op.block_per_position} * lane.position +
                             std::int64_t{op.block_step} * iteration;
  return static_cast<std::uint32_t>((block % blocks + blocks) % blocks);
}

Bytes input_offset(const Work& work, std::uint32_t place, Region region) {
  return region.offset - (work.single_block_input ? work.stride * place : bytes(0)) +
         work.input_shift;
}

Bytes output_offset(const Work& work, std::uint32_t place, Region region) {
  return region.offset - (work.single_block_output ? work.stride * place : bytes(0)) +
         work.output_shift;
}

Bytes buffer_offset(Buffer buffer, const Work& work, std::uint32_t place, Region region) {
  switch (buffer) {
    case Buffer::input: return input_offset(work, place, region);
    case Buffer::output: return output_offset(work, place, region);
    case Buffer::scratch:
    case Buffer::none: break;
  }
  return region.offset;
}

Expansion expand(const Schedule& schedule) { return Expander(schedule).run(); }

std::vector<std::vector<LaneId>> lanes_before(const Expansion& expansion) {
  // (rank, channel) -> batch -> its lanes with operations
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::map<std::uint16_t, std::vector<LaneId>>>
      batches;
  for (std::size_t l = 0; l < expansion.lanes.size(); ++l) {
    const ExpandedLane& lane = expansion.lanes[l];
    if (!lane.ops.empty()) batches[{lane.rank, lane.channel}][lane.batch].push_back(LaneId(l));
  }
  std::vector<std::vector<LaneId>> before(expansion.lanes.size());
  for (std::size_t l = 0; l < expansion.lanes.size(); ++l) {
    const ExpandedLane& lane = expansion.lanes[l];
    const auto& mine = batches[{lane.rank, lane.channel}];
    const auto own = mine.lower_bound(lane.batch);
    if (own != mine.begin()) before[l] = std::prev(own)->second;
  }
  return before;
}

std::string to_text(const SliceOp& op) {
  std::string text = fmt::format("loop {} op {}.{} slice {} {} block {}", op.loop, op.op,
                                 op.iteration, op.slice, to_text(op.primitive), op.block);
  if (reads(op)) {
    text += op.source == Buffer::input ? " in " : fmt::format(" reads {} ", to_text(op.source));
    text += interval(op.source_offset, op.size);
  }
  if (writes_target(op.primitive)) {
    text += op.target == Buffer::output ? " out " : fmt::format(" {} ", to_text(op.target));
    text += interval(op.target_offset, op.size);
  }
  const auto append = [&text](const char* word, const std::vector<MessageRef>& refs) {
    for (const MessageRef& ref : refs) {
      text += fmt::format(" {} c{}#{}", word, ref.connection.value(), ref.sequence);
      if (ref.part.index > 0) text += fmt::format(".{}", ref.part.index);
      if (ref.part.more) text += "~";
    }
  };
  append("from", op.recv);
  append("to", op.send);
  for (const ConnectionId id : op.wait) text += fmt::format(" after c{}", id.value());
  for (const ConnectionId id : op.signal) text += fmt::format(" before c{}", id.value());
  return text;
}

std::string to_text(const Expansion& expansion) {
  std::string text;
  for (std::size_t c = 0; c < expansion.connections.size(); ++c)
    text += fmt::format("connection {}: lane {} -> lane {}\n", c,
                        expansion.connections[c].from.value(), expansion.connections[c].to.value());
  for (std::size_t l = 0; l < expansion.lanes.size(); ++l) {
    const ExpandedLane& lane = expansion.lanes[l];
    const std::string batch = lane.batch == 0 ? "" : fmt::format(" batch {}", lane.batch);
    for (const SliceOp& op : lane.ops)
      text += fmt::format("lane {} rank {} ch {} {}{}: {}\n", l, lane.rank, lane.channel,
                          to_text(lane.role), batch, to_text(op));
  }
  return text;
}

}  // namespace railyard::sim
