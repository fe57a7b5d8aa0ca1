// Mutation test of a schedule: every single small change of its expansion is given to the data-flow
// checker, which must refuse it or be right to accept it. Right means: the changed expansion,
// executed with numbers (every input byte a random number, reduction = addition modulo 2^64) by the
// simple interpreter below, still ends with the promised sums. The interpreter shares nothing with
// sim/.
//
// Changes: drop an operation; duplicate one; swap two neighbours; redirect one slice to or from any
// other connection; shift a source or target offset by one byte either way; of a slice in parts,
// close it early, leave it open, or take the next part; drop a signal or the wait for one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "sim/dataflow.h"
#include "sim/expand.h"

namespace railyard::tests {

// Runs lanes in turn, one operation each, on numbers; true if the promise holds at the end.
class NumberRun {
 public:
  NumberRun(const sim::Expansion& expansion, const sim::Promise& promise)
      : expansion_(expansion),
        promise_(promise),
        before_(sim::lanes_before(expansion)),
        fifos_(expansion.connections.size()) {
    for (std::uint32_t rank = 0; rank < promise.ranks; ++rank) {
      outputs_.emplace_back(static_cast<std::size_t>(sim::output_size(promise, rank).raw()));
      scratch_.emplace_back(static_cast<std::size_t>(expansion.scratch.raw()));
    }
    position_.resize(expansion.lanes.size());
  }

  bool keeps_promise() {
    bool moved = true;
    while (moved && !broken_) {
      moved = false;
      for (std::size_t lane = 0; lane < position_.size(); ++lane) moved = step(lane) || moved;
    }
    for (std::size_t lane = 0; lane < position_.size(); ++lane)
      broken_ = broken_ || position_[lane] != expansion_.lanes[lane].ops.size();
    for (const auto& fifo : fifos_) broken_ = broken_ || !fifo.messages.empty();
    if (broken_) return false;
    for (std::uint32_t rank = 0; rank < promise_.ranks; ++rank)
      for (std::size_t e = 0; e < outputs_[rank].size(); ++e)
        if (outputs_[rank][e] != promised(rank, static_cast<std::int64_t>(e))) return false;
    return true;
  }

 private:
  using Number = std::uint64_t;
  using Slice = std::vector<Number>;
  struct Message {
    std::vector<Slice> parts;
    std::vector<bool> filled;
  };
  struct Fifo {
    std::deque<Message> messages;  // `sent` of them are sent, the rest is open
    std::size_t sent = 0;
  };

  // A random number for every byte of every input (splitmix64).
  static Number input(std::uint32_t rank, std::int64_t offset) {
    Number z = (Number{rank} << 40) + static_cast<Number>(offset) + 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  [[nodiscard]] Number promised(std::uint32_t rank, std::int64_t e) const {
    const std::int64_t size = promise_.size.raw();
    const auto sum = [&](std::int64_t offset) {
      Number total = 0;
      for (std::uint32_t r = 0; r < promise_.ranks; ++r) total += input(r, offset);
      return total;
    };
    switch (promise_.collective) {
      case sim::Collective::all_reduce:
      case sim::Collective::reduce: return sum(e);
      case sim::Collective::reduce_scatter: return sum(rank * size + e);
      case sim::Collective::broadcast: return input(promise_.root, e);
      case sim::Collective::all_gather:
        return input(static_cast<std::uint32_t>(e / size), e % size);
      case sim::Collective::gather: return input(static_cast<std::uint32_t>(e / size), e % size);
      case sim::Collective::scatter: return input(promise_.root, rank * size + e);
      case sim::Collective::send_recv:
        return input((rank + promise_.ranks - 1) % promise_.ranks, e);
      case sim::Collective::all_to_all: {
        const std::int64_t block = size / promise_.ranks;
        return input(static_cast<std::uint32_t>(e / block), rank * block + e % block);
      }
    }
    return 0;
  }

  // How often an operation uses this connection (twice after some redirections).
  static std::size_t uses(const std::vector<sim::MessageRef>& refs, const sim::MessageRef& ref) {
    const auto same = [&](const sim::MessageRef& r) { return r.connection == ref.connection; };
    return static_cast<std::size_t>(std::count_if(refs.begin(), refs.end(), same));
  }

  bool step(std::size_t lane) {
    if (broken_ || position_[lane] == expansion_.lanes[lane].ops.size()) return false;
    for (const sim::LaneId earlier : before_[lane])
      if (position_[earlier.index()] != expansion_.lanes[earlier.index()].ops.size()) return false;
    const sim::SliceOp& op = expansion_.lanes[lane].ops[position_[lane]];
    for (const sim::ConnectionId id : op.wait)
      if (fifos_[id.index()].sent == 0) return false;
    for (const sim::MessageRef& ref : op.recv)
      if (fifos_[ref.connection.index()].sent < uses(op.recv, ref) + ref.part.ahead) return false;
    for (const sim::MessageRef& ref : op.send) {
      const Fifo& fifo = fifos_[ref.connection.index()];
      const std::size_t slots = fifo.sent + ref.part.ahead + uses(op.send, ref);
      if (slots > fifo.messages.size() && slots > expansion_.fifo_slices) return false;
    }
    execute(lane, op);
    ++position_[lane];
    return true;
  }

  void execute(std::size_t lane, const sim::SliceOp& op) {
    const std::uint32_t rank = expansion_.lanes[lane].rank;
    Slice slice(static_cast<std::size_t>(op.size.raw()), 0);
    for (const sim::ConnectionId id : op.wait) take(fifos_[id.index()]);
    for (const sim::MessageRef& ref : op.recv) {
      if (expansion_.connections[ref.connection.index()].to != sim::LaneId(lane)) broken_ = true;
      receive(ref, slice);
    }
    if (sim::reads(op)) add(slice, load(rank, op.source, op.source_offset.raw(), op.size.raw()));
    if (op.primitive == sim::Primitive::reduce)
      add(slice, load(rank, op.target, op.target_offset.raw(), op.size.raw()));
    if (sim::writes_target(op.primitive))
      write(op.target == sim::Buffer::output ? outputs_[rank] : scratch_[rank],
            op.target_offset.raw(), slice);
    for (const sim::MessageRef& ref : op.send) {
      if (expansion_.connections[ref.connection.index()].from != sim::LaneId(lane)) broken_ = true;
      send(ref, slice);
    }
    for (const sim::ConnectionId id : op.signal) {
      fifos_[id.index()].messages.emplace_back();
      ++fifos_[id.index()].sent;
    }
  }

  static void take(Fifo& fifo) {
    fifo.messages.pop_front();
    --fifo.sent;
  }

  void receive(const sim::MessageRef& ref, Slice& slice) {
    Fifo& fifo = fifos_[ref.connection.index()];
    const Message& message = fifo.messages[ref.part.ahead];
    if (ref.part.index >= message.parts.size() || !message.filled[ref.part.index])
      broken_ = true;
    else
      add(slice, message.parts[ref.part.index]);
    if (!ref.part.more) take(fifo);
  }

  void send(const sim::MessageRef& ref, const Slice& slice) {
    Fifo& fifo = fifos_[ref.connection.index()];
    const std::size_t at = fifo.sent + ref.part.ahead;
    if (fifo.messages.size() <= at) fifo.messages.resize(at + 1);
    Message& message = fifo.messages[at];
    const std::size_t parts = std::max(message.parts.size(), ref.part.index + std::size_t{1});
    message.parts.resize(parts);
    message.filled.resize(parts);
    if (message.filled[ref.part.index])
      add(message.parts[ref.part.index], slice);
    else
      message.parts[ref.part.index] = slice;
    message.filled[ref.part.index] = true;
    if (!ref.part.more) ++fifo.sent;
  }

  Slice load(std::uint32_t rank, sim::Buffer buffer, std::int64_t at, std::int64_t size) {
    Slice slice(static_cast<std::size_t>(size), 0);
    const Slice& memory = buffer == sim::Buffer::scratch ? scratch_[rank] : outputs_[rank];
    const std::int64_t end = buffer == sim::Buffer::input
                                 ? sim::input_size(promise_, rank).raw()
                                 : static_cast<std::int64_t>(memory.size());
    if (size > 0 && (at < 0 || at + size > end)) broken_ = true;
    for (std::int64_t e = 0; e < size && !broken_; ++e)
      slice[static_cast<std::size_t>(e)] = buffer == sim::Buffer::input
                                               ? input(rank, at + e)
                                               : memory[static_cast<std::size_t>(at + e)];
    return slice;
  }

  void add(Slice& total, const Slice& more) {
    if (total.size() != more.size()) {
      broken_ = true;
      return;
    }
    for (std::size_t e = 0; e < total.size(); ++e) total[e] += more[e];
  }

  void write(Slice& memory, std::int64_t at, const Slice& slice) {
    if (slice.empty()) return;
    const auto size = static_cast<std::int64_t>(slice.size());
    if (at < 0 || at + size > static_cast<std::int64_t>(memory.size())) {
      broken_ = true;
      return;
    }
    std::copy(slice.begin(), slice.end(), memory.begin() + at);
  }

  const sim::Expansion& expansion_;
  const sim::Promise& promise_;
  std::vector<std::vector<sim::LaneId>> before_;  // by lane: those of lower batches
  std::vector<Fifo> fifos_;                       // by connection
  std::vector<Slice> outputs_, scratch_;          // by rank
  std::vector<std::size_t> position_;             // by lane
  bool broken_ = false;
};

// What is refused may be right in the end all the same (a byte written wrong first); counting those
// costs a run with numbers for every mutation.
enum class CountStricter { no, yes };

struct MutationCounts {
  std::int64_t refused = 0;
  std::int64_t equivalent = 0;  // accepted, and the numbers agree
  std::int64_t stricter = 0;    // of the refused: the numbers were right in the end
  std::vector<std::string> wrongly_accepted;

  MutationCounts& operator+=(const MutationCounts& other) {
    refused += other.refused;
    equivalent += other.equivalent;
    stricter += other.stricter;
    wrongly_accepted.insert(wrongly_accepted.end(), other.wrongly_accepted.begin(),
                            other.wrongly_accepted.end());
    return *this;
  }
};

class Mutator {
 public:
  Mutator(sim::Expansion expansion, const sim::Promise& promise, CountStricter stricter)
      : expansion_(std::move(expansion)), promise_(promise), stricter_(stricter) {}

  MutationCounts run() {
    for (std::size_t lane = 0; lane < expansion_.lanes.size(); ++lane)
      for (std::size_t i = 0; i < expansion_.lanes[lane].ops.size(); ++i) mutate(lane, i);
    return counts_;
  }

 private:
  using Ops = std::vector<sim::SliceOp>;

  void mutate(std::size_t lane, std::size_t i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    judge(lane, "drop", i, [&](Ops& ops) { ops.erase(ops.begin() + at); });
    judge(lane, "duplicate", i, [&](Ops& ops) {
      const sim::SliceOp copy = ops[i];
      ops.insert(ops.begin() + at, copy);
    });
    if (i + 1 < expansion_.lanes[lane].ops.size())
      judge(lane, "swap", i, [&](Ops& ops) { std::swap(ops[i], ops[i + 1]); });
    for (const std::int64_t by : {-1, 1}) {
      if (sim::reads(expansion_.lanes[lane].ops[i]))
        judge(lane, "shift source of", i,
              [&](Ops& ops) { ops[i].source_offset += sim::bytes(by); });
      if (sim::writes_target(expansion_.lanes[lane].ops[i].primitive))
        judge(lane, "shift target of", i,
              [&](Ops& ops) { ops[i].target_offset += sim::bytes(by); });
    }
    for (const auto refs : {&sim::SliceOp::recv, &sim::SliceOp::send}) {
      redirect(lane, i, refs);
      change_parts(lane, i, refs);
    }
    for (const auto signals : {&sim::SliceOp::wait, &sim::SliceOp::signal})
      if (!(expansion_.lanes[lane].ops[i].*signals).empty())
        judge(lane, "drop signal of", i, [&](Ops& ops) { (ops[i].*signals).pop_back(); });
  }

  void change_parts(std::size_t lane, std::size_t i,
                    std::vector<sim::MessageRef> sim::SliceOp::*refs) {
    const std::size_t count = (expansion_.lanes[lane].ops[i].*refs).size();
    for (std::size_t k = 0; k < count; ++k) {
      if ((expansion_.lanes[lane].ops[i].*refs)[k].part.whole()) continue;
      judge(lane, "next part of", i, [&](Ops& ops) { ++(ops[i].*refs)[k].part.index; });
      judge(lane, "close or open", i, [&](Ops& ops) {
        sim::MessagePart& part = (ops[i].*refs)[k].part;
        part.more = part.ahead > 0 || !part.more;
      });
    }
  }

  void redirect(std::size_t lane, std::size_t i, std::vector<sim::MessageRef> sim::SliceOp::*refs) {
    const std::size_t count = (expansion_.lanes[lane].ops[i].*refs).size();
    for (std::size_t k = 0; k < count; ++k)
      for (std::uint32_t c = 0; c < expansion_.connections.size(); ++c) {
        const sim::ConnectionId other(c);
        if ((expansion_.lanes[lane].ops[i].*refs)[k].connection == other) continue;
        judge(lane, "redirect", i, [&](Ops& ops) { (ops[i].*refs)[k].connection = other; });
      }
  }

  template <typename Change>
  void judge(std::size_t lane, const char* what, std::size_t i, Change&& change) {
    const Ops original = expansion_.lanes[lane].ops;
    change(expansion_.lanes[lane].ops);
    const bool accepted = sim::check_dataflow(expansion_, promise_).ok();
    const bool right = (accepted || stricter_ == CountStricter::yes) &&
                       NumberRun(expansion_, promise_).keeps_promise();
    ++(accepted ? counts_.equivalent : counts_.refused);
    if (!accepted && right) ++counts_.stricter;
    if (accepted && !right)
      counts_.wrongly_accepted.push_back(std::string(what) + " lane " + std::to_string(lane) + " " +
                                         sim::to_text(original[i]));
    expansion_.lanes[lane].ops = original;
  }

  sim::Expansion expansion_;
  sim::Promise promise_;
  CountStricter stricter_;
  MutationCounts counts_;
};

// All single mutations of an expansion that keeps its promise.
inline MutationCounts run_mutations(const sim::Expansion& expansion, const sim::Promise& promise,
                                    CountStricter stricter) {
  return Mutator(expansion, promise, stricter).run();
}

}  // namespace railyard::tests
