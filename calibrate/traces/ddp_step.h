// A DistributedDataParallel step of a trace as what a bucket model needs: layers with the measured
// times of their forward and backward, the gradients in the order of their arrival with their
// sizes, and what the host spends around them.
//
// Read off the program's landmarks:
//   layer      an outermost forward operator with autograd sequence numbers; its backward is every
//              function of the graph with a number from its own up to the next layer's
//   gradient   a call of torch::autograd::AccumulateGrad, of the layer whose backward ran before
//   it.
//              Its size is that of its copy out of the bucket (copy_bucket_to_grad), in the same
//              order; where there are no copies (gradient_as_bucket_view) each bucket is divided
//              evenly among the gradients that arrived since the one before (a note says so)
//   bucket     an all-reduce launched by a gradient's hook
//   buffers    broadcasts before the first layer
//   optimizer  what is launched behind backward
//
// Host and GPU time of whatever is launched between two landmarks is one MeasuredRun (launches.h).
// The kernels that copy gradients into buckets and back are left to the model, as their number and
// size follow from the buckets; the host's time for them is measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/traces/gpu_trace.h"
#include "calibrate/traces/launches.h"
#include "models/nn/network.h"

namespace railyard::calibrate {

struct TracedLayer {
  std::string name;  // "conv2d 17"
  models::LayerKind kind = models::LayerKind::elementwise;
  MeasuredRun forward, backward;
  std::vector<std::size_t> gradients;  // in the order of arrival
};

struct TracedDdp {
  std::vector<TracedLayer> layers;              // in the order of forward
  std::vector<std::int64_t> gradient_elements;  // in the order of arrival
  std::string dtype;                            // PyTorch's: "Float"
  models::Buffers buffers;
  MeasuredRun start;               // up to the first layer: input, zero_grad, flattening of buffers
  MeasuredRun optimizer;           // behind backward, to the end of the step
  std::int64_t hook_ns = 0;        // host, per gradient: hook and the launch of its copy
  std::int64_t collective_ns = 0;  // host, per collective
  std::int64_t copy_back_ns = 0;   // host, per gradient copied out of its bucket
  bool bucket_view = false;        // no copies out of buckets
  std::string optimizer_name;      // "SGD"; empty if the trace does not say
  std::vector<std::int64_t> buckets;  // bytes, in the order of launch
  std::int64_t waited_ns = 0;         // host waits that are left out
  std::vector<std::string> notes;     // what could not be known
};

// Whether a step of the trace has DDP's landmarks.
bool is_ddp(const GpuTrace& trace, const TraceStep& step);

// Error: what a DDP step must have and this one has not.
sim::Result<TracedDdp> ddp_step(const GpuTrace& trace, const TraceStep& step);

}  // namespace railyard::calibrate
