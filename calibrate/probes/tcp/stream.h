// One stream cell: threads that fill sockets, and threads that empty and count them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/probes/common/socket.h"

namespace railyard::probe {

struct StreamCell {
  std::int64_t sockets = 1, threads = 1, bytes = 0;
  std::int64_t window_us = 0, windows = 0, warm_us = 0;  // how the receiver reads its counter
};

// Bytes that arrived in a window of that length, from one arrival to another.
struct Reading {
  std::int64_t bytes, nanoseconds;
};

std::string to_text(const StreamCell& cell);
StreamCell stream_cell_of(const std::string& text);  // throws ProbeError
std::string to_text(const std::vector<Reading>& readings);
std::vector<Reading> readings_of(const std::string& text);

// Sends until `enough` returns, then ends every stream.
void send_stream(const std::vector<Socket>& sockets, const StreamCell& cell,
                 const std::function<void()>& enough);

// Receives until every stream ends; calls `done` with the readings while data still flows.
void receive_stream(const std::vector<Socket>& sockets, const StreamCell& cell,
                    const std::function<void(const std::vector<Reading>&)>& done);

}  // namespace railyard::probe
