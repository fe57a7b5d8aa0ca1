// The decode functions of all workloads, for the table of workloads.cpp.
#pragma once

#include "scenarios/workload.h"

namespace railyard::scenarios {

Result<std::shared_ptr<const Workload>> decode_fsdp(const Place& place);   // workload_fsdp.cpp
Result<std::shared_ptr<const Workload>> decode_fsdp1(const Place& place);  // workload_fsdp1.cpp
Result<std::shared_ptr<const Workload>> decode_megatron(const Place& place);
Result<std::shared_ptr<const Workload>> decode_zero(const Place& place);  // workload_zero.cpp
Result<std::shared_ptr<const Workload>> decode_data_parallel(const Place& place);
Result<std::shared_ptr<const Workload>> decode_horovod(const Place& place);
Result<std::shared_ptr<const Workload>> decode_local_sgd(const Place& place);
Result<std::shared_ptr<const Workload>> decode_replay(const Place& place);  // workload_replay.cpp
Result<std::shared_ptr<const Workload>> decode_kv(const Place& place);      // workload_kv.cpp

}  // namespace railyard::scenarios
