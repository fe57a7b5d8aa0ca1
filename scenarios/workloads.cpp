#include "scenarios/workloads.h"

#include <array>

#include "scenarios/scenario.h"

namespace railyard::scenarios {

Result<std::vector<NamedGroup>> Workload::own_groups(std::uint32_t) const {
  return std::vector<NamedGroup>();
}

std::span<const WorkloadKind> workload_kinds() {
  static constexpr std::array kKinds{WorkloadKind{"fsdp", decode_fsdp},
                                     WorkloadKind{"fsdp1", decode_fsdp1},
                                     WorkloadKind{"megatron", decode_megatron},
                                     WorkloadKind{"zero", decode_zero},
                                     WorkloadKind{"data_parallel", decode_data_parallel},
                                     WorkloadKind{"horovod", decode_horovod},
                                     WorkloadKind{"local_sgd", decode_local_sgd},
                                     WorkloadKind{"replay", decode_replay},
                                     WorkloadKind{"kv", decode_kv}};
  return kKinds;
}

}  // namespace railyard::scenarios
