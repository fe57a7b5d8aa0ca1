#include "scenarios/workloads.h"

#include <array>

#include "scenarios/scenario.h"

namespace railyard::scenarios {

Result<std::vector<NamedGroup>> Workload::own_groups(std::uint32_t) const {
  return std::vector<NamedGroup>();
}

std::span<const WorkloadKind> workload_kinds() {
  static constexpr std::array kKinds{
      WorkloadKind{"fsdp", decode_fsdp}, WorkloadKind{"megatron", decode_megatron},
      WorkloadKind{"replay", decode_replay}, WorkloadKind{"kv", decode_kv}};
  return kKinds;
}

}  // namespace railyard::scenarios
