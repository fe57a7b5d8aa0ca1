// timeline.json in the Chrome trace format, for https://ui.perfetto.dev and chrome://tracing.
//
// A process per rank ("rank 0"), a thread per stream; kernels, collectives and host work are
// complete events ("ph": "X") with ts and dur in microseconds. Kept messages follow on threads of
// their sender, one per receiver and channel, and independent transfers on one more. Within a
// thread events nest or follow one another: what overlaps (messages in flight together) goes to a
// further thread of the same name. Memory: about 150 bytes per event.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/run.h"

namespace railyard::cli {

// Spans, and messages between which a rank below `ranks` sends.
std::string timeline_json(const scenarios::RunResult& result, std::uint32_t ranks);

}  // namespace railyard::cli
