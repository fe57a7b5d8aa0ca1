// Every kind of message, in the spellings of the versions that have it. The lines are made up after
// NCCL's formats; each expectation is read off the line.
#include <doctest/doctest.h>

#include "tests/calibrate/nccl_log_support.h"

using namespace railyard::tests::nccl_log;  // NOLINT: a test's own names
using railyard::sim::GraphKind;
using railyard::sim::PathType;

namespace {

constexpr std::string_view kPrefix = "node1:42:43 [0] NCCL INFO ";

// The messages of one thread of rank 3, after its "Init START".
log::Log with_rank(std::string_view messages) {
  std::string text =
      "node1:42:43 [0] NCCL INFO comm 0xabc0 rank 3 nranks 16 cudaDev 0 nvmlDev 1 busId 8d000 "
      "commId 0x77 - Init START\n";
  while (!messages.empty()) {
    const std::size_t end = messages.find('\n');
    text += std::string(kPrefix) + std::string(messages.substr(0, end)) + "\n";
    messages.remove_prefix(end == std::string_view::npos ? messages.size() : end + 1);
  }
  return read(text);
}

log::Edge edge_of(std::string_view message) {
  const log::Log log = with_rank(message);
  REQUIRE_MESSAGE(log.ranks.at(0).edges.size() == 1, std::string(message));
  return log.ranks[0].edges[0];
}

}  // namespace

TEST_CASE("nccl log lines: connections in all spellings") {
  const log::Edge cumem = edge_of("Channel 12/0 : 3[0] -> 2[7] via P2P/CUMEM/read");
  CHECK(cumem.channel == 12);
  CHECK(cumem.connection == 0);
  CHECK(cumem.to == 2);
  CHECK(cumem.transport == log::Transport::p2p);
  CHECK(cumem.detail == "CUMEM/read");
  CHECK(edge_of("Channel 01 : 3[201c0] -> 7[a01d0] via P2P/IPC").connection == -1);
  CHECK(edge_of("Channel 00/1 : 3[0] -> 1[1] via P2P/indirect/2[2000]").detail ==
        "indirect/2[2000]");
  CHECK(edge_of("Channel 00/0 : 3[0] -> 1[1] via P2P/MNNVL").detail == "MNNVL");
  const log::Edge shm = edge_of("Channel 02 : 3[89000] -> 4[b2000] via direct shared memory");
  CHECK(shm.transport == log::Transport::shm);
  CHECK(shm.detail == "direct shared memory");
  CHECK(edge_of("Channel 00 : 3[0] -> 1[1] via SHM/direct/CE").detail == "direct/CE");

  const log::Edge send = edge_of("Channel 01/0 : 3[3] -> 9[1] [send] via NET/IB/1(2)/GDRDMA(PCI)");
  CHECK(send.transport == log::Transport::net);
  CHECK(send.direction == log::Direction::send);
  CHECK(send.plugin == "IB");
  CHECK(send.device == 1);
  CHECK(send.proxy == 2);
  CHECK(send.gpu_direct);
  CHECK(send.detail == "GDRDMA(PCI)");
  const log::Edge receive =
      edge_of("Channel 03 : 15[a01d0] -> 3[a01c0] [receive] via NET/AWS Libfabric/3/GDRDMA");
  CHECK(receive.plugin == "AWS Libfabric");
  CHECK(receive.from == 15);
  const log::Edge shared = edge_of("Channel 00/1 : 3[0] -> 8[0] [send] via NET/Socket/0/Shared");
  CHECK_FALSE(shared.gpu_direct);
  CHECK(shared.detail == "Shared");
  CHECK(shared.proxy == -1);
  const log::Edge rccl =
      edge_of("Channel 00/0 : 3[c1000] -> 8[0] [send] via NET/IB/0/GDRDMA comm 0x7f00 nRanks 32");
  CHECK(rccl.detail == "GDRDMA");
  const log::Edge collnet = edge_of("CollNet 05/0 : 3 [receive] via COLLNET/SHARP/2/GDRDMA");
  CHECK(collnet.transport == log::Transport::collnet);
  CHECK(collnet.from == 3);
  CHECK(collnet.to == -1);
  CHECK(edge_of("Coll 05 : 3 [send] via COLLNET/SHARP/2").device == 2);
}

TEST_CASE("nccl log lines: rings, cut ones included") {
  const log::Log log = with_rank(
      "Channel 00/02 : 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n"
      "Channel 01/02 :    0   1   2   3   4   5   6   7\n"
      "Channel 02/03 :  0  1  2  3 1...\n"
      "Channel 03/04 :  0  1  2  3 ...\n"
      "Ring 00 : 2 -> 3 -> 4");
  const log::Communicator& communicator = log.communicators.at(0);
  REQUIRE(communicator.rings.size() == 4);
  CHECK(communicator.rings[0].whole);
  CHECK_FALSE(communicator.rings[1].whole);
  CHECK(communicator.rings[1].ranks.size() == 8);
  CHECK(communicator.rings[2].ranks == Numbers{0, 1, 2, 3});  // "1..." may have been 12
  CHECK(communicator.rings[3].ranks == Numbers{0, 1, 2, 3});
  CHECK(log.ranks[0].ring_hops.at(0).prev == 2);
  CHECK(log.ranks[0].ring_hops.at(0).next == 4);
}

TEST_CASE("nccl log lines: trees, the line NCCL cuts at 1023 bytes included") {
  std::string trees = "Trees";
  for (int i = 0; trees.size() < 1100; ++i) trees += " [" + std::to_string(i) + "] 14/-1/-1->3->12";
  const std::string cut = trees.substr(0, 5 + 1022);  // "Trees" and NCCL's buffer
  const log::Log log = with_rank(cut);
  REQUIRE(log.ranks.at(0).trees.size() > 40);
  for (const log::Tree& tree : log.ranks[0].trees) CHECK(tree.up == 12);

  const log::Log both = with_rank(
      "Tree 0 : -1 -> 3 -> 4/8/-1\n"
      "Tree 8 : 12 -> 3 -> 4/-1/-1\n"
      "Trees [0] 4/8/-1->3->-1 [1] -1/-1/-1->3->2\n"
      "NVLS Trees : 19/8/-1->3->-1 19/-1/-1->3->8\n"
      "NVLS Head  0:  0  8\n"
      "NVLS Head 1: 1 9\n"
      "NVLS multicast support is not available on dev 0");
  const log::Rank& rank = both.ranks.at(0);
  REQUIRE(rank.trees.size() == 3);
  CHECK(rank.trees[0].line == 4);  // said twice: the later line
  CHECK(rank.trees[0].down == std::array<std::int64_t, 3>{4, 8, -1});
  CHECK(rank.trees[1].up == 12);
  REQUIRE(rank.nvls_trees.size() == 2);
  CHECK(rank.nvls_trees[1].up == 8);
  CHECK(rank.nvls_trees[0].down[0] == 19);
  CHECK(both.communicators.at(0).nvls_heads.at(1).ranks == Numbers{1, 9});
  CHECK(rank.nvls == false);
}

TEST_CASE("nccl log lines: graphs, old words and new ids") {
  const log::Log log = with_rank(
      "=== System : maxWidth 252.0 totalWidth 252.0 ===\n"
      "CPU/0 (1/1/2)\n"
      "+ PCI[24.0] - NIC/9A000\n"
      "              + NET[7.0] - NET/0 (9cc7/1/7.000000)\n"
      "+ PCI[24.0] - GPU/8D000 (3)\n"
      "==========================================\n"
      "GPU/8D000 :GPU/8D000 (0/5000.000000/LOC) NET/0 (3/7.000000/PHB) \n"
      "Pattern 4, crossNic 2, nChannels 2, speed 21.000000/21.500000, type C2C/P2C, sameChannels "
      "0\n"
      " 0 : NET/3 GPU/0 GPU/1 NET/2\n"
      " 1 : NET/2 GPU/1 GPU/0 NET/3\n"
      "Pattern 3, crossNic 0, nChannels 0, bw 0.000000/0.000000, type LOC/PIX, sameChannels 1\n"
      "Pattern 3, crossNic 0, nChannels 1, bw 24.000000/24.000000, type NVL/PIX, sameChannels 1\n"
      "10 : NET/1-c GPU/0-8d000 NET/1-c\n"
      "Pattern 5, crossNic 0, nChannels 0, bw 0.000000/0.000000, type NVL/DIS, sameChannels 1\n"
      "Pattern 6, crossNic 0, nChannels 0, bw 0.000000/0.000000, type NVL/PXN, sameChannels 1\n"
      "comm 0xabc0 rank 3 nRanks 16 nNodes 2 localRanks 8 localRank 3 MNNVL 0");
  const log::Rank& rank = log.ranks.at(0);
  REQUIRE(rank.system);
  CHECK(rank.system->max_bw == 252.0);
  REQUIRE(rank.system->nodes.size() == 4);
  CHECK(rank.system->nodes[2].parent == 1);
  CHECK(rank.system->nodes[2].link == "NET");
  CHECK(rank.system->nodes[3].parent == 0);
  REQUIRE(rank.system->paths.size() == 2);
  CHECK(rank.system->paths[1].hops == 3);
  CHECK(rank.system->paths[1].type == PathType::phb);

  REQUIRE(rank.graphs.size() == 5);
  CHECK(rank.graphs[0].kind == GraphKind::ring);
  CHECK(rank.graphs[0].cross_nic == 2);
  CHECK(rank.graphs[0].bw_inter == 21.5);
  CHECK(rank.graphs[0].type_inter == PathType::p2c);
  CHECK(rank.graphs[0].channels.at(1).nets == std::array<std::int64_t, 2>{2, 3});
  CHECK(rank.graphs[1].kind == GraphKind::tree);
  CHECK(rank.graphs[1].channel_count == 0);
  CHECK(rank.graphs[2].kind == GraphKind::collnet_chain);
  CHECK_FALSE(rank.graphs[2].bus_ids);
  CHECK(rank.graphs[2].channels.at(0).gpus == Numbers{3});
  CHECK(rank.graphs[2].channels.at(0).nets ==
        std::array<std::int64_t, 2>{0x10000000000000cLL, 0x10000000000000cLL});
  CHECK(rank.graphs[3].kind == GraphKind::nvls);
  CHECK(rank.graphs[3].type_inter == PathType::dis);
  CHECK(rank.graphs[4].kind == GraphKind::collnet_direct);
  CHECK(rank.node_count == 2);
  CHECK(rank.local_count == 8);
  CHECK(rank.mnnvl == 0);
}

TEST_CASE("nccl log lines: channel counts of each age, thresholds, chunk, connected, timings") {
  const auto counts = [](std::string_view message) {
    return with_rank(message).ranks.at(0).channels.value();
  };
  const auto oldest = counts("2 coll channels, 4 p2p channels, 1 p2p channels per peer");
  CHECK(oldest.coll == 2);
  CHECK(oldest.nvls == -1);
  CHECK(oldest.p2p == 4);
  const auto older =
      counts("24 coll channels, 16 nvls channels, 32 p2p channels, 8 p2p channels per peer");
  CHECK(older.nvls == 16);
  CHECK(older.collnet == -1);
  const auto newest = counts(
      "16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per "
      "peer");
  CHECK(newest.collnet == 16);
  CHECK(newest.p2p_per_peer == 2);

  const log::Log log = with_rank(
      "threadThresholds 8/8/64 | 128/8/64 | 512 | 512\n"
      "P2P Chunksize set to 131072\n"
      "Connected all rings, use ring PXN 1 GDR 0\n"
      "Connected binomial trees\n"
      "MNNVL 1 cliqueId 7ffe cliqueSize 8 cliqueRank 2\n"
      "Init timings - ncclCommInitRank: rank 3 nranks 16 total 0.35 (kernels 0.01, rest 0.04)\n"
      "comm 0xabc0 rank 3 nranks 16 cudaDev 0 busId 8d000 - Destroy COMPLETE");
  const log::Rank& rank = log.ranks.at(0);
  CHECK(rank.thread_thresholds == "8/8/64 | 128/8/64 | 512 | 512");
  CHECK(rank.p2p_chunk == 131072);
  REQUIRE(rank.connected.size() == 2);
  CHECK(rank.connected[0].what == "all rings");
  CHECK(rank.connected[0].pxn == 1);
  CHECK(rank.connected[1].what == "binomial trees");
  CHECK(rank.mnnvl == 1);
  CHECK(rank.init_seconds == doctest::Approx(0.35));
  CHECK(rank.destroyed == 8);
}

TEST_CASE("nccl log lines: calls and choices of each age") {
  const log::Log log = with_rank(
      "AllGather: opCount a sendbuff 0x1 recvbuff 0x2 count 100 datatype 9 op 0 root 0 comm 0xabc0 "
      "[nranks=16] stream 0x5\n"
      "3200 Bytes -> Algo 1 proto 2 time 15.250000\n"
      "AllGather: 208 Bytes -> Algo 6 proto 2 time 3.5\n"
      "AllReduce: 4 Bytes -> Algo NVLS_TREE proto LL128 channel{Lo..Hi}={2..15}\n"
      "AllReduce [Symmetric]: 64 Bytes -> Kernel AllReduce_AGxLL_R nchannels 4 nthreads 512 nWorks "
      "1\n"
      "AllGather [Copy Engine]: 4096 Bytes -> cudaMemcpyBatchAsync\n"
      "Send: opCount b sendbuff (nil) recvbuff 0x2 count 7 datatype 0 op 0 root 5 comm 0xabc0 "
      "[nranks=16] stream 0x5\n"
      "AlltoAll: opCount c sendbuff 0x1 recvbuff 0x2 count 7 datatype 99 op 0 root 5 comm 0xabc0 "
      "[nranks=16] stream 0x5 task 0 globalrank 3");
  REQUIRE(log.calls.size() == 3);
  CHECK(log.calls[0].op_count == 10);
  CHECK(log.calls[0].datatype == 9);
  CHECK(log.calls[0].rank == 0);
  CHECK(log.calls[1].function == log::Function::send);
  CHECK(log.calls[1].root == 5);
  CHECK(log.calls[2].function == log::Function::all_to_all);
  REQUIRE(log.choices.size() == 5);
  CHECK(log.choices[0].function == log::Function::all_gather);  // 100 bf16 from 16 ranks
  CHECK(log.choices[0].algorithm == log::Algorithm::ring);
  CHECK(log.choices[0].protocol == log::Protocol::simple);
  CHECK(log.choices[0].time == 15.25);
  CHECK(log.choices[0].call == 0);
  CHECK(log.choices[1].call == log::kNone);  // 208 bytes are not its
  CHECK(log.choices[1].algorithm == log::Algorithm::pat);
  CHECK(log.choices[2].algorithm == log::Algorithm::nvls_tree);
  CHECK(log.choices[2].protocol == log::Protocol::ll128);
  CHECK(log.choices[2].first_channel == 2);
  CHECK(log.choices[2].last_channel == 15);
  CHECK(log.choices[3].kernel == "AllReduce_AGxLL_R");
  CHECK(log.choices[3].last_channel == 3);
  CHECK_FALSE(log.choices[3].algorithm.has_value());
  CHECK(log.choices[4].kernel == "cudaMemcpyBatchAsync");
  CHECK(log.choices[4].bytes == 4096);
}

TEST_CASE("nccl log lines: no more calls are kept than asked for, all are counted") {
  std::string text;
  for (int i = 0; i < 5; ++i)
    text +=
        "n:1:1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1 datatype 7 "
        "op 0 root 0 comm 0x9 [nranks=2] stream 0x5\nn:1:1 [0] NCCL INFO 4 Bytes -> Algo 0 "
        "proto 0 time 1.0\n";
  const auto log = log::read_text(text, "test.log", {.max_calls = 2});
  REQUIRE(log.ok());
  CHECK(log.value().calls.size() == 2);
  CHECK(log.value().choices.size() == 2);
  CHECK(log.value().counts.calls == 5);
  CHECK(log.value().counts.choices == 5);
}

TEST_CASE("nccl log lines: the tuning table in one wide block") {
  const log::Log log = with_rank(
      "Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Tree/Simple |    Ring/    LL |    "
      "Ring/ "
      "LL128 |    Ring/Simple | CollNet/    LL | CollNet/ LL128 | CollNet/Simple |\n"
      " Max NThreads |            512 |            640 |            512 |            512 |         "
      "   "
      "640 |            256 |              0 |              0 |            512 |\n"
      "    Broadcast |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |     4.6/  10.0 |    "
      "12.5/   "
      "0.0 |    14.1/  20.0 |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |\n"
      "ReduceScatter |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |     5.6/  30.0 |    "
      "12.5/   "
      "0.0 |    14.1/  40.0 |     0.0/   0.0 |     0.0/   0.0 |     7.5/   0.5 |");
  const log::Tuning& tuning = log.communicators.at(0).tuning.value();
  const auto ring = std::size_t(log::Algorithm::ring);
  const auto direct = std::size_t(log::Algorithm::collnet_direct);
  const auto ll = std::size_t(log::Protocol::ll);
  const auto simple = std::size_t(log::Protocol::simple);
  CHECK(tuning.max_threads[ring][simple] == 256);
  CHECK(tuning.cells[std::size_t(log::Function::broadcast)][ring][ll]->bandwidth == 10.0);
  CHECK(tuning.cells[std::size_t(log::Function::reduce_scatter)][ring][ll]->latency == 5.6);
  CHECK(tuning.cells[std::size_t(log::Function::reduce_scatter)][direct][simple]->bandwidth == 0.5);
  CHECK_FALSE(tuning.cells[std::size_t(log::Function::all_reduce)][ring][ll].has_value());
}

TEST_CASE("nccl log lines: versions, driver, variables, networks, warnings") {
  const log::Log log = read(
      "NCCL version 2.21.5+cuda12.4\n"
      "some text RCCL version : 2.22.3-develop:abc more\n"
      "NCCL version 2.21.5+cuda12.4\n"
      "n:1:2 [0] NCCL INFO cudaDriverVersion 12040\n"
      "n:1:2 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.\n"
      "n:1:2 [0] NCCL INFO NCCL_IB_HCA set to mlx5_0\n"
      "n:1:3 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.\n"
      "n:1:3 [0] NCCL INFO NCCL_TOPO_FILE set by environment to /opt/topo v2.xml\n"
      "n:1:2 [0] NCCL INFO NET/IB : No device found.\n"
      "n:1:2 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 4 nics)\n"
      "n:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_bond_0:2/IB [RO]; OOB "
      "eth0:10.0.0.1<0>\n"
      "n:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 1 'mlx5_bond_0'\n"
      "n:1:2 [0] NCCL INFO Using network AWS Libfabric\n"
      "\n"
      "[2025-01-01 12:00:00] n:1:2 [0] transport/net_ib.cc:99 NCCL WARN NET/IB : Got completion "
      "12\n"
      "n:1:2 [0] NCCL WARN no place given\n");
  REQUIRE(log.versions.size() == 2);
  CHECK(log.versions[0].minor == 21);
  CHECK(log.versions[0].patch == 5);
  CHECK(log.versions[0].line == 1);
  CHECK(log.versions[1].rccl);
  CHECK(log.versions[1].patch == 3);
  const log::Process& process = log.processes.at(0);
  CHECK(process.driver == 12040);
  REQUIRE(process.variables.size() == 3);
  CHECK(process.variables[0].name == "NCCL_IB_TIMEOUT");
  CHECK(process.variables[0].value == "22");
  CHECK(process.variables[0].line == 5);
  CHECK(process.variables[1].value == "mlx5_0");
  CHECK(process.variables[2].value == "/opt/topo v2.xml");
  CHECK(process.provider == "efa");
  CHECK(process.network == "AWS Libfabric");
  REQUIRE(process.devices.size() == 2);
  CHECK(process.devices[1].name == "mlx5_bond_0");
  CHECK(process.devices[1].port == 2);
  CHECK(process.devices[1].link == "IB");
  CHECK(process.devices[1].gpu_direct == true);
  CHECK_FALSE(process.devices[0].gpu_direct.has_value());
  CHECK(process.relaxed_ordering);
  REQUIRE(log.warnings.size() == 2);
  CHECK(log.warnings[0].where == "transport/net_ib.cc:99");
  CHECK(log.warnings[0].text == "NET/IB : Got completion 12");
  CHECK(log.warnings[0].line == 15);
  CHECK(log.warnings[1].where.empty());
}
