#include "sim/promise.h"

#include <utility>

#include "sim/schedule.h"

namespace railyard::sim {

Promise promise_of(const Schedule& schedule) {
  const CollectiveCall& call = schedule.call;
  return {call.collective, schedule.ranks, call.size, call.root, call.in_place};
}

Bytes input_size(const Promise& promise, std::uint32_t rank) {
  switch (promise.collective) {
    case Collective::reduce_scatter: return promise.size * promise.ranks;
    case Collective::broadcast: return rank == promise.root ? promise.size : bytes(0);
    case Collective::scatter: return rank == promise.root ? promise.size * promise.ranks : bytes(0);
    default: return promise.size;
  }
}

Bytes output_size(const Promise& promise, std::uint32_t rank) {
  switch (promise.collective) {
    case Collective::all_gather: return promise.size * promise.ranks;
    case Collective::reduce: return rank == promise.root ? promise.size : bytes(0);
    case Collective::gather: return rank == promise.root ? promise.size * promise.ranks : bytes(0);
    default: return promise.size;
  }
}

Bytes input_shift(const Promise& promise, std::uint32_t rank) {
  const bool gathers =
      promise.collective == Collective::all_gather || promise.collective == Collective::gather;
  return gathers ? promise.size * rank : bytes(0);
}

Bytes output_shift(const Promise& promise, std::uint32_t rank) {
  const bool scatters =
      promise.collective == Collective::reduce_scatter || promise.collective == Collective::scatter;
  return scatters ? promise.size * rank : bytes(0);
}

bool offers_in_place(Collective collective) {
  return collective != Collective::all_to_all && collective != Collective::send_recv;
}

std::vector<ValuePiece> promised_output(TermSets& sets, const Promise& promise,
                                        std::uint32_t rank_index) {
  const std::int64_t size = promise.size.raw();
  const std::int64_t rank = rank_index;
  const auto from_all = [&](std::int64_t offset) {
    std::vector<Term> terms;
    for (std::uint32_t r = 0; r < promise.ranks; ++r) terms.push_back({r, offset, 1});
    return sets.intern(std::move(terms));
  };
  const auto from_one = [&](std::uint32_t r, std::int64_t offset) {
    return sets.intern({{r, offset, 1}});
  };
  // Block r of the output is the piece of rank r's input that begins at `offset`.
  const auto blocks = [&](std::int64_t block, std::int64_t offset) {
    std::vector<ValuePiece> pieces;
    for (std::uint32_t r = 0; r < promise.ranks; ++r)
      pieces.push_back({r * block, (r + 1) * block, from_one(r, offset - r * block)});
    return pieces;
  };
  switch (promise.collective) {
    case Collective::all_reduce: return {{0, size, from_all(0)}};
    case Collective::reduce_scatter: return {{0, size, from_all(rank * size)}};
    case Collective::broadcast: return {{0, size, from_one(promise.root, 0)}};
    case Collective::scatter: return {{0, size, from_one(promise.root, rank * size)}};
    case Collective::send_recv:
      return {{0, size, from_one((rank_index + promise.ranks - 1) % promise.ranks, 0)}};
    case Collective::reduce:
      if (rank_index != promise.root) return {};
      return {{0, size, from_all(0)}};
    case Collective::gather:
      if (rank_index != promise.root) return {};
      return blocks(size, 0);
    case Collective::all_gather: return blocks(size, 0);
    case Collective::all_to_all: {
      const std::int64_t block = size / promise.ranks;
      return blocks(block, rank * block);
    }
  }
  return {};
}

}  // namespace railyard::sim
