// The facts of an NCCL log (nccl_log.h says how they are read and what the numbers mean).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/readers/nccl_log_names.h"
#include "sim/channel_graph.h"

namespace railyard::calibrate::nccl_log {

using Line = std::uint64_t;
inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct Version {
  std::int64_t major = -1, minor = -1, patch = -1;
  std::string text;  // "2.20.5+cuda12.4"
  bool rccl = false;
  Line line = 0;
};

struct Variable {  // an NCCL_* variable as a process saw it
  std::string name;
  std::string value;
  Line line = 0;
};

struct NetDevice {
  std::int64_t index = -1;
  std::string name;  // HCA or interface; merged ones "mlx5_0+mlx5_1"
  std::string link;  // "IB", "RoCE", "IB/SHARP"; sockets: the address
  std::int64_t port = -1;
  std::int64_t speed = -1;         // Mb/s
  std::optional<bool> gpu_direct;  // GPU Direct RDMA
};

// One process: its surroundings, common to the ranks it holds.
struct Process {
  std::string host;
  std::int64_t pid = -1;
  std::vector<Variable> variables;
  std::string network;  // "IB", "Socket", a plugin's name: what "Using network" said
  Line network_line = 0;
  std::vector<NetDevice> devices;
  bool relaxed_ordering = false;
  std::string out_of_band;   // "eth0:10.0.0.1<0>"
  std::string provider;      // libfabric's, with NET/OFI
  std::int64_t driver = -1;  // 12040 = CUDA 12.4
};

// What the search found: one "Pattern" line and its channels.
struct GraphChannel {
  // As printed: ranks, or bus ids (Graph::bus_ids); translated to ranks where the log names both.
  std::vector<std::int64_t> gpus;
  std::array<std::int64_t, 2> nets{-1, -1};  // as sim::ChannelGraph::Channel::nets
  Line line = 0;
};
struct Graph {
  std::int64_t pattern = -1;  // NCCL's number as printed
  sim::GraphKind kind = sim::GraphKind::ring;
  std::int64_t cross_nic = -1, channel_count = -1;
  double bw_intra = 0, bw_inter = 0;
  sim::PathType type_intra = sim::PathType::loc, type_inter = sim::PathType::loc;
  bool same_channels = false;
  bool bus_ids = false;  // gpus are bus ids that the log does not translate
  std::vector<GraphChannel> channels;
  Line line = 0;
};

// NCCL's picture of the machine: the tree under "=== System" and its paths.
struct SystemNode {
  std::size_t parent = kNone;  // index; roots are CPUs
  std::string link;            // "PCI", "NVL", "SYS", ... from the parent; empty for a root
  double bw = 0;
  std::string name;    // "GPU/0-18000"
  std::string detail;  // what stands in parentheses
  Line line = 0;
};
struct SystemPath {
  std::string from, to;
  std::int64_t hops = -1;
  double bw = 0;
  std::optional<sim::PathType> type;  // the verbose form has none
  Line line = 0;
};
struct System {
  double max_bw = 0, total_bw = 0;  // total 0: not printed
  std::vector<SystemNode> nodes;
  std::vector<SystemPath> paths;
  Line line = 0;
};

struct RingHop {
  std::int64_t channel = -1, prev = -1, next = -1;
  Line line = 0;
};
struct Tree {
  std::int64_t channel = -1, up = -1;
  std::array<std::int64_t, 3> down{-1, -1, -1};
  Line line = 0;
};

// A connection as its rank announced it.
struct Edge {
  std::int64_t channel = -1;
  std::int64_t connection = -1;  // 0 collectives, 1 send/recv; older logs do not say
  std::int64_t from = -1, to = -1;
  Direction direction = Direction::unsaid;
  Transport transport = Transport::p2p;
  std::string detail;  // after "via P2P/": "CUMEM/read", "direct pointer"; after "via NET/IB/0/"
  std::string plugin;  // network: "IB"
  std::int64_t device = -1;
  std::int64_t proxy = -1;  // the rank that sends for this one (PXN)
  bool gpu_direct = false;
  Line line = 0;
};

struct ChannelCounts {
  std::int64_t coll = -1, collnet = -1, nvls = -1, p2p = -1, p2p_per_peer = -1;
  Line line = 0;
};

struct Connected {  // "Connected all rings[, use ring PXN 0 GDR 1]"
  std::string what;
  std::int64_t pxn = -1, gdr = -1;
  Line line = 0;
};

struct Rank {
  std::int64_t rank = -1, local_rank = -1, rank_count = -1, node_count = -1, local_count = -1;
  std::uint64_t comm = 0, comm_id = 0;  // pointer in its process; id shared by the communicator
  std::size_t process = kNone;          // into Log::processes
  std::size_t communicator = kNone;     // into Log::communicators
  std::int64_t device = -1, nvml_device = -1;
  std::int64_t mnnvl = -1;              // 1: the NVLink domain spans hosts
  std::string fabric;                   // MNNVL: cluster UUID and clique
  std::optional<std::uint64_t> bus_id;  // NCCL's integer: 0x8d000 = 0000:8d:00.0
  std::string gpu;                      // model, where nccl-tests' header tells it
  std::vector<Graph> graphs;
  std::optional<System> system;
  std::vector<RingHop> ring_hops;
  std::vector<Tree> trees;       // the last one may be missing: NCCL cuts the line at 1023 bytes
  std::vector<Tree> nvls_trees;  // of channels 0 and 1
  std::vector<Edge> edges;
  std::optional<ChannelCounts> channels;
  std::vector<Connected> connected;
  std::string thread_thresholds;  // "8/8/64 | 128/8/64 | 512 | 512"
  std::int64_t p2p_chunk = -1;    // bytes
  std::optional<bool> nvls;       // multicast available
  double init_seconds = -1;
  Line start = 0, complete = 0, destroyed = 0;
};

struct Ring {
  std::int64_t channel = -1;
  std::vector<std::int64_t> ranks;
  bool whole = false;  // every rank is there: NCCL cuts long lines
  Line line = 0;
};
struct NvlsHead {
  std::int64_t index = -1;
  std::vector<std::int64_t> ranks;
  Line line = 0;
};

struct TuningCell {
  double latency = 0, bandwidth = 0;
};
struct Tuning {
  std::array<std::array<std::optional<std::int64_t>, kProtocols>, kAlgorithms> max_threads;
  std::array<std::array<std::array<std::optional<TuningCell>, kProtocols>, kAlgorithms>,
             kTunedFunctions>
      cells;  // [Function][Algorithm][Protocol]
  Line line = 0;
};

struct Communicator {
  std::uint64_t id = 0;
  bool id_known = false;
  std::int64_t rank_count = -1, node_count = -1;
  std::vector<std::string> hosts;    // in order of appearance
  std::vector<std::size_t> members;  // into Log::ranks, by rank
  std::vector<Ring> rings;           // by channel
  std::vector<NvlsHead> nvls_heads;
  std::optional<Tuning> tuning;
};

struct Call {
  Function function = Function::all_reduce;
  std::uint64_t op_count = 0;
  std::int64_t count = 0, datatype = -1, op = -1, root = -1;
  std::size_t rank = kNone;  // into Log::ranks
  Line line = 0;
};

// What NCCL chose for a call.
struct Choice {
  std::optional<Function> function;  // older lines do not name it: taken from the call before
  std::int64_t bytes = 0;            // count x element size, as printed
  std::optional<Algorithm> algorithm;
  std::optional<Protocol> protocol;
  std::string kernel;  // symmetric kernels and copy engines instead of algorithm and protocol
  double time = -1;    // NCCL's own estimate
  std::int64_t first_channel = -1, last_channel = -1;
  std::size_t rank = kNone;  // a rank of the communicator (of the thread's last call)
  std::size_t call = kNone;  // into Log::calls: the call before it, if the bytes are its own
  Line line = 0;
};

}  // namespace railyard::calibrate::nccl_log
