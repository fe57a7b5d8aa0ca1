// PyTorch profiler traces (Kineto, Chrome's JSON), one file per rank: the collectives that ran on
// the GPU, and how long everything else did.
//
// A collective is an NCCL kernel (ncclKernel_*, ncclDevKernel_*). Its arguments say name, group,
// elements and type since torch 2.2; in older traces the CPU operator with the same External id
// does (record_param_comms); else only the kernel's name is left, without a size. The RING_LL in a
// kernel's name is that of a merged kernel and says neither algorithm nor protocol.
//
// A kernel waits for the last rank to arrive, so its duration on one rank is no measurement of the
// network. merge_kineto() matches the k-th call of every group over the ranks' traces and takes the
// SHORTEST duration, that of the rank that came last; a mean would measure the imbalance of the
// job. Clocks of hosts are not compared. With traces of some ranks only, the shortest is an upper
// bound (a note says so).
//
// Bytes as nccl-tests counts them: the whole buffer (all-gather: what comes out).
// Read as a stream: memory O(collectives + operators that describe one), whatever the file's size.
// The text itself must be in memory; gzip is not unpacked here.
//
//   RAILYARD_ASSIGN(KinetoTrace rank0, read_kineto(text, "rank0.json"));
//   const KinetoMerge merged = merge_kineto({rank0, rank1});
//   for (const Measurement& m : measurements(merged)) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/readers/kineto_events.h"
#include "calibrate/readers/measurement.h"
#include "sim/result.h"

namespace railyard::calibrate {

struct KinetoCollective {
  std::string name;    // "allreduce", "_allgather_base", "send"; empty: only the kernel is known
  std::string kernel;  // without its arguments
  std::optional<sim::Collective> collective;  // send and recv are none
  std::string group, group_ranks;             // "0", "[0, 1]"; empty if the trace does not say
  std::int64_t group_size = -1;
  std::int64_t elements_in = -1, elements_out = -1;
  std::string dtype;                     // "Float"
  bool uneven = false;                   // all-to-all with split sizes
  std::optional<std::int64_t> bytes;     // of the whole buffer
  std::optional<std::int64_t> sequence;  // PyTorch's number of the call in its group
  std::int64_t device = -1, stream = -1;
  std::int64_t start_ns = 0, end_ns = 0;  // on the clock of this trace
};

// Whether a kernel is one of NCCL's.
bool is_nccl_kernel(std::string_view name);
// Of an element, by PyTorch's name of the type ("BFloat16"); 0 if it is unknown.
std::int64_t bytes_of_type(std::string_view type);
// The collective that PyTorch's name, or NCCL's in a kernel's, stands for.
std::optional<sim::Collective> collective_of(std::string_view text);
// The bytes of the whole buffer, from elements and type.
std::optional<std::int64_t> whole_bytes(const KinetoCollective& call);

struct KinetoTime {
  std::uint64_t count = 0;
  std::int64_t ns = 0;  // sum of durations; kernels on several streams overlap
};

struct KinetoStep {  // "ProfilerStep#3"
  std::string name;
  std::int64_t start_ns = 0, end_ns = 0;
};

struct KinetoTrace {
  std::string source;
  std::int64_t rank = -1, world_size = -1;
  std::string backend, nccl;                  // "nccl", "2.17.1"
  std::vector<std::string> devices;           // models, by id
  std::vector<KinetoCollective> collectives;  // by start
  KinetoTime compute, communication, copies;  // kernels; NCCL's; memcpy and memset
  std::vector<KinetoStep> steps;
  std::uint64_t events = 0;
  std::vector<Note> notes;
};

// Errors: gzip, another tool's file (named), JSON that breaks off (with line and column).
sim::Result<KinetoTrace> read_kineto(std::string_view text, std::string_view name);
// The same, and `also` sees every event and value: one pass for whoever wants more.
sim::Result<KinetoTrace> read_kineto_with(std::string_view text, std::string_view name,
                                          const TraceSink& also);

struct KinetoMerged {
  KinetoCollective call;  // of the rank that came last: the shortest
  std::int64_t shortest_ns = 0, longest_ns = 0;
  std::size_t traces = 0;  // in how many it was found
  std::string source;      // the trace of `call`
};

struct KinetoMerge {
  std::vector<KinetoMerged> calls;  // by group and order
  std::vector<std::string> devices;
  std::vector<Note> notes;
};

// Notes: calls that do not match between ranks (left out), ranks without a trace.
KinetoMerge merge_kineto(const std::vector<KinetoTrace>& traces);

// Calls of a known collective, size and number of ranks.
std::vector<Measurement> measurements(const KinetoMerge& merge);

}  // namespace railyard::calibrate
