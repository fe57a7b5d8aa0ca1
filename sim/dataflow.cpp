#include "sim/dataflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "sim/contributions.h"
#include "sim/in_place.h"
#include "sim/interval_map.h"
#include "sim/untimed_run.h"
#include "sim/validate.h"

namespace railyard::sim {
namespace {

struct Message {
  Bytes size;
  Value value;
};

// What a rank's output must hold: pieces in output offsets.
std::vector<ValuePiece> promised_output(TermSets& sets, const Promise& promise,
                                        std::uint32_t rank_index) {
  const std::int64_t size = promise.size.raw();
  const std::int64_t rank = rank_index;
  const auto from_all = [&](std::int64_t offset) {
    std::vector<Term> terms;
    for (std::uint32_t r = 0; r < promise.ranks; ++r) terms.push_back({r, offset, 1});
    return sets.intern(std::move(terms));
  };
  // Block r of the output is the piece of rank r's input that begins at `offset`.
  const auto blocks = [&](std::int64_t block, std::int64_t offset) {
    std::vector<ValuePiece> pieces;
    for (std::uint32_t r = 0; r < promise.ranks; ++r)
      pieces.push_back({r * block, (r + 1) * block, sets.intern({{r, offset - r * block, 1}})});
    return pieces;
  };
  switch (promise.collective) {
    case Collective::all_reduce: return {{0, size, from_all(0)}};
    case Collective::reduce_scatter: return {{0, size, from_all(rank * size)}};
    case Collective::broadcast: return {{0, size, sets.intern({{promise.root, 0, 1}})}};
    case Collective::reduce:
      if (rank_index != promise.root) return {};
      return {{0, size, from_all(0)}};
    case Collective::all_gather: return blocks(size, 0);
    case Collective::all_to_all: {
      const std::int64_t block = size / promise.ranks;
      return blocks(block, rank * block);
    }
  }
  return {};
}

// Every lane sends and receives on its own connections only.
Result<void> check_ends(const Expansion& expansion) {
  const auto foreign = [&](const MessageRef& ref, LaneId lane, LaneId Connection::*end) {
    return ref.connection.index() >= expansion.connections.size() ||
           expansion.connections[ref.connection.index()].*end != lane;
  };
  const auto check = [&](const SliceOp& op, LaneId lane) -> Result<void> {
    for (const MessageRef& ref : op.send)
      if (foreign(ref, lane, &Connection::from))
        return bad_input(fmt::format("lane {} sends on connection {}, which is not its own",
                                     lane.value(), ref.connection.value()));
    for (const MessageRef& ref : op.recv)
      if (foreign(ref, lane, &Connection::to))
        return bad_input(fmt::format("lane {} receives from connection {}, which is not its own",
                                     lane.value(), ref.connection.value()));
    return {};
  };
  for (std::size_t lane = 0; lane < expansion.lanes.size(); ++lane)
    for (const SliceOp& op : expansion.lanes[lane].ops) RAILYARD_TRY(check(op, LaneId(lane)));
  return {};
}

class Checker {
 public:
  Checker(const Expansion& expansion, const Promise& promise)
      : expansion_(expansion),
        promise_(promise),
        fifos_(expansion.connections.size()),
        outputs_(promise.ranks),
        watch_(expansion) {
    for (std::uint32_t rank = 0; rank < promise.ranks; ++rank)
      own_.push_back(sets_.intern({{rank, 0, 1}}));
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
    if (promise_.collective == Collective::all_to_all) {
      report_.in_place = InPlace::not_offered;
    } else if (!watch_.violation().empty()) {
      report_.in_place = InPlace::unsafe;
      report_.in_place_danger = watch_.violation();
      if (promise_.in_place) return bad_input("not safe in place: " + watch_.violation());
    }
    return std::move(report_);
  }

 private:
  // Where a rank's buffers begin in the common buffer of an in-place call.
  [[nodiscard]] Bytes input_shift(std::uint32_t rank) const {
    return promise_.collective == Collective::all_gather ? promise_.size * rank : bytes(0);
  }
  [[nodiscard]] Bytes output_shift(std::uint32_t rank) const {
    return promise_.collective == Collective::reduce_scatter ? promise_.size * rank : bytes(0);
  }

  void fail(const std::string& what) {
    if (!error_) error_ = bad_input(what);
  }

  void execute(LaneId lane, std::uint32_t index) {
    const ExpandedLane& at = expansion_.lanes[lane.index()];
    const SliceOp& op = at.ops[index];
    ++report_.slices;
    watch_.begin(
        lane, index,
        op.input_offset + input_shift(at.rank) == op.output_offset + output_shift(at.rank));
    std::optional<Value> value;
    for (const MessageRef& ref : op.recv) receive(op, ref.connection, value);
    if (reads_input(op.primitive)) read_input(at.rank, op, value);
    if (error_) return;
    if (writes_output(op.primitive)) write_output(at.rank, op, value.value_or(Value{}));
    for (const MessageRef& ref : op.send) {
      fifos_[ref.connection.index()].push_back({op.size, value.value_or(Value{})});
      watch_.send(ref.connection);
    }
  }

  void receive(const SliceOp& op, ConnectionId connection, std::optional<Value>& value) {
    Message message = std::move(fifos_[connection.index()].front());
    fifos_[connection.index()].pop_front();
    watch_.receive(connection);
    if (message.size != op.size)
      return fail(fmt::format("connection {}: a slice of {} bytes is received as {} ({})",
                              connection.value(), message.size.raw(), op.size.raw(), to_text(op)));
    value = value ? add(sets_, *value, message.value) : std::move(message.value);
  }

  void read_input(std::uint32_t rank, const SliceOp& op, std::optional<Value>& value) {
    const std::int64_t begin = op.input_offset.raw();
    const std::int64_t end = begin + op.size.raw();
    if (begin == end) return;
    if (begin < 0 || end > input_size(promise_, rank).raw())
      return fail(fmt::format("rank {} reads input [{},{}) outside its {} bytes ({})", rank, begin,
                              end, input_size(promise_, rank).raw(), to_text(op)));
    const std::int64_t shift = input_shift(rank).raw();
    watch_.read(begin + shift, end + shift);
    const Value mine{{0, op.size.raw(), {own_[rank].set, begin}}};
    value = value ? add(sets_, *value, mine) : mine;
  }

  void write_output(std::uint32_t rank, const SliceOp& op, const Value& value) {
    const std::int64_t offset = op.output_offset.raw();
    if (op.size.raw() == 0) return;
    if (offset < 0 || offset + op.size.raw() > output_size(promise_, rank).raw())
      return fail(fmt::format("rank {} writes output [{},{}) outside its {} bytes ({})", rank,
                              offset, offset + op.size.raw(), output_size(promise_, rank).raw(),
                              to_text(op)));
    for (const ValuePiece& piece : value) {
      const Sum sum{piece.sum.set, piece.sum.delta - offset};
      write_piece(rank, {piece.begin + offset, piece.end + offset, sum});
    }
  }

  void write_piece(std::uint32_t rank, const ValuePiece& piece) {
    const auto compare = [&](std::int64_t begin, std::int64_t end, const Sum& before) {
      if (before == piece.sum)
        report_.rewritten += bytes(end - begin);
      else
        fail(fmt::format("rank {} output [{},{}): written twice with different values", rank, begin,
                         end));
    };
    outputs_[rank].for_each(piece.begin, piece.end, compare);
    outputs_[rank].fill_gaps(piece.begin, piece.end, piece.sum);
    // In place, a write of the byte that lies there anyway destroys nothing.
    const std::int64_t shift = output_shift(rank).raw();
    if (piece.sum != input_in_place(rank)) watch_.destroy(piece.begin + shift, piece.end + shift);
  }

  // The input as it lies in the output of an in-place call: a sum and an interval of the output.
  [[nodiscard]] Sum input_in_place(std::uint32_t rank) const {
    return {own_[rank].set, (output_shift(rank) - input_shift(rank)).raw()};
  }
  void keep_input(std::uint32_t rank) {
    const Bytes begin = input_shift(rank) - output_shift(rank);
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
  std::vector<Sum> own_;                    // by rank
  std::vector<std::deque<Message>> fifos_;  // by connection
  std::vector<IntervalMap<Sum>> outputs_;   // by rank; the delta is from output to input offset
  InPlaceWatch watch_;
  DataflowReport report_;
  std::optional<Error> error_;
};

}  // namespace

Promise promise_of(const Schedule& schedule) {
  const CollectiveCall& call = schedule.call;
  return {call.collective, schedule.ranks, call.size, call.root, call.in_place};
}

Bytes input_size(const Promise& promise, std::uint32_t rank) {
  switch (promise.collective) {
    case Collective::reduce_scatter: return promise.size * promise.ranks;
    case Collective::broadcast: return rank == promise.root ? promise.size : bytes(0);
    default: return promise.size;
  }
}

Bytes output_size(const Promise& promise, std::uint32_t rank) {
  switch (promise.collective) {
    case Collective::all_gather: return promise.size * promise.ranks;
    case Collective::reduce: return rank == promise.root ? promise.size : bytes(0);
    default: return promise.size;
  }
}

Result<DataflowReport> check_dataflow(const Expansion& expansion, const Promise& promise) {
  if (promise.ranks == 0 || promise.ranks != expansion.ranks)
    return bad_input(fmt::format("the promise is for {} ranks and the expansion has {}",
                                 promise.ranks, expansion.ranks));
  if (promise.collective == Collective::all_to_all && promise.size.raw() % promise.ranks != 0)
    return bad_input(fmt::format("AllToAll of {} bytes does not divide by {} ranks",
                                 promise.size.raw(), promise.ranks));
  if (promise.collective == Collective::all_to_all && promise.in_place)
    return Error{ErrorCode::unsupported, "AllToAll cannot be in place", {}};
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
