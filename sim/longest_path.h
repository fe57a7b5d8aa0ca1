// The second engine: when every slice operation of a schedule runs if nothing is shared. Obvious
// and slow (O(expansion), one graph node per event): the oracle for the fluid engine, which must
// agree to the picosecond where no resource is shared and is never faster.
//
// Equations. All times are integer picoseconds. T(b, r) = transfer_time(b, r), and 0 when r = 0 (no
// limit). A slice operation moves `size` payload bytes; w_c(b) = wire_bytes of connection c.
// r_c = min(cap of c, capacities of c's route; with several queue pairs, of the links that all of
// them pass), 0 when there are none. Staged: r_c leaves out the cap (the lane fed the FIFO at `cap`
// before).
//
//   start = max(end of the lane's previous operation (for the first: rank_start, and the end of all
//               lanes of lower batches of its (rank, channel));
//               data(m) of every incoming slice m; credit(k) of every outgoing slice k)
//   begin = start + op_overhead + T(w(size), rate of the lane's flow in a switch, if it is in one)
//   An operation has one *leg* per outgoing connection c, or one local leg if it sends nothing:
//     direct c:  rate r_c,        work w_c(size)     staged c:  rate cap of c, work w_c(size)
//                (of a slice in parts: w_c(bytes by which the operation lengthens it))
//     local:     rate local_rate, work size
//   leg end = max(begin + T(work, rate); begin + keep_time(size), if it sends and keeps;
//                 poll_time(size) + max(end of the lane's previous operation; start of the
//                 sender's + latency, if direct), if it receives;
//                 tail(m) + T(grain work, rate) for every cut-through incoming slice m)
//     grain work = w_c(min(grain of m's connection, size)); local: min(grain, size)
//   end   = max of leg ends
//
//   Slice on a direct connection c:
//     tail = leg end + latency              head = begin + T(w_c(min(grain, size)), r_c) + latency
//     data = tail (store and forward: grain = 0), or head (cut-through: grain > 0)
//   Slice k on a staged connection c (its grain is ignored; each stage is serial per connection):
//     posted(k)   = max(leg end, posted(k-1)) + send_service_time(c, w_c(size))
//     wired(k)    = max(posted(k), wired(k-1), cleared(k)) + T(w_c(size), r_c)
//     tail = data = max(wired(k) + latency, tail(k-1)) + recv_service_time(c, w_c(size))
//   Free slots, none needed for the first F = fifo_slices slices:
//     direct c:  credit(k)  = end of the receiver's operation on slice k - F, + credit_latency
//     staged c:  credit(k)  = wired(k - F) + completion        (the sender's FIFO)
//                cleared(k) = end of the receiver's operation on slice k - F, + credit_latency
//
// A slice in parts (MessagePart) is data once its last part is through; its slot is taken by the
// operation that writes its first, and is free when the operation that consumes it ends. A signal
// is there when the operation that gives it ends.
//
// ScheduleCosts::start is not asked for: it is part of what the caller gives as rank_start.
//
// Empty slices cost op_overhead, latency and services like any other. A proxy serves one slice at a
// time PER CONNECTION AND DIRECTION here, recv_busy and eager_interval are nobody's; the fluid
// engine has one proxy per rank, which is the same where a rank's connections are not busy at once.
// Ties: the first of the lists above is named as the reason.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/cost.h"
#include "sim/enum_table.h"
#include "sim/expand.h"
#include "sim/schedule.h"

namespace railyard::sim {

// What the time of a critical path was spent on.
enum class PathPart : std::uint8_t { rank_start, op_overhead, copy, wire, latency, proxy, credit };
template <>
struct EnumTable<PathPart> {
  static constexpr std::string_view kind = "critical path part";
  static constexpr std::array entries{
      EnumEntry{PathPart::rank_start, "rank start"},    // waiting for the last rank to call
      EnumEntry{PathPart::op_overhead, "op overhead"},  // per slice operation
      EnumEntry{PathPart::copy, "copy"},                // local and staged legs
      EnumEntry{PathPart::wire, "wire"},                // flows, and the last grain of cut-through
      EnumEntry{PathPart::latency, "latency"},          // of connections
      EnumEntry{PathPart::proxy, "proxy"},              // send_service and recv_service
      EnumEntry{PathPart::credit, "credit"}};           // credit_latency of a slot that was awaited
};
inline constexpr std::size_t kPathParts = EnumTable<PathPart>::entries.size();

// Why an operation on the critical path did not run earlier. `data_tail`: it began on the head of
// its input (cut-through) and was held by the tail.
enum class PathReason : std::uint8_t { rank_start, lane_order, batch, data, data_tail, credit };
template <>
struct EnumTable<PathReason> {
  static constexpr std::string_view kind = "critical path reason";
  static constexpr std::array entries{EnumEntry{PathReason::rank_start, "rank start"},
                                      EnumEntry{PathReason::lane_order, "lane order"},
                                      EnumEntry{PathReason::batch, "batch"},
                                      EnumEntry{PathReason::data, "data"},
                                      EnumEntry{PathReason::data_tail, "data tail"},
                                      EnumEntry{PathReason::credit, "credit"}};
};

struct CriticalStep {
  LaneId lane;
  std::uint32_t op = 0;  // index into Expansion::lanes[lane].ops
  PathReason why = PathReason::rank_start;
  Duration time{};  // start of the operation; data_tail: arrival of the tail
};

struct LongestPathResult {
  std::vector<Duration> lane_end;   // by LaneId; of a lane that does nothing: its rank's start
  std::vector<Duration> rank_end;   // by group rank: last of its lanes, or rank_start
  Duration end{};                   // last of the ranks
  std::int64_t messages = 0;        // slices sent, empty ones included
  std::vector<Bytes> link_payload;  // by LinkId
  std::vector<CriticalStep> critical_path;  // in time order; ends with the operation that ends last
  std::array<Duration, kPathParts> parts{};  // by PathPart; they sum to `end`
};

// The schedule must pass validate(). `connections` by ConnectionId, `lanes` by LaneId, positive
// `link_capacity` by LinkId, `rank_start` by group rank (empty: all zero).
LongestPathResult longest_path(const Schedule& schedule,
                               const std::vector<ConnectionCost>& connections,
                               const std::vector<LaneCost>& lanes,
                               const std::vector<Bandwidth>& link_capacity,
                               const std::vector<Duration>& rank_start);

}  // namespace railyard::sim
