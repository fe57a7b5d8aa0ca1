// What every measurement of probe_cuda shares, and the measurements. Each adds its rows to the
// report; a cell that fails or no longer fits into the time adds a note instead. Rows, in which
// devices are CUDA's indices and "host" is pinned memory near the device that copies (labels from,
// to, device):
//
//   cuda.p2p_access, cuda.p2p_rank, cuda.p2p_atomics   what the driver says of a pair of devices
//   cuda.launch_call       host time of one asynchronous launch of an empty kernel
//   cuda.launch_interval   time between empty kernels launched one after the other
//   cuda.launch_wait       launch and wait until the host knows that it is done
//   cuda.event_record      host time of recording an event; cuda.event_interval: between two of
//                          them with nothing between
//   cuda.graph_call        host time to launch a graph of one kernel; cuda.graph_interval: time per
//                          kernel of a graph of 100
//   cuda.copy              cudaMemcpyAsync, one direction; label memory=pageable where it is
//   cuda.copy_both         the same in both directions at once; moved_bytes counts both
//   cuda.copy_all          one host copy per device, all at once; moved_bytes counts all
//   cuda.sm_copy           a copy kernel of so many blocks; label by: the device that runs it
//   cuda.reduce            first + second -> to (stores=1) or two places (stores=2); bytes of each
//   cuda.flag              one way of a ping-pong of 4-byte flags, polled where they are read;
//                          label between: blocks, devices, or gpu-host
//   cuda.gemm              an n x n x n matrix product, alone (label during=nothing) and during
//                          copies; bytes is n; cuda.slowdown: its time relative to alone
//
// Times per operation are those of operations enqueued back to back, between two events, so that a
// small one's time includes what keeps the next from starting.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/probes/common/report.h"
#include "calibrate/probes/cuda/check.h"

namespace railyard::probe {

struct Effort {
  double seconds = 0.06;  // for each cell
  std::int64_t most_samples = 40;
};

struct Session {
  Report& report;
  int devices = 0;
  std::vector<std::vector<bool>> peer;  // [from][to]: enabled
  Effort effort;
  std::chrono::steady_clock::time_point deadline;
  std::int64_t left_out = 0;  // cells that no longer fitted

  [[nodiscard]] bool connected(int from, int to) const {
    return peer[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  // Runs `cell` unless time is up; a ProbeError in it becomes a note that names it.
  void run_cell(const std::string& name, const std::function<void()>& cell);
};

// Microseconds of one `work`, which enqueues on `stream`.
Summary time_on_device(const Stream& stream, const Effort& effort,
                       const std::function<void()>& work);
// Microseconds of one call of `work` by the host's clock.
Summary time_on_host(const Effort& effort, const std::function<void()>& work);

std::string pci_bus_id(int device);   // as the kernel spells it
void find_devices(Session& session);  // throws ProbeError when there is none
void measure_launches(Session& session);
void measure_engine_copies(Session& session);
void measure_sm_copies(Session& session);
void measure_reductions(Session& session);
void measure_flags(Session& session);
void measure_interference(Session& session);

}  // namespace railyard::probe
