// The paged cache of one engine, and what a transfer of some of its pages needs.
//
// Blocks are handed out from the front of a free list and come back at its end, last block first,
// as vLLM's block pool does without prefix caching. A fresh pool therefore gives neighbouring
// blocks; one that has been used up gives them in falling order. Whether transfers find neighbours
// is not assumed but follows from that.
//
//   work requests of a region: every run of blocks that lie side by side in BOTH caches is one, cut
//   into slices of at most `slice` bytes; a last slice of a quarter or less joins the one before.
//   Where only part of a block is moved (engines of different tensor parallelism), or the library
//   does not merge, every block is a run of its own.
//
// Cost: O(blocks) per request.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/units.h"

namespace railyard::models {

using KvBlockList = std::vector<std::uint32_t>;

class KvBlockPool {
 public:
  explicit KvBlockPool(std::int64_t blocks);

  [[nodiscard]] std::int64_t free() const { return static_cast<std::int64_t>(free_.size()); }
  [[nodiscard]] std::int64_t total() const { return total_; }
  // Empty if there are not so many.
  [[nodiscard]] KvBlockList allocate(std::int64_t blocks);
  void release(const KvBlockList& blocks);

 private:
  std::int64_t total_;
  std::deque<std::uint32_t> free_;
};

// Lengths, in blocks, of the runs that are neighbours in both lists; the shorter list counts.
std::vector<std::int64_t> kv_runs(const KvBlockList& from, const KvBlockList& to);

// Work requests for `size` neighbouring bytes.
std::int64_t kv_slices(sim::Bytes size, sim::Bytes slice);

}  // namespace railyard::models
