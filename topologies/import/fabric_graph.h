// Fabric graph: switches, channel adapters (one network card of a host) and the cables between
// their ports, as a fabric tool lists them. What ibnetdiscover and SLURM's topology.conf are read
// into.
//
// Invariants, after connect(): a port leads to a port that leads back to it; port numbers of a node
// ascend; a channel adapter without a cable has no ports. Rates are what a port carries after its
// line coding, so that 4x EDR is 100 Gb/s and 4x QDR 32 Gb/s.
//
// Where a port has several LIDs (LMC > 0), the subnet manager gave each a route of its own. All of
// ours go by the base LID, and the summary says so.
//
// Source of the rates: InfiniBand Architecture Specification vol. 2, signalling rates 2.5, 5, 10
// Gb/s with 8b/10b (SDR, DDR, QDR), 10.3125, 14.0625, 25.78125 with 64b/66b (FDR10, FDR, EDR);
// HDR, NDR and XDR lanes carry 50, 100 and 200 Gb/s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/enum_table.h"
#include "sim/result.h"
#include "sim/units.h"

namespace railyard::topologies {

inline constexpr std::uint32_t kNoPeer = 0xffffffff;

enum class LaneSpeed : std::uint8_t { unknown, sdr, ddr, qdr, fdr10, fdr, edr, hdr, ndr, xdr };

enum class GraphNodeKind : std::uint8_t { fabric_switch, adapter, router };

struct GraphPort {
  std::uint32_t number = 0;
  std::uint32_t peer = kNoPeer;  // index into FabricGraph::nodes
  std::uint32_t peer_port = 0;
  std::uint16_t lanes = 0;  // 0 = unknown
  LaneSpeed speed = LaneSpeed::unknown;
  std::uint16_t lid = 0;       // of an adapter's port: its base LID
  std::uint8_t lmc = 0;        // of an adapter's port: it has 2^lmc LIDs from the base LID on
  std::uint16_t peer_lid = 0;  // as this side tells it; 0 = not told
  std::uint64_t guid = 0;      // of the port, where told
  std::size_t line = 0;        // where it was read; 0 = only the other side names it
  std::uint64_t peer_key = 0;  // of the node that this side names

  [[nodiscard]] sim::Bandwidth rate() const;  // 0 = unknown
};

struct GraphNode {
  GraphNodeKind kind = GraphNodeKind::fabric_switch;
  std::uint64_t key = 0;  // the GUID, or a number of the reader's where there are names only
  std::uint64_t system_guid = 0;
  std::string name;       // the node description: "leaf07", "host028 mlx5_0"
  std::uint16_t lid = 0;  // of a switch
  std::vector<GraphPort> ports;
  std::size_t line = 0;  // of its own block; 0 = only neighbours name it

  [[nodiscard]] const GraphPort* port(std::uint32_t number) const;
};

struct FabricGraph {
  std::string source;  // "ibnetdiscover", "SLURM topology/tree"
  std::vector<GraphNode> nodes;
  std::vector<std::string> notes;  // what was odd and how it was taken

  [[nodiscard]] std::size_t count(GraphNodeKind kind) const;
  [[nodiscard]] std::size_t cables() const;
};

// "ibnetdiscover: 12 switches, 32 adapters of 32 hosts, 64 cables (32 of 4x HDR ...)"
std::string summary(const FabricGraph& graph);

// Collects nodes and half cables while a file is read.
class GraphBuilder {
 public:
  GraphBuilder(std::string name, std::string source);

  // The node of this key, made if new.
  GraphNode& node(std::uint64_t key, GraphNodeKind kind);
  void note(std::string text);

  // Joins the half cables. A cable that one side alone names is completed and noted; a port read
  // twice or ends that contradict each other are errors with their line.
  sim::Result<FabricGraph> connect();

 private:
  sim::Result<void> sort_ports(GraphNode& node);
  sim::Result<void> join(std::uint32_t at, std::size_t port);
  void add_far_end(std::uint32_t at, std::size_t port);
  void agree_on_rate(GraphPort& a, GraphPort& b);
  void note_oddities();

  std::string name_;
  FabricGraph graph_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;  // key -> node
  std::unordered_map<std::uint64_t, std::size_t> ports_;    // node, number -> place in its ports
  std::size_t one_sided_ = 0;
  std::vector<std::string> one_sided_examples_;
  std::size_t unequal_rates_ = 0;
  std::size_t more_notes_ = 0;
};

}  // namespace railyard::topologies

namespace railyard::sim {
template <>
struct EnumTable<topologies::LaneSpeed> {
  static constexpr std::string_view kind = "lane speed";
  static constexpr std::array entries{EnumEntry{topologies::LaneSpeed::unknown, "???"},
                                      EnumEntry{topologies::LaneSpeed::sdr, "SDR"},
                                      EnumEntry{topologies::LaneSpeed::ddr, "DDR"},
                                      EnumEntry{topologies::LaneSpeed::qdr, "QDR"},
                                      EnumEntry{topologies::LaneSpeed::fdr10, "FDR10"},
                                      EnumEntry{topologies::LaneSpeed::fdr, "FDR"},
                                      EnumEntry{topologies::LaneSpeed::edr, "EDR"},
                                      EnumEntry{topologies::LaneSpeed::hdr, "HDR"},
                                      EnumEntry{topologies::LaneSpeed::ndr, "NDR"},
                                      EnumEntry{topologies::LaneSpeed::xdr, "XDR"}};
};
}  // namespace railyard::sim
