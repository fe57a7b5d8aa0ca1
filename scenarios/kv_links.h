// The ways of KV caches through the cluster: which back-end joins two ranks, through which NICs,
// and what its library takes.
//
// `auto`: NVLink inside an NVLink domain, PCIe inside a node, else RDMA. RDMA goes through the NICs
// nearest to both GPUs (or all of their nodes, `nics: all`; a piece is then dealt out to the ways
// by turns), through host memory where the machine has no GPUDirect. TCP goes through the memory of
// both hosts, at most socket_rate x sockets, socket_latency on top. PCIe where NVLink is there: by
// the host's memory, as copies do that may not use NVLink. Storage: GPU to host and into the
// storage, then the other way; it is one for all ranks.
//
// A READ (pull with NIXL) asks first: latency there and back. The work requests weigh on the NIC of
// the side that issues them: the decode rank's with NIXL's pull, else the prefill rank's.
#pragma once

#include <map>
#include <string>

#include "scenarios/kv_spec.h"
#include "scenarios/run_parts.h"

namespace railyard::scenarios {

struct KvLinks {
  std::vector<std::vector<models::KvLink>> links;  // ServingOptions::links
  std::map<models::KvBackend, std::size_t> pairs;  // of ranks, by back-end
  std::size_t nics = 0;                            // that issue work requests
};

// Errors at the pool or back-end that cannot be.
Result<KvLinks> kv_links(RunContext& context, const KvSpec& spec, models::KvTransfers& transfers);

}  // namespace railyard::scenarios
