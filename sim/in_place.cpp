#include "sim/in_place.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard::sim {

InPlaceWatch::InPlaceWatch(const Expansion& expansion, const HappensBefore& order)
    : expansion_(expansion),
      order_(order),
      readers_(expansion.ranks),
      destroyed_(expansion.ranks) {}

bool InPlaceWatch::happened_before_now(Access access) const {
  if (access == order_.now()) return aligned_;
  return order_.ordered(access);
}

void InPlaceWatch::report(std::int64_t begin, std::int64_t end, Access reader, Access writer) {
  if (!violation_.empty()) return;
  violation_ = fmt::format(
      "rank {} byte [{},{}) of the common buffer: operation {} of lane {} writes output over input "
      "that operation {} of lane {} need not have read yet",
      expansion_.lanes[order_.now().lane.index()].rank, begin, end, writer.op, writer.lane.value(),
      reader.op, reader.lane.value());
}

void InPlaceWatch::read(std::int64_t begin, std::int64_t end) {
  const std::uint32_t rank = expansion_.lanes[order_.now().lane.index()].rank;
  destroyed_[rank].for_each(begin, end, [&](std::int64_t b, std::int64_t e, Access writer) {
    report(b, e, order_.now(), writer);
  });
  readers_[rank].fill_gaps(begin, end, {});
  const auto update = [&](std::int64_t, std::int64_t, std::vector<Access>& readers) {
    const auto mine = std::ranges::find(readers, order_.now().lane, &Access::lane);
    if (mine == readers.end())
      readers.push_back(order_.now());
    else
      mine->op = order_.now().op;
  };
  readers_[rank].for_each(begin, end, update);
}

void InPlaceWatch::destroy(std::int64_t begin, std::int64_t end) {
  const std::uint32_t rank = expansion_.lanes[order_.now().lane.index()].rank;
  const auto check = [&](std::int64_t b, std::int64_t e, const std::vector<Access>& readers) {
    for (const Access& reader : readers)
      if (!happened_before_now(reader)) report(b, e, reader, order_.now());
  };
  readers_[rank].for_each(begin, end, check);
  destroyed_[rank].fill_gaps(begin, end, order_.now());
}

}  // namespace railyard::sim
