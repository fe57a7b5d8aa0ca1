// A machine of one's own, as the mapping under `cluster.machine:`.
//
//   machine:
//     name: my-node
//     like: hgx-h100               # the catalogue machine that supplies what is not written here
//     numa: [{id: 0, cpus: "0-55"}, {id: 1, cpus: "56-111"}]
//     switches: [{parent: cpu0}, {parent: cpu1}]        # listed, "pcie0" and "pcie1"
//     gpus: [{parent: pcie0}, {parent: pcie1, nvlinks: 17}]
//     nics: [{parent: pcie0}, {parent: cpu1, rate: 100Gb/s, link: 15.754GB/s}]
//     nvlinks: {per_gpu: 18, rate: 25GB/s, switch: true}
//
// `link` is the rate of a device's own link to its parent where it is not the machine's; a switch's
// `links` counts x16 links (2 where it is a partition of its parent's chip). `rate` of a NIC is its
// port's. `gpus`, `numa` and `like` are required; `pairs: [[0, 1, 12]]` in `nvlinks` lists links
// between two GPUs. sm, cpu, gpu_link, pcie, smp, nic, c2c and host_bridge_per_cpu override like's.
#pragma once

#include <string>

#include "scenarios/decode.h"
#include "topologies/machine.h"

namespace railyard::scenarios {

Result<void> decode(const Place& place, topologies::MachineSpec& out);

// The keys of that mapping, indented by four; `like` supplies what is not written.
std::string machine_yaml(const topologies::MachineSpec& machine, const std::string& like);

}  // namespace railyard::scenarios
