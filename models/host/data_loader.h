// torch.utils.data.DataLoader: workers that prepare batches ahead of the training loop.
//
// Batch b is worker (b mod workers)'s. A worker takes `batch_time` per batch and begins its next
// one when the one before is done and fewer than workers x prefetch batches have been made but not
// yet fetched, as the loader hands out indices. All workers begin when the run does. In the steady
// state a batch comes every batch_time / workers, or as fast as the loop asks. Not modelled: what
// workers take from each other (cores, disks), pinned copies.
//
//   DataLoader loader({.batch_time = milliseconds(100), .workers = 2, .prefetch = 2});
//   co_await host.busy(loader.wait(host.now()));
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/units.h"

namespace railyard::models {

struct DataLoaderSpec {
  sim::Duration batch_time{};  // of one worker; zero: batches are always there
  std::int64_t workers = 1;
  std::int64_t prefetch = 2;  // batches per worker, as DataLoader's prefetch_factor
};

class DataLoader {
 public:
  explicit DataLoader(const DataLoaderSpec& spec) : spec_(spec) {}

  // The loop asks for its next batch; how long until it has it.
  sim::Duration wait(sim::Time now);

 private:
  DataLoaderSpec spec_;
  std::vector<sim::Time> free_;    // by worker: when its last batch was done
  std::deque<sim::Time> fetched_;  // the last workers x prefetch batches
  std::int64_t batches_ = 0;
};

}  // namespace railyard::models
