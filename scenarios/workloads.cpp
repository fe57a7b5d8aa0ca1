#include "scenarios/workloads.h"

#include <array>

namespace railyard::scenarios {

std::span<const WorkloadKind> workload_kinds() {
  static constexpr std::array kKinds{WorkloadKind{"fsdp", decode_fsdp}, WorkloadKind{"kv", decode_kv}};
  return kKinds;
}

}  // namespace railyard::scenarios
