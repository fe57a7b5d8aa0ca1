// DistributedDataParallel.join(): ranks with fewer inputs than others. Read next to _DDPJoinHook in
// torch/nn/parallel/distributed.py and Join in torch/distributed/algorithms/join.py.
//
//   a rank with inputs    every forward: AllReduce of one fp32 ("not joined"; nobody waits); before
//                         the buffers are broadcast, AllReduce of one int64 that finds the rank to
//                         send them from (the HOST waits); AllReduce of one fp32 ("backward will
//                         reduce")
//   a rank that joined    the same calls in the same order, and its host waits for each; for every
//                         bucket zeros, the hook and its collectives; the bitmap of unused
//                         parameters
//   all have joined       AllReduce of one fp32, of one int64, broadcast of the whole model from
//   the
//                         last rank that had inputs
//
// Buffers come from the highest rank that still has inputs. Under no_sync() forwards exchange the
// two fp32 only. Not modelled: SyncBatchNorm and join, which PyTorch cannot do together either;
// throw_on_early_termination; divide_by_initial_world_size = false.
#pragma once

#include <array>
#include <cstdint>

#include "models/ddp/step.h"

namespace railyard::models {

// Entries of DdpCalls::join and DdpCollectives::join.
enum class JoinCall : std::uint8_t { not_joined, common_rank, will_reduce };

// What join() adds to an iteration; nothing without it.
void add_join_calls(const NeuralNetwork& network, const DdpOptions& options, std::int64_t iteration,
                    DdpCalls& calls);

// As the options say; `ranks` is their number.
Result<void> check_join(const DdpOptions& options);

// A rank that has joined, for one iteration of the others; and the end of the context.
sim::Task shadow_iteration(const DdpProgram& program, DdpRank& rank, std::int64_t iteration);
sim::Task leave_join(const DdpProgram& program, DdpRank& rank);

}  // namespace railyard::models
