// InPlaceWatch: would the schedule still be right if input and output were one buffer? It is unsafe
// if a write of the output changes a byte of the input whose read need not happen before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/happens_before.h"
#include "sim/interval_map.h"

namespace railyard::sim {

class InPlaceWatch {
 public:
  // `order` is told of every operation first, and outlives this.
  InPlaceWatch(const Expansion& expansion, const HappensBefore& order);

  // For every operation its reads, then its writes. Offsets are in the common buffer.
  // `aligned`: it reads and writes every byte at the same place of the common buffer, if it does
  // both.
  void begin(bool aligned) { aligned_ = aligned; }
  void read(std::int64_t begin, std::int64_t end);
  void destroy(std::int64_t begin, std::int64_t end);  // a write that changes the bytes

  // The first danger found; empty if none.
  [[nodiscard]] const std::string& violation() const { return violation_; }

 private:
  [[nodiscard]] bool happened_before_now(Access access) const;
  void report(std::int64_t begin, std::int64_t end, Access reader, Access writer);

  const Expansion& expansion_;
  const HappensBefore& order_;
  std::vector<IntervalMap<std::vector<Access>>> readers_;  // by rank; the last read of each lane
  std::vector<IntervalMap<Access>> destroyed_;             // by rank
  bool aligned_ = true;
  std::string violation_;
};

}  // namespace railyard::sim
