#include "sim/event_queue.h"

#include <algorithm>
#include <limits>

namespace railyard::sim {
namespace {

constexpr std::uint32_t kVacant = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kInitialTable = 64;

}  // namespace

EventQueue::EventQueue() : table_(kInitialTable, Instant{0, kVacant}) {}

std::size_t EventQueue::home(std::int64_t time) const {
  const auto mixed = static_cast<std::uint64_t>(time) * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::size_t>(mixed >> 20) & (table_.size() - 1);
}

std::uint32_t EventQueue::find_or_create(Time at) {
  const std::int64_t time = at.time_since_epoch().count();
  std::size_t slot = home(time);
  while (table_[slot].bucket != kVacant && table_[slot].time != time)
    slot = (slot + 1) & (table_.size() - 1);
  memo_time_ = at;
  if (table_[slot].bucket != kVacant) return memo_bucket_ = table_[slot].bucket;

  std::uint32_t bucket = 0;
  if (free_buckets_.empty()) {
    bucket = static_cast<std::uint32_t>(buckets_.size());
    buckets_.emplace_back();
  } else {
    bucket = free_buckets_.back();
    free_buckets_.pop_back();
  }
  table_[slot] = {time, bucket};
  if (++table_used_ * 2 > table_.size()) grow_table();
  heap_.push_back({time, bucket});
  std::push_heap(heap_.begin(), heap_.end(),
                 [](const Instant& a, const Instant& b) { return a.time > b.time; });
  return memo_bucket_ = bucket;
}

void EventQueue::grow_table() {
  std::vector<Instant> old(table_.size() * 2, Instant{0, kVacant});
  old.swap(table_);
  for (const Instant& entry : old) {
    if (entry.bucket == kVacant) continue;
    std::size_t slot = home(entry.time);
    while (table_[slot].bucket != kVacant) slot = (slot + 1) & (table_.size() - 1);
    table_[slot] = entry;
  }
}

// Linear probing without tombstones: entries behind the hole move up where their home allows.
void EventQueue::erase_from_table(std::int64_t time) {
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = home(time);
  while (table_[hole].time != time || table_[hole].bucket == kVacant) hole = (hole + 1) & mask;
  for (std::size_t next = (hole + 1) & mask; table_[next].bucket != kVacant;
       next = (next + 1) & mask) {
    const std::size_t from_home = (next - home(table_[next].time)) & mask;
    if (from_home >= ((next - hole) & mask)) {
      table_[hole] = table_[next];
      hole = next;
    }
  }
  table_[hole].bucket = kVacant;
  --table_used_;
}

bool EventQueue::run_instant(std::uint32_t bucket, std::uint64_t& budget) {
  // Handlers may append to this bucket and may make buckets_ reallocate: index afresh each time.
  for (; cursor_ < buckets_[bucket].size(); ++cursor_) {
    if (budget == 0) return false;
    --budget;
    ++executed_;
    const Event event = buckets_[bucket][cursor_];
    event.handler->on_event(event.code, event.argument);
  }
  return true;
}

void EventQueue::retire_first() {
  const Instant first = heap_.front();
  std::pop_heap(heap_.begin(), heap_.end(),
                [](const Instant& a, const Instant& b) { return a.time > b.time; });
  heap_.pop_back();
  erase_from_table(first.time);
  buckets_[first.bucket].clear();
  free_buckets_.push_back(first.bucket);
  if (memo_bucket_ == first.bucket) memo_time_ = Time::min();
  cursor_ = 0;
}

EventQueue::Outcome EventQueue::run(const Limits& limits) {
  std::uint64_t budget = limits.max_events;
  for (;;) {
    // What was changed between instants (before the first event, or between two calls of run) is
    // settled first: it may bring the next instant nearer.
    if (settler_ != nullptr && cursor_ == 0) settler_->settle();
    if (heap_.empty()) return Outcome::drained;
    const Instant first = heap_.front();
    if (Time(Duration(first.time)) > limits.until) return Outcome::limit;
    if (limits.interrupted != nullptr && limits.interrupted->load(std::memory_order_relaxed))
      return Outcome::interrupted;
    if (budget == 0) return Outcome::limit;  // the clock stays at the last event that ran
    now_ = Time(Duration(first.time));
    do {
      if (!run_instant(first.bucket, budget)) return Outcome::limit;
      if (settler_ != nullptr) settler_->settle();
    } while (cursor_ < buckets_[first.bucket].size());
    retire_first();
  }
}

}  // namespace railyard::sim
