// What p2pBandwidthLatencyTest (CUDA samples) prints: devices, who reaches whom, and matrices of
// bandwidth (GB/s, 1e9 bytes) and latency (microseconds) with and without peer access.
//
// Traps: the diagonal is a copy inside one GPU, of which read and write are both counted;
// "Bidirectional" figures are the sum of both directions; where peer access is not possible the
// P2P=Enabled matrices go through the host all the same (a note says which pairs). The CPU block of
// a latency matrix is how long the host takes to launch the copy: kept, not measured. Sizes are the
// program's own and not printed: absent.
//
//   RAILYARD_ASSIGN(const P2pBandwidthLog log, read_p2p_bandwidth(text, "p2p.txt"));
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/readers/copy_matrix.h"
#include "calibrate/readers/measurement.h"
#include "sim/result.h"

namespace railyard::calibrate {

struct P2pDevice {
  std::int64_t number = -1;
  std::string name, bus;  // bus "b4", hexadecimal
};

struct P2pMatrix {
  std::string title;  // "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)"
  bool latency = false, bidirectional = false, enabled = false;
  bool host_time = false;  // the CPU block of a latency matrix
  CopyMatrix matrix;
};

struct P2pBandwidthLog {
  std::string source;
  std::vector<P2pDevice> devices;
  std::vector<std::pair<std::int64_t, std::int64_t>> without_access;  // from, to
  std::vector<P2pMatrix> matrices;                                    // at least one
  std::vector<Note> notes;
};

// Errors: another tool's log (named), no matrix.
sim::Result<P2pBandwidthLog> read_p2p_bandwidth(std::string_view text, std::string_view name);

std::vector<Measurement> measurements(const P2pBandwidthLog& log);

}  // namespace railyard::calibrate
