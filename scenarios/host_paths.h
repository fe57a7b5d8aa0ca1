// Where the connections of a communicator that NCCL planned stop in the memory of hosts: FIFOs in
// shared memory where two GPUs of a host do without P2P, and the buffers of the network transport
// where a NIC cannot reach a GPU's memory (no GPUDirect RDMA, sockets).
//
// Buffers lie in the memory of the CPU nearest to the GPU whose proxy uses them (NCCL binds a
// process to its GPU's CPUs): the relay's when sending by PXN, else the rank's own; a shared FIFO
// on the receiver's side (NCCL_SHM_LOCALITY=2, the default; 1 is not modelled).
//
//   HostPaths paths(plan, topology, group);
//   edge.host = paths.across(from, to, edge_nics);
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/point_to_point.h"
#include "scenarios/nccl_cluster.h"
#include "sim/collective.h"
#include "sim/topology.h"

namespace railyard::scenarios {

class HostPaths final : public algorithms::ConnectionPlan {
 public:
  // Keeps the plan, nothing of topology and group. Cost: O(links + NICs + ranks).
  HostPaths(std::shared_ptr<const GroupPlan> plan, const sim::Topology& topology,
            const sim::Group& group);

  // Sends and receives, as NCCL picks their devices. GPU-initiated ones leave by the GPU's own.
  [[nodiscard]] algorithms::NicPair hop(std::uint32_t from, std::uint32_t to,
                                        std::uint32_t channel) const override;
  // The topology's device for a network device of the rank's NodeTopology.
  [[nodiscard]] sim::DeviceId nic(std::uint32_t rank, std::int32_t net) const;
  // A GPU of the rank's NodeTopology.
  [[nodiscard]] sim::DeviceId gpu(std::uint32_t rank, std::int32_t index) const;

  // Of a connection between two ranks, with the NICs and the relay that it uses; no NICs: inside a
  // node.
  [[nodiscard]] sim::HostStops stops(std::uint32_t from, std::uint32_t to,
                                     const algorithms::NicPair& nics) const;

  // Whether some GPUs of a node exchange data by shared memory.
  [[nodiscard]] bool any_shared() const { return any_shared_; }

 private:
  [[nodiscard]] algorithms::NicPair nics_of_send(std::uint32_t from, std::uint32_t to,
                                                 std::uint32_t channel) const;
  [[nodiscard]] sim::HostStops in_node(std::uint32_t from, std::uint32_t to) const;
  // The network device of the rank's NodeTopology that a NIC is; -1: another node's.
  [[nodiscard]] std::int32_t net_of(std::uint32_t rank, sim::DeviceId nic) const;

  std::shared_ptr<const GroupPlan> plan_;
  std::vector<sim::DeviceId> cpu_;                // by device: the nearest over PCIe and C2C
  std::vector<std::uint32_t> node_of_;            // by device: of the topology
  std::vector<std::uint32_t> local_;              // by device: its number in its node
  std::vector<sim::DeviceId> gpu_;                // by rank
  std::vector<std::uint32_t> host_node_;          // by host of the plan: node of the topology
  std::vector<std::vector<sim::DeviceId>> nics_;  // by node of the topology
  bool any_shared_ = false;
};

}  // namespace railyard::scenarios
