// What is asked for: collectives, groups of ranks, channels; and the two interfaces through which
// a run turns a call into a schedule and a cost. algorithms/ implements CollectiveSource, models/
// implements CostModel (sim/cost.h), scenarios/ binds them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/enum_table.h"
#include "sim/ids.h"
#include "sim/units.h"

namespace railyard::sim {

enum class Collective {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  send_recv  // every rank sends to the next and receives from the one before
};
template <>
struct EnumTable<Collective> {
  static constexpr std::string_view kind = "collective";
  static constexpr std::array entries{EnumEntry{Collective::all_reduce, "AllReduce"},
                                      EnumEntry{Collective::all_gather, "AllGather"},
                                      EnumEntry{Collective::reduce_scatter, "ReduceScatter"},
                                      EnumEntry{Collective::broadcast, "Broadcast"},
                                      EnumEntry{Collective::reduce, "Reduce"},
                                      EnumEntry{Collective::all_to_all, "AllToAll"},
                                      EnumEntry{Collective::gather, "Gather"},
                                      EnumEntry{Collective::scatter, "Scatter"},
                                      EnumEntry{Collective::send_recv, "SendRecv"}};
};

enum class Algorithm {
  ring,
  tree,
  collnet_direct,
  collnet_chain,
  nvls,
  nvls_tree,
  pat,
  hierarchical,  // ours, not NCCL's: see algorithms/hierarchical.h
  gloo,          // what Gloo does unless told otherwise: see algorithms/gloo/
  gloo_bcube,    // its other AllReduce
  custom         // a schedule that its author wrote: see algorithms/custom/
};
template <>
struct EnumTable<Algorithm> {
  static constexpr std::string_view kind = "algorithm";
  static constexpr std::array entries{EnumEntry{Algorithm::ring, "Ring"},
                                      EnumEntry{Algorithm::tree, "Tree"},
                                      EnumEntry{Algorithm::collnet_direct, "CollNetDirect"},
                                      EnumEntry{Algorithm::collnet_chain, "CollNetChain"},
                                      EnumEntry{Algorithm::nvls, "NVLS"},
                                      EnumEntry{Algorithm::nvls_tree, "NVLSTree"},
                                      EnumEntry{Algorithm::pat, "PAT"},
                                      EnumEntry{Algorithm::hierarchical, "Hierarchical"},
                                      EnumEntry{Algorithm::gloo, "Gloo"},
                                      EnumEntry{Algorithm::gloo_bcube, "GlooBcube"},
                                      EnumEntry{Algorithm::custom, "Custom"}};
};

// `plain`: chunk = slice = one step and no protocol cost, for comparison with other simulators.
enum class Protocol { ll, ll128, simple, plain };
template <>
struct EnumTable<Protocol> {
  static constexpr std::string_view kind = "protocol";
  static constexpr std::array entries{
      EnumEntry{Protocol::ll, "LL"}, EnumEntry{Protocol::ll128, "LL128"},
      EnumEntry{Protocol::simple, "Simple"}, EnumEntry{Protocol::plain, "plain"}};
};
inline constexpr std::size_t kProtocols = EnumTable<Protocol>::entries.size();

// A member of a group: which rank of the job, on which GPU, in which node.
struct Member {
  Rank rank{};
  DeviceId gpu{};
  std::uint32_t node = 0;         // index into Topology::nodes
  std::uint32_t local_index = 0;  // of the GPU in its node
};
using Group = std::vector<Member>;  // in group-rank order

// The tree edges of one rank on one channel, as group ranks; -1 = none. NCCL allows three children.
struct TreeEdges {
  std::int32_t up = -1;
  std::array<std::int32_t, 3> down{-1, -1, -1};
};

// Where an edge's data lies in the memory of hosts on its way; each a CPU, invalid = nowhere.
struct HostStops {
  DeviceId out{};             // what the sender writes: buffers that its NIC reads, or the FIFO of
                              // the shared-memory transport
  DeviceId out_ll{};          // the same for LL, whose network buffers always lie there
  DeviceId in{};              // what the receiver reads; on its own side
  bool sockets = false;       // TCP instead of verbs
  std::uint16_t streams = 0;  // TCP streams that helper threads serve; 0 = the proxies' own one
  std::uint8_t queue_pairs = 1;  // verbs: messages take them in turn,
  bool split = false;            // or each message all of them
  bool gpu_initiated = false;    // the sender's GPU posts to its NIC, no proxy has a part in it
};

// An edge that is not straight from GPU to GPU: across nodes, with the NICs it uses on both sides,
// or through the host's memory (no NICs).
struct NetEdge {
  std::uint32_t from = 0;  // group ranks
  std::uint32_t to = 0;
  DeviceId nic_out{};
  DeviceId nic_in{};
  DeviceId relay{};  // GPU by which `from` reaches nic_out over NVLink (PXN); invalid = directly
  HostStops host{};
};

// One node's part in what switches do for a channel.
struct HeadNode {
  std::vector<std::uint32_t> ranks;  // group ranks, the chain of CollNetChain in its order
  std::vector<std::uint32_t> heads;  // those that sum for the node; as many in every node
  DeviceId nvswitch{};               // in which its GPUs meet; invalid = none
};

// The k-th heads of all nodes exchange with one another: over a tree of nodes (NVLSTree) or in the
// k-th fabric switch (CollNet).
struct Heads {
  std::vector<HeadNode> nodes;
  std::vector<TreeEdges> tree;     // by node, of nodes
  std::vector<DeviceId> switches;  // by head; empty = the fabric's switches do not sum
};

// One channel of a communicator: everything an algorithm needs to know about who talks to whom.
// A value passed in: where it comes from (rule, search, graph file) is not the algorithms' affair.
struct Channel {
  std::vector<std::uint32_t> ring;  // group ranks in ring order; ring[i] sends to ring[i + 1]
  std::vector<TreeEdges> tree;      // by group rank
  std::vector<NetEdge> net_edges;   // of ring and tree, both directions
  Heads heads;                      // for NVLS, NVLSTree, CollNet and Hierarchical
};
using Channels = std::vector<Channel>;

// One call of a collective on a group.
struct CollectiveCall {
  Collective collective = Collective::all_reduce;
  // NCCL's count x element size: AllReduce, Broadcast, Reduce the whole buffer; AllGather the
  // contribution and ReduceScatter the result of ONE rank; AllToAll what one rank sends in total;
  // Gather and Scatter one rank's block; SendRecv what one rank sends.
  Bytes size{};
  std::int64_t element_size = 4;
  std::uint32_t root = 0;  // group rank, for Broadcast, Reduce, Gather and Scatter
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  std::uint32_t max_channels = 0;  // 0 = all channels of the communicator
  // Output is input (AllGather: the input is its own block of the output; ReduceScatter likewise).
  bool in_place = false;
};

struct Schedule;  // sim/schedule.h

// A communicator's collectives as schedules. Pure: equal calls give equal schedules.
class CollectiveSource {
 public:
  virtual ~CollectiveSource() = default;
  [[nodiscard]] virtual Result<std::shared_ptr<const Schedule>> schedule(
      const CollectiveCall& call) = 0;
  // SMs (= channels) that the call occupies on every GPU while it runs.
  [[nodiscard]] virtual std::uint32_t sm_count(const Schedule& schedule) const = 0;
};

// Whether a call has a root.
bool is_rooted(Collective collective);
// Whether NCCL makes it of sends and receives, which have the protocols LL and Simple alone.
bool is_point_to_point(Collective collective);

// nccl-tests' "size" column (AllGather, ReduceScatter, Gather, Scatter: the total over ranks) and
// bus-bandwidth factor: AllReduce 2(n-1)/n; AllGather, ReduceScatter, AllToAll, Gather, Scatter
// (n-1)/n; Broadcast, Reduce, SendRecv 1.
Bytes nccl_tests_size(Collective collective, Bytes size, std::size_t ranks);
double bus_bandwidth_factor(Collective collective, std::size_t ranks);

}  // namespace railyard::sim
