// RaceWatch: operations that touch the same bytes of one buffer, of which one writes, must be
// ordered by what they wait for. For buffers that are read and written (output and scratch); the
// run without a clock that finds no fault may have been lucky.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/happens_before.h"
#include "sim/interval_map.h"

namespace railyard::sim {

class RaceWatch {
 public:
  // Of one buffer of every rank, called `name` in texts. `order` is told of every operation first,
  // and outlives this.
  RaceWatch(const Expansion& expansion, const HappensBefore& order, std::string name);

  // By the present operation: its reads, then its writes.
  void read(std::int64_t begin, std::int64_t end);
  void write(std::int64_t begin, std::int64_t end);

  // The first pair that is not ordered; empty if none.
  [[nodiscard]] const std::string& violation() const { return violation_; }

 private:
  struct Touched {
    bool written = false;
    Access writer;
    std::vector<Access> readers;  // since then; the last of each lane
  };
  [[nodiscard]] std::uint32_t rank() const;
  void check(std::int64_t begin, std::int64_t end, Access other);

  const Expansion& expansion_;
  const HappensBefore& order_;
  std::string name_;
  std::vector<IntervalMap<Touched>> touched_;  // by rank
  std::string violation_;
};

}  // namespace railyard::sim
