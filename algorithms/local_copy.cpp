#include "algorithms/local_copy.h"

#include <utility>

#include "algorithms/builder.h"
#include "algorithms/chunking.h"

namespace railyard::algorithms {

sim::Schedule local_copy_schedule(const sim::CollectiveCall& call) {
  ScheduleBuilder builder(call, 1);
  if (!call.in_place && call.size.raw() > 0) {
    sim::Work work;
    work.size = call.size;
    work.chunk = call.size;
    sim::Lane lane;
    lane.role = sim::LaneRole::local;
    lane.work = builder.add_work(work);
    lane.program = builder.add_program({sim::Op{.primitive = sim::Primitive::copy}});
    builder.add_lane(lane);
  }
  return std::move(builder).finish(kFifoSteps);
}

}  // namespace railyard::algorithms
