// IntervalMap<T>: which T belongs to which bytes; disjoint half-open intervals, gaps allowed. A T
// must hold for every byte of its interval alike, so that splitting one changes nothing. O(log
// pieces + pieces touched).
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace railyard::sim {

template <typename T>
class IntervalMap {
 public:
  struct Piece {
    std::int64_t end = 0;
    T value{};
  };
  using Pieces = std::map<std::int64_t, Piece>;  // by begin

  // Calls visit(begin, end, T&) for what is known of [begin, end), in order, splitting at its ends.
  template <typename Visit>
  void for_each(std::int64_t begin, std::int64_t end, Visit&& visit) {
    if (begin >= end) return;
    split(begin);
    split(end);
    for (auto it = pieces_.lower_bound(begin); it != pieces_.end() && it->first < end; ++it)
      visit(it->first, it->second.end, it->second.value);
  }

  // Gives `value` to those bytes of [begin, end) that have none.
  void fill_gaps(std::int64_t begin, std::int64_t end, const T& value) {
    auto next = pieces_.lower_bound(begin);
    if (next != pieces_.begin() && std::prev(next)->second.end > begin) --next;
    while (begin < end) {
      const std::int64_t gap_end = next == pieces_.end() || next->first > end ? end : next->first;
      if (begin < gap_end) pieces_.emplace_hint(next, begin, Piece{gap_end, value});
      if (next == pieces_.end()) return;
      begin = next->second.end;
      ++next;
    }
  }

  [[nodiscard]] const Pieces& pieces() const { return pieces_; }

 private:
  void split(std::int64_t at) {
    auto it = pieces_.lower_bound(at);
    if (it == pieces_.begin()) return;
    --it;
    if (it->second.end <= at) return;
    pieces_.emplace(at, it->second);
    it->second.end = at;
  }

  Pieces pieces_;
};

}  // namespace railyard::sim
