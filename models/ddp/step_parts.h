// Parts of a rank's program that step.cpp and join.cpp share.
#pragma once

#include <vector>

#include "models/ddp/join.h"
#include "models/ddp/step.h"

namespace railyard::models {

// The reductions of one iteration: when each is over on the communication stream.
struct Reductions {
  std::vector<sim::GpuEventId> buckets;
  std::vector<sim::GpuEventId> unused;  // the bitmap's
};

// The group's stream waits for what `stream` has done so far, then runs the collective; `ready` is
// that event. An invalid plan is nothing.
struct Launch {
  sim::PlanId plan;
  std::uint32_t name = 0;
  sim::StreamId stream;
};
sim::Task launch_collective(DdpRank& rank, Launch what, sim::GpuEventId& ready);

sim::Task rebuild_buckets(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls);
sim::Task broadcast_buffers(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls);
// The hook of bucket `bucket` of iteration `iteration`, and when its future is there.
struct BucketOf {
  std::int64_t iteration = 1;
  std::size_t bucket = 0;
};
sim::Task launch_bucket(const DdpProgram& program, DdpRank& rank, BucketOf which, Reductions& done);
sim::Task launch_bitmap(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls,
                        Reductions& done);

// One of join()'s small AllReduces; the host may wait for it.
sim::Task join_call(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls,
                    JoinCall call, bool host_waits);

// Broadcasts of so many bytes in pieces, as c10d coalesces them.
void add_pieces(std::int64_t elements, std::int64_t element_size, std::uint32_t root,
                std::vector<DdpCall>& out);

}  // namespace railyard::models
