#include "models/ddp/memory.h"

namespace railyard::models {

DdpMemory ddp_memory(const NeuralNetwork& network, const DdpOptions& options) {
  DdpMemory memory;
  memory.parameters = 4.0 * static_cast<double>(network.buffers().fp32_elements) +
                      8.0 * static_cast<double>(network.buffers().int64_elements);
  double trained = 0;
  for (const Parameter& parameter : network.parameters()) {
    const double size = static_cast<double>(parameter.elements) *
                        static_cast<double>(element_size(parameter.dtype));
    memory.parameters += size;
    trained += parameter.requires_grad ? size : 0;
  }
  memory.buckets = trained;
  memory.gradients = options.buckets.gradient_as_bucket_view ? 0 : trained;
  memory.optimizer = options.optimizer_states * trained;
  return memory;
}

}  // namespace railyard::models
