// Mutation test of a schedule: every single small change of its expansion is given to the data-flow
// checker, which must refuse it or be right to accept it. Right means: the changed expansion,
// executed with numbers (every input byte a random number, reduction = addition modulo 2^64) by the
// simple interpreter below, still ends with the promised sums. The interpreter shares nothing with
// sim/.
//
// Changes: drop an operation; duplicate one; swap two neighbours; redirect one slice to or from any
// other connection; shift an input or output offset by one byte either way.
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
      : expansion_(expansion), promise_(promise), fifos_(expansion.connections.size()) {
    for (std::uint32_t rank = 0; rank < promise.ranks; ++rank)
      outputs_.emplace_back(static_cast<std::size_t>(sim::output_size(promise, rank).raw()));
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
    for (const auto& fifo : fifos_) broken_ = broken_ || !fifo.empty();
    if (broken_) return false;
    for (std::uint32_t rank = 0; rank < promise_.ranks; ++rank)
      for (std::size_t e = 0; e < outputs_[rank].size(); ++e)
        if (outputs_[rank][e] != promised(rank, static_cast<std::int64_t>(e))) return false;
    return true;
  }

 private:
  using Number = std::uint64_t;
  using Slice = std::vector<Number>;

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
    const sim::SliceOp& op = expansion_.lanes[lane].ops[position_[lane]];
    for (const sim::MessageRef& ref : op.recv)
      if (fifos_[ref.connection.index()].size() < uses(op.recv, ref)) return false;
    for (const sim::MessageRef& ref : op.send)
      if (fifos_[ref.connection.index()].size() + uses(op.send, ref) > expansion_.fifo_slices)
        return false;
    execute(lane, op);
    ++position_[lane];
    return true;
  }

  void execute(std::size_t lane, const sim::SliceOp& op) {
    const std::uint32_t rank = expansion_.lanes[lane].rank;
    const std::int64_t size = op.size.raw();
    Slice slice(static_cast<std::size_t>(size), 0);
    for (const sim::MessageRef& ref : op.recv) {
      if (expansion_.connections[ref.connection.index()].to != sim::LaneId(lane)) broken_ = true;
      add(slice, fifos_[ref.connection.index()].front());
      fifos_[ref.connection.index()].pop_front();
    }
    if (sim::reads_input(op.primitive)) {
      const std::int64_t at = op.input_offset.raw();
      if (size > 0 && (at < 0 || at + size > sim::input_size(promise_, rank).raw())) broken_ = true;
      for (std::int64_t e = 0; e < size; ++e)
        slice[static_cast<std::size_t>(e)] += input(rank, at + e);
    }
    if (sim::writes_output(op.primitive)) write(rank, op.output_offset.raw(), slice);
    for (const sim::MessageRef& ref : op.send) {
      if (expansion_.connections[ref.connection.index()].from != sim::LaneId(lane)) broken_ = true;
      fifos_[ref.connection.index()].push_back(slice);
    }
  }

  void add(Slice& total, const Slice& more) {
    if (total.size() != more.size()) {
      broken_ = true;
      return;
    }
    for (std::size_t e = 0; e < total.size(); ++e) total[e] += more[e];
  }

  void write(std::uint32_t rank, std::int64_t at, const Slice& slice) {
    if (slice.empty()) return;
    const auto size = static_cast<std::int64_t>(slice.size());
    if (at < 0 || at + size > static_cast<std::int64_t>(outputs_[rank].size())) {
      broken_ = true;
      return;
    }
    std::copy(slice.begin(), slice.end(), outputs_[rank].begin() + at);
  }

  const sim::Expansion& expansion_;
  const sim::Promise& promise_;
  std::vector<std::deque<Slice>> fifos_;  // by connection
  std::vector<Slice> outputs_;            // by rank
  std::vector<std::size_t> position_;     // by lane
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
      if (sim::reads_input(expansion_.lanes[lane].ops[i].primitive))
        judge(lane, "shift input of", i, [&](Ops& ops) { ops[i].input_offset += sim::bytes(by); });
      if (sim::writes_output(expansion_.lanes[lane].ops[i].primitive))
        judge(lane, "shift output of", i,
              [&](Ops& ops) { ops[i].output_offset += sim::bytes(by); });
    }
    redirect(lane, i, &sim::SliceOp::recv);
    redirect(lane, i, &sim::SliceOp::send);
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
