// How Gloo's rings cut a buffer: one chunk a rank, each of k >= 2 segments, so that a segment can
// be on its way while another is added up. Source: pytorch/gloo, allreduce.cc and reduce.cc.
//
//   e       element size                     M = 1 MiB rounded down to whole elements, at least one
//   AllReduce   segments = max(ceil(bytes / M), 2 n) up to a multiple of n
//               segment  = ceil(bytes / segments) up to whole elements
//   Reduce      segment  = min(ceil(bytes / (2 n)), M) up to whole elements
//               segments = max(ceil(bytes / segment), 2 n) up to a multiple of n
//   AllGather   two halves of every rank's block; a block of an odd number of bytes is left whole
//               here, where the library's halves differ by one
//
// Units: bytes. Invariant: segments x segment >= bytes; the last segments may be short or empty.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithms/shape.h"

namespace railyard::algorithms::gloo {

inline constexpr std::int64_t kMaxSegment = std::int64_t{1} << 20;
inline constexpr std::uint32_t kInFlight = 2;  // segments that a rank sends or awaits at once

struct Segments {
  std::int64_t size = 0;        // of one
  std::uint32_t per_chunk = 2;  // of a rank's chunk
  std::uint32_t count = 0;      // of all chunks
};

namespace detail {
constexpr std::int64_t largest_segment(std::int64_t element) {
  return element * std::max<std::int64_t>(1, kMaxSegment / element);
}
constexpr Segments segments_of(std::int64_t size, std::int64_t count, std::int64_t ranks) {
  return {size, static_cast<std::uint32_t>(count / ranks), static_cast<std::uint32_t>(count)};
}
}  // namespace detail

constexpr Segments all_reduce_segments(std::int64_t total, std::int64_t element,
                                       std::int64_t ranks) {
  const std::int64_t most = div_up(total, detail::largest_segment(element));
  const std::int64_t count = align_up(std::max(most, 2 * ranks), ranks);
  return detail::segments_of(align_up(div_up(total, count), element), count, ranks);
}

constexpr Segments reduce_segments(std::int64_t total, std::int64_t element, std::int64_t ranks) {
  const std::int64_t share = div_up(total, 2 * ranks);
  const std::int64_t size = align_up(std::min(share, detail::largest_segment(element)), element);
  const std::int64_t count = align_up(std::max(div_up(total, size), 2 * ranks), ranks);
  return detail::segments_of(size, count, ranks);
}

constexpr Segments all_gather_segments(std::int64_t block, std::int64_t ranks) {
  const std::int64_t parts = block % 2 == 0 ? 2 : 1;
  return detail::segments_of(block / parts, parts * ranks, ranks);
}

}  // namespace railyard::algorithms::gloo
