#include "sim/races.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace railyard::sim {

RaceWatch::RaceWatch(const Expansion& expansion, const HappensBefore& order, std::string name)
    : expansion_(expansion), order_(order), name_(std::move(name)), touched_(expansion.ranks) {}

std::uint32_t RaceWatch::rank() const { return expansion_.lanes[order_.now().lane.index()].rank; }

void RaceWatch::check(std::int64_t begin, std::int64_t end, Access other) {
  if (!violation_.empty() || order_.ordered(other)) return;
  const Access now = order_.now();
  violation_ = fmt::format(
      "rank {} {} [{},{}): operation {} of lane {} and operation {} of lane {} touch it in no "
      "certain order",
      rank(), name_, begin, end, other.op, other.lane.value(), now.op, now.lane.value());
}

void RaceWatch::read(std::int64_t begin, std::int64_t end) {
  IntervalMap<Touched>& map = touched_[rank()];
  map.fill_gaps(begin, end, {});
  map.for_each(begin, end, [&](std::int64_t b, std::int64_t e, Touched& touched) {
    if (touched.written) check(b, e, touched.writer);
    const auto mine = std::ranges::find(touched.readers, order_.now().lane, &Access::lane);
    if (mine == touched.readers.end())
      touched.readers.push_back(order_.now());
    else
      *mine = order_.now();
  });
}

void RaceWatch::write(std::int64_t begin, std::int64_t end) {
  IntervalMap<Touched>& map = touched_[rank()];
  map.fill_gaps(begin, end, {});
  map.for_each(begin, end, [&](std::int64_t b, std::int64_t e, Touched& touched) {
    if (touched.written) check(b, e, touched.writer);
    for (const Access& reader : touched.readers) check(b, e, reader);
    touched = {true, order_.now(), {}};
  });
}

}  // namespace railyard::sim
