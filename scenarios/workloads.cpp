#include "scenarios/workloads.h"

#include <array>

namespace railyard::scenarios {

std::span<const WorkloadKind> workload_kinds() {
  static constexpr std::array kKinds{WorkloadKind{"fsdp", decode_fsdp}};
  return kKinds;
}

}  // namespace railyard::scenarios
