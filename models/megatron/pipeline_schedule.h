// Megatron-Core's pipeline schedules as lists of steps, one per stage. Read next to
// core/pipeline_parallel/schedules.py:
//
//   q = 1            forward_backward_no_pipelining: F0 B0 F1 B1 ...
//   1F1B             forward_backward_pipelining_without_interleaving: min(q - stage - 1, m)
//   forwards
//                    to warm up, then a forward and a backward in turn, then the backwards left
//   interleaved      forward_backward_pipelining_with_interleaving: v chunks per stage,
//   micro-batches
//                    in groups of q; warms up with 2 (q - stage - 1) + (v - 1) q of the m v
//                    forwards
//
// Every step of communication is one call of p2p_communication.py: up to four messages at once, to
// and from both neighbours, for which the compute stream then waits; with overlap_p2p_comm
// (interleaved only) it waits no sooner than the tensor is used. Messages of one direction between
// two stages arrive in the order in which they were sent.
//
// With equal stages and free communication, the part of the ideal time m (F + B) that a stage
// stands still is (q - 1) / (m v) (Narayanan et al. 2021, section 2.2).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/result.h"

namespace railyard::models {

struct PipelineShape {
  std::int64_t stages = 1;         // q
  std::int64_t chunks = 1;         // v
  std::int64_t micro_batches = 1;  // m; interleaved: a multiple of q
  bool overlap_p2p = false;        // interleaved only
};

enum class PipelineAction : std::uint8_t { forward, backward, communicate, wait };

struct PipelineStep {
  PipelineAction action = PipelineAction::forward;
  // forward, backward: which model chunk, which micro-batch.
  std::int64_t chunk = 0;
  std::int64_t micro_batch = 0;
  // communicate: the messages. To the next stage and from the one before go activations, the other
  // way gradients.
  bool send_forward = false;
  bool recv_forward = false;
  bool send_backward = false;
  bool recv_backward = false;
  // communicate: nobody waits before a `wait` of the same direction; wait: that direction.
  bool overlapped = false;
  bool of_backward = false;
  [[nodiscard]] bool any_message() const {
    return send_forward || recv_forward || send_backward || recv_backward;
  }
};

// An order of one's own, without chunks: "F0 F1 B0 B1". What an action computed is sent with the
// call that receives what the next one needs, as 1F1B's send_forward_recv_backward does. Error: not
// every micro-batch once forward and then once backward. Whether the stages' orders fit together
// shows in the run.
sim::Result<std::vector<PipelineStep>> stated_schedule(const PipelineShape& shape,
                                                       std::int64_t stage,
                                                       const std::string& order);

// Cost: O(m v) steps.
std::vector<PipelineStep> pipeline_schedule(const PipelineShape& shape, std::int64_t stage);

}  // namespace railyard::models
