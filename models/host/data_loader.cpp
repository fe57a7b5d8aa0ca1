#include "models/host/data_loader.h"

#include <algorithm>

namespace railyard::models {

sim::Duration DataLoader::wait(sim::Time now) {
  if (spec_.batch_time.count() == 0) return {};
  free_.resize(static_cast<std::size_t>(spec_.workers));
  const auto window = static_cast<std::size_t>(spec_.prefetch * spec_.workers);
  sim::Time& worker = free_[static_cast<std::size_t>(batches_ % spec_.workers)];
  sim::Time begin = worker;
  if (fetched_.size() == window) {
    begin = std::max(begin, fetched_.front());
    fetched_.pop_front();
  }
  worker = begin + spec_.batch_time;
  ++batches_;
  fetched_.push_back(std::max(now, worker));
  return fetched_.back() - now;
}

}  // namespace railyard::models
