#include "sim/dataflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "sim/contributions.h"
#include "sim/in_place.h"
#include "sim/interval_map.h"
#include "sim/races.h"
#include "sim/untimed_run.h"
#include "sim/validate.h"

namespace railyard::sim {
namespace {

// Parts by index; one that nobody has written has no value.
struct MessageParts {
  struct Filled {
    Bytes size;
    std::optional<Value> value;
  };
  std::vector<Filled> parts;
};

// Slices that were sent, and after them those that are open.
struct Fifo {
  std::deque<MessageParts> messages;
  std::size_t sent = 0;
};

// Every lane sends and receives on its own connections only.
Result<void> check_ends(const Expansion& expansion) {
  const auto own = [&](ConnectionId id, LaneId lane, LaneId Connection::*end, bool signal) {
    if (id.index() >= expansion.connections.size()) return false;
    const Connection& connection = expansion.connections[id.index()];
    return connection.*end == lane && connection.signal == signal;
  };
  const auto check = [&](const SliceOp& op, LaneId lane) -> Result<void> {
    const auto foreign = [&](const char* verb, ConnectionId id) {
      return bad_input(fmt::format("lane {} {} connection {}, which is not its own", lane.value(),
                                   verb, id.value()));
    };
    for (const MessageRef& ref : op.send)
      if (!own(ref.connection, lane, &Connection::from, false))
        return foreign("sends on", ref.connection);
    for (const MessageRef& ref : op.recv)
      if (!own(ref.connection, lane, &Connection::to, false))
        return foreign("receives from", ref.connection);
    for (const ConnectionId id : op.signal)
      if (!own(id, lane, &Connection::from, true)) return foreign("signals on", id);
    for (const ConnectionId id : op.wait)
      if (!own(id, lane, &Connection::to, true)) return foreign("waits on", id);
    return {};
  };
  for (std::size_t lane = 0; lane < expansion.lanes.size(); ++lane)
    for (const SliceOp& op : expansion.lanes[lane].ops) RAILYARD_TRY(check(op, LaneId(lane)));
  return {};
}

// Whether some operation reads what was written: the output, or the scratch.
bool reads_buffer(const Expansion& expansion, Buffer buffer) {
  const auto uses = [buffer](const SliceOp& op) {
    return (reads(op) && op.source == buffer) ||
           (op.primitive == Primitive::reduce && op.target == buffer);
  };
  return std::ranges::any_of(expansion.lanes, [&](const ExpandedLane& lane) {
    return std::ranges::any_of(lane.ops, uses);
  });
}

class Checker {
 public:
  Checker(const Expansion& expansion, const Promise& promise)
      : expansion_(expansion),
        promise_(promise),
        fifos_(expansion.connections.size()),
        outputs_(promise.ranks),
        scratch_(promise.ranks),
        works_in_output_(reads_buffer(expansion, Buffer::output)),
        order_(expansion),
        watch_(expansion, order_),
        output_races_(expansion, order_, "output"),
        scratch_races_(expansion, order_, "scratch") {
    for (std::uint32_t rank = 0; rank < promise.ranks; ++rank) {
      own_.push_back(sets_.intern({{rank, 0, 1}}));
      if (promise_.in_place && works_in_output_) keep_input(rank);
    }
  }

  Result<DataflowReport> run() {
    UntimedRun untimed(expansion_);
    const bool ended = untimed.run([this](LaneId lane, std::uint32_t op) {
      if (!error_) execute(lane, op);
    });
    if (error_) return *error_;
    if (!ended) return Error{ErrorCode::would_hang, "it never ends: " + untimed.wait_chain(), {}};
    const UntimedRun::Leftover leftover = untimed.leftover();
    if (leftover.slices != 0)
      return bad_input(fmt::format("{} slices are sent and never received, on connection {} first",
                                   leftover.slices, leftover.connection.value()));
    for (std::uint32_t rank = 0; rank < promise_.ranks; ++rank) RAILYARD_TRY(check_output(rank));
    for (const RaceWatch* races : {&output_races_, &scratch_races_})
      if (!races->violation().empty()) return bad_input("a race: " + races->violation());
    if (!offers_in_place(promise_.collective)) {
      report_.in_place = InPlace::not_offered;
    } else if (!watch_.violation().empty()) {
      report_.in_place = InPlace::unsafe;
      report_.in_place_danger = watch_.violation();
      if (promise_.in_place) return bad_input("not safe in place: " + watch_.violation());
    }
    return std::move(report_);
  }

 private:
  void fail(const std::string& what) {
    if (!error_) error_ = bad_input(what);
  }

  void execute(LaneId lane, std::uint32_t index) {
    const ExpandedLane& at = expansion_.lanes[lane.index()];
    const SliceOp& op = at.ops[index];
    ++report_.slices;
    order_.begin(lane, index);
    watch_.begin(op.source_offset + input_shift(promise_, at.rank) ==
                 op.target_offset + output_shift(promise_, at.rank));
    for (const ConnectionId id : op.wait) order_.receive(id);
    std::optional<Value> value;
    for (const MessageRef& ref : op.recv) receive(op, ref, value);
    if (reads(op)) add_to(value, read(at.rank, op, {op.source, op.source_offset}));
    if (op.primitive == Primitive::reduce)
      add_to(value, read(at.rank, op, {op.target, op.target_offset}));
    if (error_) return;
    if (writes_target(op.primitive)) write(at.rank, op, value.value_or(Value{}));
    for (const MessageRef& ref : op.send) send(op, ref, value.value_or(Value{}));
    for (const ConnectionId id : op.signal) order_.send(id);
  }

  void add_to(std::optional<Value>& total, Value value) {
    if (error_) return;
    total = total ? add(sets_, *total, value) : std::move(value);
  }

  void receive(const SliceOp& op, const MessageRef& ref, std::optional<Value>& value) {
    Fifo& fifo = fifos_[ref.connection.index()];
    const std::uint16_t index = ref.part.index;
    const MessageParts& message = fifo.messages[ref.part.ahead];
    const bool there = index < message.parts.size() && message.parts[index].value.has_value();
    if (!there)
      return fail(
          fmt::format("connection {}: part {} of a slice is received and was never sent "
                      "({})",
                      ref.connection.value(), index, to_text(op)));
    const MessageParts::Filled part = message.parts[index];
    order_.receive(ref.connection, ref.part);
    if (!ref.part.more) {
      fifo.messages.pop_front();
      --fifo.sent;
    }
    if (part.size != op.size)
      return fail(fmt::format("connection {}: a slice of {} bytes is received as {} ({})",
                              ref.connection.value(), part.size.raw(), op.size.raw(), to_text(op)));
    add_to(value, *part.value);
  }

  void send(const SliceOp& op, const MessageRef& ref, const Value& value) {
    Fifo& fifo = fifos_[ref.connection.index()];
    const std::size_t place = fifo.sent + ref.part.ahead;
    if (fifo.messages.size() <= place) fifo.messages.resize(place + 1);
    auto& parts = fifo.messages[place].parts;
    if (parts.size() <= ref.part.index) parts.resize(ref.part.index + std::size_t{1});
    MessageParts::Filled& part = parts[ref.part.index];
    if (part.value && part.size != op.size)
      return fail(fmt::format("connection {}: {} bytes are added to a part of {} ({})",
                              ref.connection.value(), op.size.raw(), part.size.raw(), to_text(op)));
    part.value = part.value ? add(sets_, *part.value, value) : value;
    part.size = op.size;
    if (!ref.part.more) ++fifo.sent;
    order_.send(ref.connection, ref.part);
  }

  [[nodiscard]] Bytes size_of(Buffer buffer, std::uint32_t rank) const {
    if (buffer == Buffer::input) return input_size(promise_, rank);
    return buffer == Buffer::output ? output_size(promise_, rank) : expansion_.scratch;
  }

  struct Place {
    Buffer buffer;
    Bytes offset;
  };
  bool inside(std::uint32_t rank, const SliceOp& op, Place place, const char* verb) {
    const Bytes size = size_of(place.buffer, rank);
    if (place.offset.raw() >= 0 && place.offset + op.size <= size) return true;
    fail(fmt::format("rank {} {} {} [{},{}) outside its {} bytes ({})", rank, verb,
                     to_text(place.buffer), place.offset.raw(), (place.offset + op.size).raw(),
                     size.raw(), to_text(op)));
    return false;
  }

  Value read(std::uint32_t rank, const SliceOp& op, Place place) {
    if (op.size.raw() == 0 || error_ || !inside(rank, op, place, "reads")) return {};
    const std::int64_t begin = place.offset.raw();
    const std::int64_t end = begin + op.size.raw();
    if (place.buffer != Buffer::input) return read_written(rank, place.buffer, begin, end);
    const std::int64_t shift = input_shift(promise_, rank).raw();
    watch_.read(begin + shift, end + shift);
    return {{0, op.size.raw(), {own_[rank].set, begin}}};
  }

  Value read_written(std::uint32_t rank, Buffer buffer, std::int64_t begin, std::int64_t end) {
    Value value;
    std::int64_t at = begin;
    memory(buffer)[rank].for_each(begin, end, [&](std::int64_t b, std::int64_t e, const Sum& sum) {
      if (b > at) return;
      value.push_back({b - begin, e - begin, {sum.set, sum.delta + begin}});
      at = e;
    });
    if (at < end)
      fail(fmt::format("rank {} reads {} [{},{}) before it is written", rank, to_text(buffer), at,
                       end));
    races(buffer).read(begin, end);
    return value;
  }

  std::vector<IntervalMap<Sum>>& memory(Buffer buffer) {
    return buffer == Buffer::output ? outputs_ : scratch_;
  }
  RaceWatch& races(Buffer buffer) {
    return buffer == Buffer::output ? output_races_ : scratch_races_;
  }

  void write(std::uint32_t rank, const SliceOp& op, const Value& value) {
    const std::int64_t offset = op.target_offset.raw();
    if (op.size.raw() == 0 || !inside(rank, op, {op.target, op.target_offset}, "writes")) return;
    if (op.target == Buffer::scratch || works_in_output_)
      races(op.target).write(offset, offset + op.size.raw());
    for (const ValuePiece& piece : value) {
      const Sum sum{piece.sum.set, piece.sum.delta - offset};
      write_piece(rank, op.target, {piece.begin + offset, piece.end + offset, sum});
    }
  }

  void write_piece(std::uint32_t rank, Buffer buffer, const ValuePiece& piece) {
    const bool final = buffer == Buffer::output && !works_in_output_;
    const auto replace = [&](std::int64_t begin, std::int64_t end, Sum& before) {
      if (before == piece.sum && buffer == Buffer::output) report_.rewritten += bytes(end - begin);
      if (before != piece.sum && final)
        fail(fmt::format("rank {} output [{},{}): written twice with different values", rank, begin,
                         end));
      before = piece.sum;
    };
    memory(buffer)[rank].for_each(piece.begin, piece.end, replace);
    memory(buffer)[rank].fill_gaps(piece.begin, piece.end, piece.sum);
    if (buffer != Buffer::output) return;
    // In place, a write of the byte that lies there anyway destroys nothing.
    const std::int64_t shift = output_shift(promise_, rank).raw();
    if (piece.sum != input_in_place(rank)) watch_.destroy(piece.begin + shift, piece.end + shift);
  }

  // The input as it lies in the output of an in-place call: a sum and an interval of the output.
  [[nodiscard]] Sum input_in_place(std::uint32_t rank) const {
    return {own_[rank].set, (output_shift(promise_, rank) - input_shift(promise_, rank)).raw()};
  }
  void keep_input(std::uint32_t rank) {
    const Bytes begin = input_shift(promise_, rank) - output_shift(promise_, rank);
    const Bytes end = std::min(begin + input_size(promise_, rank), output_size(promise_, rank));
    outputs_[rank].fill_gaps(std::max(begin, bytes(0)).raw(), end.raw(), input_in_place(rank));
  }

  Result<void> check_output(std::uint32_t rank) {
    if (promise_.in_place) keep_input(rank);
    for (const ValuePiece& promised : promised_output(sets_, promise_, rank)) {
      std::int64_t at = promised.begin;
      std::string wrong;
      const auto compare = [&](std::int64_t begin, std::int64_t end, const Sum& sum) {
        if (wrong.empty() && begin > at) wrong = never_written(rank, at, begin);
        if (wrong.empty() && sum != promised.sum)
          wrong = difference(rank, {begin, end, sum}, promised);
        at = end;
      };
      outputs_[rank].for_each(promised.begin, promised.end, compare);
      if (wrong.empty() && at < promised.end) wrong = never_written(rank, at, promised.end);
      if (!wrong.empty()) return bad_input(wrong);
    }
    return {};
  }

  static std::string never_written(std::uint32_t rank, std::int64_t begin, std::int64_t end) {
    return fmt::format("rank {} output [{},{}): never written", rank, begin, end);
  }

  [[nodiscard]] std::string difference(std::uint32_t rank, const ValuePiece& actual,
                                       const ValuePiece& promised) const {
    const auto at = [&](Sum sum) {
      sum.delta += actual.begin;
      return sets_.terms(sum);
    };
    return fmt::format("rank {} output [{},{}): {}", rank, actual.begin, actual.end,
                       describe_difference(at(actual.sum), at(promised.sum)));
  }

  const Expansion& expansion_;
  const Promise& promise_;
  TermSets sets_;
  std::vector<Sum> own_;     // by rank
  std::vector<Fifo> fifos_;  // by connection
  // By rank; the delta is from output (or scratch) to input offset.
  std::vector<IntervalMap<Sum>> outputs_, scratch_;
  bool works_in_output_;  // partial sums lie in the output for a while
  HappensBefore order_;
  InPlaceWatch watch_;
  RaceWatch output_races_, scratch_races_;
  DataflowReport report_;
  std::optional<Error> error_;
};

}  // namespace

Result<DataflowReport> check_dataflow(const Expansion& expansion, const Promise& promise) {
  if (promise.ranks == 0 || promise.ranks != expansion.ranks)
    return bad_input(fmt::format("the promise is for {} ranks and the expansion has {}",
                                 promise.ranks, expansion.ranks));
  if (promise.collective == Collective::all_to_all && promise.size.raw() % promise.ranks != 0)
    return bad_input(fmt::format("AllToAll of {} bytes does not divide by {} ranks",
                                 promise.size.raw(), promise.ranks));
  if (promise.in_place && !offers_in_place(promise.collective))
    return Error{ErrorCode::unsupported,
                 fmt::format("{} cannot be in place", to_text(promise.collective)),
                 {}};
  RAILYARD_TRY(check_ends(expansion));
  return Checker(expansion, promise).run();
}

Result<DataflowReport> check_dataflow(const Schedule& schedule) {
  RAILYARD_TRY(validate_structure(schedule));
  for (const Lane& lane : schedule.lanes)
    if (lane.multiplicity != 1)
      return Error{ErrorCode::unsupported, "a lane of multiplicity above 1 cannot be checked", {}};
  return check_dataflow(expand(schedule), promise_of(schedule));
}

}  // namespace railyard::sim
