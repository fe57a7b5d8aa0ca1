// The part of DDP's Reducer that decides when a bucket is launched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/ddp/buckets.h"

namespace railyard::models {

class Reducer {
 public:
  Reducer(std::size_t parameters, const BucketList& buckets) : pending_(buckets.size()) {
    bucket_of_.resize(parameters);
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      pending_[b] = buckets[b].parameters.size();
      for (const std::uint32_t parameter : buckets[b].parameters) bucket_of_[parameter] = b;
    }
  }
  void mark_ready(std::uint32_t parameter) { --pending_[bucket_of_[parameter]]; }
  // Launch order is strictly 0, 1, 2, ...: a complete bucket behind an incomplete one waits.
  [[nodiscard]] bool next_is_complete() const {
    return next_ < pending_.size() && pending_[next_] == 0;
  }
  std::size_t take_next() { return next_++; }

 private:
  std::vector<std::size_t> bucket_of_;
  std::vector<std::size_t> pending_;
  std::size_t next_ = 0;
};

}  // namespace railyard::models
