// What a training job other than plain DDP did: its steps, and every kind of collective in the
// steady one. All of it as rank 0 saw it unless said otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/run.h"

namespace railyard::scenarios {

// The collectives of one kind and size on one group, in the steady iteration.
struct CallRow {
  sim::Collective collective = sim::Collective::all_reduce;
  bool message = false;  // from one stage to another: NCCL's send and receive
  std::string group;
  std::size_t ranks = 0;
  sim::Bytes size{};  // nccl-tests' size column
  std::int64_t count = 0;
  sim::Algorithm algorithm = sim::Algorithm::ring;
  sim::Protocol protocol = sim::Protocol::simple;
  sim::Bytes sent{};        // by one rank in all of them, the mean over the group
  sim::Duration time{};     // of all together, entry to exit
  sim::Duration waited{};   // of that: until the last rank had entered
  sim::Duration exposed{};  // of that: no kernel ran
  double busbw = 0;         // GB/s, mean, from the last rank's entry
  std::string example;      // the span's name of the first
};

struct MemoryRow {
  std::string what;
  double bytes = 0;
};

// A pipeline stage in the steady iteration, as its first rank saw it. The four parts make up the
// step.
struct StageRow {
  std::uint32_t rank = 0;
  sim::Duration compute{};  // some kernel runs
  sim::Duration waited{};   // none, and messages of neighbours are under way: the pipeline's bubble
                            // and their transfer
  sim::Duration exposed{};  // none, and other collectives are
  sim::Duration idle{};     // nothing; also the end of the bubble, behind the stage's last message
};

struct TrainingResult : StepResult {
  std::string scheme;             // "FSDP2"
  std::vector<CallRow> calls;     // in the order of their first issue
  std::vector<StageRow> stages;   // of a pipeline, in its order
  std::vector<MemoryRow> memory;  // per GPU, activations not counted
  double memory_capacity = 0;
  double sequence_length = 0;  // tokens of a sample; 0 = samples are no sequences
  double flops_per_gpu = 0;    // model FLOP/s, recomputation not counted
  double mfu = 0;              // of the peak in the compute precision
};

// GB/s by nccl-tests' convention.
double bus_bandwidth(const sim::Schedule& schedule, sim::Duration time);

}  // namespace railyard::scenarios
