#include <algorithm>
#include <cctype>

#include "calibrate/readers/nccl_log_builder.h"

namespace railyard::calibrate::nccl_log {
namespace {

constexpr std::size_t kTreesBuffer = 1020;  // NCCL prints at most 1023 bytes of "Trees"

// All numbers up to the end. False if something else stands there; a row that NCCL itself cut ends
// with "...", which may have eaten digits of the last number.
bool numbers_to_end(Scanner& text, std::vector<std::int64_t>& numbers) {
  std::int64_t number = 0;
  while (true) {
    text.skip_blanks();
    if (text.done()) return !text.torn();
    if (text.literal("...")) return text.done();
    if (!text.match("%", number)) return false;
    if (text.literal("...")) return text.done();  // a digit may be missing: number is not kept
    numbers.push_back(number);
  }
}

void put_tree(std::vector<Tree>& trees, const Tree& tree) {
  for (Tree& known : trees) {
    if (known.channel != tree.channel) continue;
    known = tree;
    return;
  }
  trees.push_back(tree);
}

// What "via" names is short and plain; anything else is another program's text.
bool is_plain_detail(std::string_view text) {
  if (text.size() > 64) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("/ []()_-").find(c) != std::string_view::npos;
  });
}

// "NET/IB/0(3)/GDRDMA/Shared", after "NET/" or "COLLNET/".
bool network_device(Scanner& text, Edge& edge) {
  std::string_view plugin;
  if (!text.match("%/%", plugin, edge.device)) return false;
  edge.plugin = std::string(plugin);
  if (text.starts("(") && !text.match("(%)", edge.proxy)) return false;
  if (!text.done() && !text.starts("/")) return false;
  text.literal("/");
  edge.detail = std::string(text.rest());
  edge.gpu_direct = edge.detail.starts_with("GDRDMA");
  return true;
}

bool transport(Scanner text, Edge& edge) {
  const std::size_t suffix = text.rest().find(" comm 0x");  // RCCL
  if (suffix == std::string_view::npos && text.torn()) return false;
  text = Scanner(text.rest().substr(0, suffix), false);
  if (!is_plain_detail(text.rest())) return false;
  if (text.literal("NET/")) {
    edge.transport = Transport::net;
    return network_device(text, edge);
  }
  if (text.literal("COLLNET/")) {
    edge.transport = Transport::collnet;
    return network_device(text, edge);
  }
  edge.transport = Transport::shm;
  if (text.starts("direct shared memory")) {
    edge.detail = std::string(text.rest());
    return true;
  }
  if (!text.literal("SHM")) {
    if (!text.literal("P2P")) return false;
    edge.transport = Transport::p2p;
  }
  if (!text.literal("/")) return text.done();
  edge.detail = std::string(text.rest());
  return !edge.detail.empty();
}

struct CommWords {  // "key value" pairs after "comm 0x... rank R nranks N"
  std::int64_t device = -1, nvml = -1, nodes = -1, local_ranks = -1, local_rank = -1, mnnvl = -1;
  Hex bus_id, comm_id;
  bool has_bus_id = false, has_comm_id = false;
  std::string_view state;  // after "- "
};

// False if a value cannot be read.
bool read_comm_words(Scanner& text, CommWords& words) {
  while (!text.done()) {
    text.skip_blanks();
    if (text.literal("- ")) {
      words.state = text.rest();
      return true;
    }
    const std::string_view key = text.word();
    if (key.empty()) return text.done() && !text.torn();
    std::int64_t* number = nullptr;
    if (key == "cudaDev") number = &words.device;
    if (key == "nvmlDev") number = &words.nvml;
    if (key == "nNodes") number = &words.nodes;
    if (key == "localRanks") number = &words.local_ranks;
    if (key == "localRank") number = &words.local_rank;
    if (key == "MNNVL") number = &words.mnnvl;
    if (number != nullptr && !text.match(" %", *number)) return false;
    if (key == "busId" && !(words.has_bus_id = text.match(" %", words.bus_id))) return false;
    if (key == "commId" && !(words.has_comm_id = text.match(" %", words.comm_id))) return false;
  }
  return true;
}

void apply(const CommWords& words, Rank& rank) {
  if (words.device >= 0) rank.device = words.device;
  if (words.nvml >= 0) rank.nvml_device = words.nvml;
  if (words.nodes >= 0) rank.node_count = words.nodes;
  if (words.local_ranks >= 0) rank.local_count = words.local_ranks;
  if (words.local_rank >= 0) rank.local_rank = words.local_rank;
  if (words.mnnvl >= 0) rank.mnnvl = words.mnnvl;
  if (words.has_bus_id) rank.bus_id = words.bus_id.value;
  if (words.has_comm_id) rank.comm_id = words.comm_id.value;
}

}  // namespace

// "[ncclCommInitRank ]comm P rank R nranks N ... - Init START|Init COMPLETE|Destroy COMPLETE", and
// "comm P rank R nRanks N nNodes M localRanks L localRank l MNNVL m".
Outcome Builder::communicator(Message& message) {
  Scanner& text = message.text;
  if (!text.starts("comm ")) text.word();
  text.skip_blanks();
  Hex comm;
  std::int64_t number = -1, count = -1;
  if (!text.starts("comm 0x")) return Outcome::other;
  if (!text.match("comm % rank % nranks %", comm, number, count) &&
      !text.match("comm % rank % nRanks %", comm, number, count))
    return Outcome::torn;
  CommWords words;
  if (!read_comm_words(text, words)) return Outcome::torn;
  const bool start = words.state.starts_with("Init START");
  const bool complete = words.state.starts_with("Init COMPLETE");
  const bool destroyed = words.state.starts_with("Destroy") || words.state.starts_with("Abort");
  if (words.nodes < 0 && !start && !complete && !destroyed) return Outcome::torn;

  const std::pair<std::uint64_t, std::uint64_t> key{message.thread.process, comm.value};
  const auto known = by_comm_.find(key);
  std::size_t rank = kNone;
  if (start) {
    rank = new_rank(message);
  } else if (known != by_comm_.end()) {
    rank = known->second;
    if (!destroyed) message.thread.rank = rank;
  } else {
    rank = initialising_rank(message);
    if (log_.ranks[rank].comm != 0 ||
        (log_.ranks[rank].rank >= 0 && log_.ranks[rank].rank != number))
      rank = new_rank(message);
  }
  by_comm_[key] = rank;
  Rank& facts = log_.ranks[rank];
  facts.comm = comm.value;
  facts.rank_count = count;
  set_rank_number(rank, number);
  apply(words, facts);
  if (start) facts.start = message.line;
  if (complete) facts.complete = message.line;
  if (destroyed) facts.destroyed = message.line;
  return Outcome::fact;
}

// "Channel CC[/k] : a[dev] -> b[dev] [send] via ..." or rank 0's "Channel CC/NN : r0 r1 ...".
Outcome Builder::channel(Message& message) {
  Edge edge;
  std::string_view device;
  Scanner text = message.text;
  const bool is_edge =
      text.match("Channel %/% : %[%] -> %[%] ", edge.channel, edge.connection, edge.from, device,
                 edge.to, device) ||
      text.match("Channel % : %[%] -> %[%] ", edge.channel, edge.from, device, edge.to, device);
  if (!is_edge) return ring_list(message);
  message.text = text;
  return this->edge(message, edge);
}

Outcome Builder::collnet(Message& message) {
  Edge edge;
  Scanner& text = message.text;
  text.word();
  if (!text.match(" %/% : % ", edge.channel, edge.connection, edge.from) &&
      !text.match(" % : % ", edge.channel, edge.from))
    return Outcome::other;
  return this->edge(message, edge);
}

Outcome Builder::edge(Message& message, Edge edge) {
  Scanner& text = message.text;
  if (text.literal("[send] ")) edge.direction = Direction::send;
  if (text.literal("[receive] ")) edge.direction = Direction::receive;
  if (!text.literal("via ") || !transport(text, edge)) return Outcome::torn;
  edge.line = message.line;
  const bool receives =
      edge.direction == Direction::receive && edge.transport != Transport::collnet;
  const std::size_t rank = named_rank(message, receives ? edge.to : edge.from);
  log_.ranks[rank].edges.push_back(std::move(edge));
  return Outcome::fact;
}

Outcome Builder::ring_list(Message& message) {
  Ring ring;
  std::int64_t channels = 0;
  if (!message.text.match("Channel %/% :", ring.channel, channels)) {
    // "Channel 0: ..." of other programs, or a line that broke off.
    return message.text.torn() ? Outcome::torn : Outcome::other;
  }
  if (!numbers_to_end(message.text, ring.ranks) || ring.ranks.empty()) return Outcome::torn;
  ring.line = message.line;
  shared_[initialising_rank(message)].rings.push_back(std::move(ring));
  return Outcome::fact;
}

Outcome Builder::ring_hop(Message& message) {
  RingHop hop;
  std::int64_t own = -1;
  if (!message.text.match("Ring % : % -> % -> %", hop.channel, hop.prev, own, hop.next))
    return message.text.torn() ? Outcome::torn : Outcome::other;
  hop.line = message.line;
  initialising_rank(message);
  log_.ranks[named_rank(message, own)].ring_hops.push_back(hop);
  return Outcome::fact;
}

Outcome Builder::tree(Message& message) {
  Tree tree;
  std::int64_t own = -1;
  if (!message.text.match("Tree % : % -> % -> %/%/%", tree.channel, tree.up, own, tree.down[0],
                          tree.down[1], tree.down[2]))
    return message.text.torn() ? Outcome::torn : Outcome::other;
  tree.line = message.line;
  initialising_rank(message);
  put_tree(log_.ranks[named_rank(message, own)].trees, tree);
  return Outcome::fact;
}

// "Trees [0] d0/d1/d2->me->up [1] ...".
Outcome Builder::trees(Message& message) {
  Scanner& text = message.text;
  text.literal("Trees");
  const bool cut = text.rest().size() >= kTreesBuffer;
  std::vector<Tree> found;
  std::int64_t own = -1;
  Tree tree{.line = message.line};
  while (text.match(" [%] %/%/%->%->%", tree.channel, tree.down[0], tree.down[1], tree.down[2], own,
                    tree.up))
    found.push_back(tree);
  if (cut && !found.empty() && text.done()) found.pop_back();  // its last digit may be missing
  if (found.empty() || (!cut && !text.done())) return Outcome::torn;
  initialising_rank(message);
  Rank& rank = log_.ranks[named_rank(message, own)];
  for (const Tree& entry : found) put_tree(rank.trees, entry);
  return Outcome::fact;
}

Outcome Builder::nvls(Message& message) {
  Scanner& text = message.text;
  NvlsHead head;
  if (text.match("NVLS Head %:", head.index)) {
    if (!numbers_to_end(text, head.ranks) || head.ranks.empty()) return Outcome::torn;
    head.line = message.line;
    shared_[initialising_rank(message)].nvls_heads.push_back(std::move(head));
    return Outcome::fact;
  }
  if (text.starts("NVLS multicast support is ")) {
    if (text.torn()) return Outcome::torn;
    log_.ranks[initialising_rank(message)].nvls = !text.starts("NVLS multicast support is not ");
    return Outcome::fact;
  }
  if (!text.literal("NVLS Trees :")) return Outcome::other;
  std::array<Tree, 2> trees;
  std::int64_t own = -1;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    trees[i].channel = static_cast<std::int64_t>(i);
    trees[i].line = message.line;
    if (!text.match(" %/%/%->%->%", trees[i].down[0], trees[i].down[1], trees[i].down[2], own,
                    trees[i].up))
      return Outcome::torn;
  }
  initialising_rank(message);
  log_.ranks[named_rank(message, own)].nvls_trees.assign(trees.begin(), trees.end());
  return Outcome::fact;
}

// "MNNVL busId B fabric UUID U cliqueId C ..." and "MNNVL 1 cliqueId ...".
Outcome Builder::mnnvl(Message& message) {
  Scanner& text = message.text;
  Hex bus_id;
  std::string_view uuid, clique;
  if (text.match("MNNVL busId % fabric UUID % cliqueId % ", bus_id, uuid, clique)) {
    Rank& rank = log_.ranks[initialising_rank(message)];
    rank.bus_id = bus_id.value;
    rank.fabric = std::string(uuid) + " clique " + std::string(clique);
    return Outcome::fact;
  }
  std::int64_t on = -1;
  if (!text.match("MNNVL % cliqueId ", on)) return text.torn() ? Outcome::torn : Outcome::other;
  log_.ranks[initialising_rank(message)].mnnvl = on;
  return Outcome::fact;
}

// "16 coll channels, [16 collnet channels, ][0 nvls channels, ]16 p2p channels, 2 p2p channels per
// peer".
Outcome Builder::channel_counts(Message& message) {
  Scanner& text = message.text;
  ChannelCounts counts{.line = message.line};
  if (!text.match("% coll channels,", counts.coll)) return Outcome::other;
  if (text.rest().find(" collnet ") != std::string_view::npos &&
      !text.match(" % collnet channels,", counts.collnet))
    return Outcome::torn;
  if (text.rest().find(" nvls ") != std::string_view::npos &&
      !text.match(" % nvls channels,", counts.nvls))
    return Outcome::torn;
  if (!text.match(" % p2p channels, % p2p channels per peer", counts.p2p, counts.p2p_per_peer))
    return Outcome::torn;
  log_.ranks[any_rank(message)].channels = counts;
  return Outcome::fact;
}

Outcome Builder::thresholds(Message& message) {
  if (message.text.torn()) return Outcome::torn;
  message.text.literal("threadThresholds ");
  log_.ranks[any_rank(message)].thread_thresholds = std::string(message.text.rest());
  return Outcome::fact;
}

Outcome Builder::chunk_size(Message& message) {
  std::int64_t bytes = -1;
  if (!message.text.match("P2P Chunksize set to %", bytes)) return Outcome::torn;
  log_.ranks[any_rank(message)].p2p_chunk = bytes;
  return Outcome::fact;
}

Outcome Builder::connected(Message& message) {
  Scanner& text = message.text;
  if (!text.starts("Connected all ") && !text.starts("Connected NVLS ") &&
      !text.starts("Connected binomial "))
    return Outcome::other;
  if (text.torn()) return Outcome::torn;
  text.literal("Connected ");
  const std::string_view what = text.rest().substr(0, text.rest().find(','));
  Connected fact{.what = std::string(what), .line = message.line};
  text.literal(what);
  text.match(", use ring PXN % GDR %", fact.pxn, fact.gdr);
  log_.ranks[any_rank(message)].connected.push_back(std::move(fact));
  return Outcome::fact;
}

Outcome Builder::init_timings(Message& message) {
  std::string_view function;
  std::int64_t number = -1, count = -1;
  double seconds = 0;
  if (!message.text.match("Init timings - %: rank % nranks % total % ", function, number, count,
                          seconds))
    return Outcome::torn;
  log_.ranks[named_rank(message, number)].init_seconds = seconds;
  return Outcome::fact;
}

}  // namespace railyard::calibrate::nccl_log
