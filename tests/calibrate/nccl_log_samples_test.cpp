// The log reader on logs of the wild (samples/nccl-logs). Expected numbers were taken from the
// files with grep, not from the reader.
#include <cstdio>

#include "sim/enum_table.h"
#include "tests/calibrate/nccl_log_support.h"

using namespace railyard::tests::nccl_log;  // NOLINT: a test's own names
using railyard::sim::GraphKind;
using railyard::sim::PathType;

namespace {

struct Expected {
  const char* file;
  std::size_t ranks, communicators, rings, tree_entries, hops, edges, graphs, graph_channels;
  std::uint64_t calls, choices;
};

// Trees: entries by rank and channel.
constexpr Expected kExpected[] = {
    {"001-public-all_reduce_perf_2_gpu.log", 2, 1, 24, 48, 0, 48, 0, 0, 0, 0},
    {"002-public-all_reduce_perf_4_gpu.log", 4, 1, 24, 96, 0, 168, 0, 0, 0, 0},
    {"003-public-sendrecv_perf_2_gpu.log", 2, 1, 24, 48, 0, 112, 0, 0, 0, 0},
    {"004-issue-excerpt-nccl-1189-h20-graph-pre2.21-ids.txt", 2, 1, 0, 0, 0, 0, 1, 4, 0, 0},
    {"005-issue-excerpt-nccl-1769-gb200-mnnvl.txt", 4, 1, 0, 0, 0, 0, 0, 0, 0, 0},
    {"009-nebius-2x8-h100-mlperf-sd.log", 16, 1, 16, 256, 0, 1048, 0, 0, 0, 0},
    {"010-public-algo_topo.head2600.txt", 326, 11, 0, 0, 0, 0, 0, 0, 902, 898},
    {"011-public-log.log", 16, 1, 0, 8, 32, 0, 32, 32, 0, 0},
    {"013-public-nccl_debug.log", 2, 1, 0, 2, 0, 2, 0, 0, 0, 0},
    {"014-public-nccl_trace.head400k.log", 3, 1, 0, 2, 4, 3, 2, 1, 539, 0},
    {"017-public-nccl.log", 2, 1, 24, 48, 48, 48, 4, 48, 990, 495},
    {"019-public-test2.log", 4, 1, 4, 16, 0, 16, 0, 0, 0, 0}};

Expected count(const log::Log& log) {
  Expected found{"", log.ranks.size(), log.communicators.size(), 0, 0, 0, 0, 0, 0, 0, 0};
  for (const log::Communicator& communicator : log.communicators)
    found.rings += communicator.rings.size();
  for (const log::Rank& rank : log.ranks) {
    found.tree_entries += rank.trees.size();
    found.hops += rank.ring_hops.size();
    found.edges += rank.edges.size();
    found.graphs += rank.graphs.size();
    for (const log::Graph& graph : rank.graphs) found.graph_channels += graph.channels.size();
  }
  found.calls = log.counts.calls;
  found.choices = log.counts.choices;
  return found;
}

}  // namespace

TEST_CASE("nccl log: every sample, facts of each kind as grep counts them") {
  if (!has_samples()) RAILYARD_SKIP("no samples/nccl-logs");
  std::printf("%-6s %8s %6s %5s | %5s %5s %5s %6s %5s %6s %6s %6s %7s\n", "log", "messages",
              "facts", "torn", "ranks", "comms", "rings", "trees", "hops", "edges", "graphs",
              "calls", "choices");
  for (const Expected& expected : kExpected) {
    CAPTURE(expected.file);
    const log::Log log = read_sample(expected.file);
    const Expected found = count(log);
    std::printf("%-6.3s %8lu %6lu %5lu | %5zu %5zu %5zu %6zu %5zu %6zu %6zu %6lu %7lu\n",
                expected.file, log.counts.messages, log.counts.facts, log.counts.torn, found.ranks,
                found.communicators, found.rings, found.tree_entries, found.hops, found.edges,
                found.graphs, found.calls, found.choices);
    CHECK(found.ranks == expected.ranks);
    CHECK(found.communicators == expected.communicators);
    CHECK(found.rings == expected.rings);
    CHECK(found.tree_entries == expected.tree_entries);
    CHECK(found.hops == expected.hops);
    CHECK(found.edges == expected.edges);
    CHECK(found.graphs == expected.graphs);
    CHECK(found.graph_channels == expected.graph_channels);
    CHECK(found.calls == expected.calls);
    CHECK(found.choices == expected.choices);
  }
}

TEST_CASE("nccl log: 2 x 8 H100 behind a plugin, application text across NCCL's lines") {
  if (!has_samples()) RAILYARD_SKIP("no samples/nccl-logs");
  const log::Log log = read_sample("009-nebius-2x8-h100-mlperf-sd.log");
  REQUIRE(log.versions.size() == 1);
  CHECK(log.versions[0].text == "2.19.3+cuda12.3");
  const log::Communicator& communicator = log.communicators[0];
  CHECK(communicator.id == 0x753d166fb39e1659);
  CHECK(communicator.rank_count == 16);
  CHECK(communicator.hosts == std::vector<std::string>{"node00", "node01"});
  REQUIRE(communicator.rings.size() == 16);
  CHECK(communicator.rings[7].line == 32);
  CHECK(communicator.rings[7].whole);
  CHECK(communicator.rings[7].ranks ==
        Numbers{0, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1});
  REQUIRE(communicator.nvls_heads.size() == 8);
  CHECK(communicator.nvls_heads[7].ranks == Numbers{7, 15});

  const log::Rank& first = rank_of(log, 0);
  CHECK(first.start == 13);
  CHECK(first.complete == 1487);
  CHECK(first.bus_id.value_or(0) == 0x8d000);
  CHECK(first.nvls.value_or(false));
  CHECK(first.thread_thresholds == "8/8/64 | 128/8/64 | 512 | 512");
  REQUIRE(first.trees.size() == 16);
  CHECK(first.trees[0].line == 41);
  CHECK(first.trees[0].down == std::array<std::int64_t, 3>{1, 8, -1});
  CHECK(first.trees[1].up == 7);
  REQUIRE(first.channels);
  CHECK(first.channels->line == 1486);
  CHECK(first.channels->nvls == 16);
  CHECK(first.channels->collnet == -1);
  CHECK(first.channels->p2p_per_peer == 2);
  const log::Edge* receive = edge_at(first, 43);
  REQUIRE(receive != nullptr);
  CHECK(receive->from == 9);
  CHECK(receive->plugin == "IBext");
  CHECK(receive->device == 4);
  CHECK(receive->gpu_direct);
  CHECK(receive->direction == log::Direction::receive);
  const log::Edge* relayed = edge_at(rank_of(log, 15), 705);  // PXN through rank 14
  REQUIRE(relayed != nullptr);
  CHECK(relayed->channel == 6);
  CHECK(relayed->proxy == 14);
  CHECK(relayed->device == 2);

  const log::Process& process = log.processes[first.process];
  CHECK(process.network == "IBext");
  CHECK(process.driver == 12030);
  REQUIRE(process.devices.size() == 8);
  CHECK(process.devices[7].name == "mlx5_7");
  CHECK(process.devices[7].link == "IB/SHARP");
  CHECK(process.relaxed_ordering);
  CHECK(process.out_of_band == "eth0:192.0.2.240<0>");
  REQUIRE(process.variables.size() == 1);
  CHECK(process.variables[0].value == "/var/run/nvidia-topologyd/virtualTopology.xml");
  // Line 1409 "... busId 8dSetting up": half a bus id is none, the rank keeps the whole one.
  CHECK(rank_of(log, 8).bus_id.value_or(0) == 0x8d000);
  CHECK(rank_of(log, 8).complete == 0);
}

TEST_CASE("nccl log: 4 x 8 GPUs, eleven runs in one file, calls and choices only") {
  if (!has_samples()) RAILYARD_SKIP("no samples/nccl-logs");
  const log::Log log = read_sample("010-public-algo_topo.head2600.txt");
  REQUIRE(log.communicators.size() == 11);
  for (std::size_t i = 0; i < 10; ++i) {
    CAPTURE(i);
    CHECK(log.communicators[i].members.size() == 32);
    CHECK(log.communicators[i].hosts.size() == 4);
  }
  CHECK_FALSE(log.communicators[0].id_known);
  CHECK(log.versions[0].text == "2.12.12+cuda11.7");
  // Line 41 is "... sumnode00:433602:433862 [5] NCCL INFO AllReduce: ...".
  REQUIRE(!log.calls.empty());
  CHECK(log.calls[0].line == 41);
  CHECK(log.calls[0].count == 16);
  CHECK(log.calls[0].datatype == 7);
  CHECK(log.ranks[log.calls[0].rank].rank == 5);
  CHECK(log.ranks[log.calls[0].rank].gpu == "NVIDIA GeForce RTX 3090");
  CHECK(log.processes[log.ranks[log.calls[0].rank].process].host == "node00");
  CHECK(log.choices[0].line == 44);
  CHECK(log.choices[0].time == doctest::Approx(49.675526));
  CHECK(log.choices.back().line == 2600);
  std::size_t eight_kib = 0;
  for (const log::Choice& choice : log.choices) {
    CHECK(choice.function == log::Function::all_reduce);  // from the call before
    CHECK(choice.algorithm == log::Algorithm::tree);
    CHECK(choice.protocol == log::Protocol::ll);
    if (choice.bytes != 8192) continue;
    ++eight_kib;
    CHECK(choice.time == doctest::Approx(63.410824));
  }
  CHECK(eight_kib == 32);
}

TEST_CASE("nccl log: 2 x 8 RTX 3090, the search without ids of communicators") {
  if (!has_samples()) RAILYARD_SKIP("no samples/nccl-logs");
  const log::Log log = read_sample("011-public-log.log");
  CHECK(log.versions[0].text == "2.18.1+cuda11.7");
  CHECK(log.communicators[0].members.size() == 16);
  const log::Rank& rank = rank_of(log, 12);  // node00's GPU 4 speaks first
  REQUIRE(rank.system);
  CHECK(rank.system->line == 21);
  CHECK(rank.system->max_bw == 7.0);
  CHECK(rank.system->total_bw == 24.0);
  REQUIRE(rank.system->nodes.size() == 16);
  CHECK(rank.system->nodes[2].name == "GPU/F000");
  CHECK(rank.system->nodes[2].detail == "8");
  CHECK(rank.system->nodes[rank.system->nodes[2].parent].name == "PCI/C000");
  CHECK(rank.system->nodes[14].name == "NET/0");
  CHECK(rank.system->nodes[rank.system->nodes[14].parent].name == "NIC/9A000");
  CHECK(rank.system->nodes[14].bw == 7.0);
  CHECK(rank.system->nodes[15].name == "CPU/0");  // a link back: "+ SYS[10.0] - CPU/0"
  const log::SystemPath& verbose = rank.system->paths.at(1);
  CHECK(verbose.line == 41);
  CHECK(verbose.to == "GPU/10000");
  CHECK(verbose.hops == 4);
  CHECK(verbose.bw == 24.0);
  const log::SystemPath& row = rank_of(log, 4).system->paths.at(0);
  CHECK(row.line == 165);
  CHECK(row.from == "GPU/F000");
  CHECK(row.type == PathType::loc);
  REQUIRE(rank.graphs.size() == 2);
  CHECK(rank.graphs[0].line == 174);
  CHECK(rank.graphs[0].kind == GraphKind::ring);
  CHECK(rank.graphs[0].bw_inter == 4.0);
  CHECK(rank.graphs[0].type_intra == PathType::sys);
  CHECK(rank.graphs[0].same_channels);
  CHECK(rank.graphs[1].kind == GraphKind::tree);
  CHECK(rank.graphs[1].pattern == 1);
  CHECK(rank.graphs[0].channels.at(0).gpus == Numbers{8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(rank.graphs[0].channels.at(0).nets == std::array<std::int64_t, 2>{0, 0});
  CHECK(rank_of(log, 0).trees.at(0).down == std::array<std::int64_t, 3>{1, 8, -1});
  CHECK(rank_of(log, 0).trees.at(1).up == 8);
  CHECK(rank_of(log, 8).trees.at(1).line == 1332);
  CHECK(rank_of(log, 15).ring_hops.at(1).next == 0);
}

TEST_CASE("nccl log: a head cut off within a message, threads tearing each other's lines") {
  if (!has_samples()) RAILYARD_SKIP("no samples/nccl-logs");
  const log::Log log = read_sample("014-public-nccl_trace.head400k.log");
  CHECK(log.versions.at(0).text == "2.28.9+cuda12.4");
  CHECK(log.versions.at(0).line == 11);
  CHECK(log.communicators[0].id == 0x1d7e31d334637d6d);
  CHECK(rank_of(log, 1).nvml_device == 2);
  CHECK(rank_of(log, 1).complete == 247);
  CHECK(rank_of(log, 2).complete == 0);  // its line is torn
  CHECK(log.processes[rank_of(log, 3).process].pid == 2984738);
  CHECK(log.processes[rank_of(log, 3).process].network == "Socket");
  CHECK(log.processes[rank_of(log, 3).process].devices.at(0).name == "enp34s0f0");
  CHECK(log.processes[rank_of(log, 3).process].devices.at(0).gpu_direct == false);
  REQUIRE(rank_of(log, 2).edges.size() == 2);
  CHECK(rank_of(log, 2).edges[0].line == 322);
  CHECK(rank_of(log, 2).edges[0].transport == log::Transport::shm);
  CHECK(rank_of(log, 2).edges[0].detail == "direct/direct");
  CHECK(rank_of(log, 2).edges[0].connection == -1);
  CHECK(rank_of(log, 3).edges.size() == 1);  // two more say "direct/dirston": torn
  const log::Call& last = log.calls.back();  // line 2551 ends after "datatype "
  CHECK(last.function == log::Function::send);
  CHECK(last.op_count == 0x48);
  CHECK(last.count == 32768);
  CHECK(last.root == 2);
  CHECK(log.counts.joined > 500);
  CHECK(log.counts.torn > 50);
}

TEST_CASE("nccl log: 2 x A100 with an NVLink bridge, graphs, tuning table, choices") {
  if (!has_samples()) RAILYARD_SKIP("no samples/nccl-logs");
  const log::Log log = read_sample("017-public-nccl.log");
  const log::Communicator& communicator = log.communicators[0];
  CHECK(communicator.node_count == 1);
  const log::Rank& rank = rank_of(log, 1);
  CHECK(rank.start == 26);
  CHECK(rank.init_seconds == doctest::Approx(0.67));
  CHECK(rank.gpu == "NVIDIA A100 80GB PCIe");
  CHECK(rank.edges.at(0).line == 1052);  // connected after initialisation, by another thread
  CHECK(rank.edges.at(0).detail == "direct pointer/read");
  CHECK(rank.connected.at(0).line == 1634);
  CHECK(rank.connected.at(0).pxn == 0);
  CHECK(rank.connected.at(0).gdr == 1);
  REQUIRE(rank.graphs.size() == 2);
  CHECK(rank.graphs[0].bw_intra == 20.0);
  CHECK(rank.graphs[0].type_intra == PathType::nvl);
  CHECK(rank.graphs[1].bw_intra == 40.0);
  CHECK_FALSE(rank.graphs[1].same_channels);
  CHECK_FALSE(rank.graphs[0].bus_ids);  // 17000 and 65000 are ranks 0 and 1
  CHECK(rank.graphs[1].channels.at(5).gpus == Numbers{0, 1});
  CHECK(rank.graphs[1].channels.at(6).gpus == Numbers{1, 0});
  REQUIRE(rank.channels);
  CHECK(rank.channels->collnet == 24);
  CHECK(rank.p2p_chunk == 524288);

  REQUIRE(communicator.tuning);
  const auto cell = [&](log::Function function, log::Algorithm algorithm, log::Protocol protocol) {
    return communicator.tuning
        ->cells[std::size_t(function)][std::size_t(algorithm)][std::size_t(protocol)]
        .value();
  };
  CHECK(communicator.tuning->line == 477);
  CHECK(cell(log::Function::all_reduce, log::Algorithm::tree, log::Protocol::ll).latency == 8.0);
  CHECK(cell(log::Function::all_reduce, log::Algorithm::ring, log::Protocol::ll128).bandwidth ==
        220.8);
  CHECK(
      cell(log::Function::reduce_scatter, log::Algorithm::ring, log::Protocol::simple).bandwidth ==
      480.0);
  CHECK(cell(log::Function::all_reduce, log::Algorithm::collnet_chain, log::Protocol::simple)
            .latency == 35.6);
  CHECK(cell(log::Function::broadcast, log::Algorithm::pat, log::Protocol::simple).latency == 0);
  CHECK(communicator.tuning->max_threads[std::size_t(log::Algorithm::ring)]
                                        [std::size_t(log::Protocol::ll128)] == 640);

  std::size_t largest = 0;
  for (const log::Choice& choice : log.choices) {
    CHECK(choice.algorithm == log::Algorithm::ring);
    CHECK(choice.protocol == log::Protocol::simple);
    CHECK(choice.last_channel == 23);
    REQUIRE(choice.call != log::kNone);
    CHECK(log.calls[choice.call].count * 4 == choice.bytes);
    CHECK(log.ranks[choice.rank].communicator == 0);
    if (choice.bytes == 8589934592) ++largest;
  }
  CHECK(largest == 45);
  const log::Process& process = log.processes[rank.process];
  REQUIRE(process.devices.size() == 3);
  CHECK(process.devices[2].name == "mlx5_0+mlx5_1");
  CHECK(process.devices[2].speed == 200000);
  CHECK(process.devices[0].gpu_direct == false);
  CHECK(process.devices[0].link == "RoCE");
}

TEST_CASE("nccl log: a fork's 2.23 without P2P, variables, versions as messages") {
  if (!has_samples()) RAILYARD_SKIP("no samples/nccl-logs");
  const log::Log log = read_sample("019-public-test2.log");
  REQUIRE(log.versions.size() == 1);
  CHECK(log.versions[0].line == 26);
  CHECK(log.versions[0].minor == 23);
  const log::Rank& rank = rank_of(log, 3);
  CHECK(rank.bus_id.value_or(0) == 0xd9000);
  CHECK(rank.start == 58);
  CHECK(rank.p2p_chunk == 131072);
  CHECK(rank.edges.size() == 4);
  CHECK(rank.edges[0].line == 3201);
  CHECK(rank.edges[0].to == 0);
  CHECK(rank.trees.at(3).up == 2);
  REQUIRE(rank.channels);
  CHECK(rank.channels->p2p == 4);
  const log::Process& process = log.processes[rank.process];
  CHECK(process.driver == 12060);
  CHECK(process.network == "Socket");
  CHECK(process.devices.at(1).link == "192.0.2.108<0>");
  REQUIRE(process.variables.size() == 3);
  CHECK(process.variables[1].name == "NCCL_PROTO");
  CHECK(process.variables[1].line == 3168);
  CHECK(process.variables[2].value == "MSCCL");
  CHECK(log.communicators[0].rings.at(3).ranks == Numbers{0, 1, 2, 3});
}

TEST_CASE("nccl log: excerpts without any initialisation") {
  if (!has_samples()) RAILYARD_SKIP("no samples/nccl-logs");
  const log::Log search = read_sample("004-issue-excerpt-nccl-1189-h20-graph-pre2.21-ids.txt");
  const log::Graph& graph = search.ranks.at(0).graphs.at(0);
  CHECK(graph.cross_nic == 1);
  CHECK(graph.channels.at(1).gpus == Numbers{1, 0});
  CHECK(graph.channels.at(1).nets == std::array<std::int64_t, 2>{2, 3});
  CHECK(search.ranks.at(1).system->total_bw == doctest::Approx(370.8));
  const log::Log fabric = read_sample("005-issue-excerpt-nccl-1769-gb200-mnnvl.txt");
  CHECK(fabric.ranks.at(1).bus_id.value_or(0) == 0x1801000);
  CHECK(fabric.ranks.at(1).fabric == "3143b15bc2cd192b.28cc9b5473fb5b93 clique 0x7ffe");
  const log::Log torn = read_sample("013-public-nccl_debug.log");
  CHECK(torn.counts.joined == 4);
  CHECK(rank_of(torn, 0).complete == 17);
  CHECK(rank_of(torn, 1).channels == std::nullopt);  // "2 p2p channels node00:80356node00:..."
  const log::Log p2p = read_sample("003-public-sendrecv_perf_2_gpu.log");
  std::size_t for_send_receive = 0;
  for (const log::Rank& rank : p2p.ranks)
    for (const log::Edge& edge : rank.edges) for_send_receive += edge.connection == 1 ? 1 : 0;
  CHECK(for_send_receive == 64);
}
