// Prefixes, joined and torn messages, and whose a message is.
#include <algorithm>
#include <random>

#include "tests/calibrate/nccl_log_support.h"

using namespace railyard::tests::nccl_log;  // NOLINT: a test's own names

namespace {

std::string start_line(const std::string& prefix, int rank, const char* comm, const char* id) {
  return prefix + " [" + std::to_string(rank % 8) + "] NCCL INFO comm " + comm + " rank " +
         std::to_string(rank) + " nranks 4 cudaDev 0 busId 1000 commId " + id + " - Init START\n";
}

}  // namespace

TEST_CASE("nccl log: any prefix before host:pid:tid") {
  for (const std::string prefix :
       {"", "   ", "[1,3]<stdout>:", "0: ", "12: ", "(RayWorkerWrapper pid=77, ip=10.0.0.1) ",
        "[2026-04-28 14:14:48] ", "2026-04-28T14:14:48.123Z ", "14:14:48.123 ",
        "10.0.2.11: ", "worker-1  | ", "\x1b[36m(pid=77)\x1b[0m ", "[rank0]: "}) {
    CAPTURE(prefix);
    const log::Log log = read(prefix +
                              "my-node.a_b:4242:4300 [5] NCCL INFO Channel 01/0 : 5[5] -> "
                              "6[6] via P2P/IPC\r\n");
    REQUIRE(log.ranks.size() == 1);
    CHECK(log.ranks[0].rank == 5);
    CHECK(log.ranks[0].device == 5);
    CHECK(log.processes[0].host == "my-node.a_b");
    CHECK(log.processes[0].pid == 4242);
    CHECK(log.ranks[0].edges.at(0).detail == "IPC");
    CHECK(log.counts.torn == 0);
  }
  CHECK(read("NCCL INFO Ring 00 : 1 -> 2 -> 3\n").ranks.at(0).rank == 2);  // prefix stripped
}

TEST_CASE("nccl log: ranks interleaved, two communicators at once, pointers used twice") {
  const log::Log log = read(
      start_line("a:1:11", 0, "0x100", "0xaa") + start_line("b:1:11", 1, "0x100", "0xaa") +
      start_line("a:1:12", 1, "0x200", "0xbb") + start_line("b:1:12", 0, "0x200", "0xbb") +
      "a:1:12 [1] NCCL INFO Ring 00 : 0 -> 1 -> 2\n"
      "a:1:11 [0] NCCL INFO Ring 00 : 3 -> 0 -> 1\n"
      "b:1:12 [0] NCCL INFO Channel 00/01 : 0 1 2 3\n"
      "a:1:11 [0] NCCL INFO Channel 00/01 : 0 3 2 1\n"
      "b:1:99 [1] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1 datatype 7 op 0 "
      "root 0 comm 0x200 [nranks=4] stream 0x5\n"
      "a:1:11 [0] NCCL INFO comm 0x100 rank 0 nranks 4 cudaDev 0 busId 1000 - Destroy COMPLETE\n" +
      start_line("a:1:11", 2, "0x100", "0xcc") + "a:1:11 [2] NCCL INFO Ring 00 : 1 -> 2 -> 3\n");
  REQUIRE(log.communicators.size() == 3);
  const log::Communicator& first = log.communicators[0];
  CHECK(first.id == 0xaa);
  CHECK(first.hosts == std::vector<std::string>{"a", "b"});
  CHECK(first.rings.at(0).ranks == Numbers{0, 3, 2, 1});
  const log::Communicator& second = log.communicators[1];
  CHECK(second.rings.at(0).ranks == Numbers{0, 1, 2, 3});
  CHECK(log.ranks[second.members.at(0)].rank == 0);  // by rank, not by appearance
  CHECK(log.ranks[second.members.at(1)].ring_hops.at(0).next == 2);
  CHECK(log.ranks[first.members.at(0)].ring_hops.at(0).prev == 3);
  CHECK(log.ranks[first.members.at(0)].destroyed != 0);
  CHECK(log.ranks[log.calls.at(0).rank].comm == 0x200);
  CHECK(log.ranks[log.calls.at(0).rank].rank == 0);
  CHECK(log.communicators[2].members.size() == 1);
  CHECK(log.ranks[log.communicators[2].members[0]].ring_hops.at(0).next == 3);
}

TEST_CASE("nccl log: before 2.18 only the end of the initialisation names the communicator") {
  std::string text;
  for (int run = 0; run < 2; ++run) {
    for (int rank = 0; rank < 4; ++rank) {
      const std::string prefix = "h:" + std::to_string(100 + run) + ":" + std::to_string(rank) +
                                 " [" + std::to_string(rank) + "] NCCL INFO ";
      text += prefix + "Trees [0] 9/-1/-1->" + std::to_string(rank) + "->" + std::to_string(run) +
              "\n" + prefix + "comm 0xf00" + std::to_string(rank) + " rank " +
              std::to_string(rank) + " nranks 4 cudaDev 0 busId 1000 - Init COMPLETE\n";
    }
  }
  const log::Log log = read(text);
  REQUIRE(log.communicators.size() == 2);
  CHECK_FALSE(log.communicators[0].id_known);
  for (std::size_t run = 0; run < 2; ++run) {
    REQUIRE(log.communicators[run].members.size() == 4);
    for (const std::size_t member : log.communicators[run].members)
      CHECK(log.ranks[member].trees.at(0).up == static_cast<std::int64_t>(run));
  }
}

TEST_CASE("nccl log: a second initialisation on the same thread is another rank") {
  const log::Log log = read(
      "h:1:1 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1\n"
      "h:1:1 [0] NCCL INFO comm 0xa rank 0 nranks 2 cudaDev 0 busId 1000 - Init COMPLETE\n"
      "h:1:1 [0] NCCL INFO Channel 00/1 : 0[0] -> 1[1] via P2P/IPC\n"  // connected at first use
      "h:1:1 [0] NCCL INFO Trees [0] -1/-1/-1->0->3\n"
      "h:1:1 [0] NCCL INFO comm 0xb rank 0 nranks 4 cudaDev 0 busId 1000 - Init COMPLETE\n");
  REQUIRE(log.ranks.size() == 2);
  CHECK(log.ranks[0].edges.size() == 1);
  CHECK(log.ranks[0].comm == 0xa);
  CHECK(log.ranks[1].trees.at(0).up == 3);
  CHECK(log.ranks[1].rank_count == 4);
  CHECK(log.communicators.size() == 2);
}

TEST_CASE("nccl log: several messages on one line, text run into the host's name") {
  const log::Log log = read(
      "node7:10:20 [0] NCCL INFO Ring 00 : 1 -> 2 -> 3\n"
      "node8:10:21 [1] NCCL INFO Ring 00 : 2 -> 3 -> 0\n"
      "  float   sumnode7:10:20 [0] NCCL INFO Ring 01 : 1 -> 2 -> 3node8:10:21 [1] NCCL INFO Ring "
      "01 : "
      "2 -> 3 -> 0\n"
      "node7:10:20 [0] NCCL INFO Ring 02 : 1 -> 2 -> 3 node8:10:21 [1] NCCL INFO Ring 02 : 2 -> 3 "
      "-> 0\n"
      "stonnode8:10:21 [1] NCCL INFO Ring 03 : 2 -> 3 -> 0\n");
  REQUIRE(log.ranks.size() == 2);
  CHECK(log.processes.size() == 2);
  CHECK(log.counts.joined == 2);
  // "-> 3node8": the last number of a broken message is never believed.
  CHECK(log.counts.torn == 1);
  CHECK(rank_of(log, 2).ring_hops.size() == 2);
  CHECK(rank_of(log, 3).ring_hops.size() == 4);
}

TEST_CASE("nccl log: half a message is no message") {
  const std::string whole[] = {
      "Channel 12/0 : 3[0] -> 12[7] [send] via NET/IB/10(11)/GDRDMA",
      "Channel 12/0 : 3[0] -> 12[7] via P2P/CUMEM/read",
      "Channel 00/02 : 10 11 12 13",
      "Ring 00 : 11 -> 12 -> 13",
      "Tree 0 : 11 -> 12 -> 13/14/15",
      "NVLS Head 10: 11 12",
      "Pattern 4, crossNic 2, nChannels 12, bw 48.000000/48.000000, type NVL/PIX, sameChannels 11",
      "16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels, 12 p2p channels "
      "per "
      "peer",
      "P2P Chunksize set to 131072",
      "cudaDriverVersion 12040",
      "NCCL version 2.21.15",
      "AllReduce: 4096 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={10..15}",
      "4096 Bytes -> Algo 1 proto 2 time 15.25",
      "comm 0xabc0 rank 13 nRanks 16 nNodes 12 localRanks 18 localRank 13 MNNVL 10",
      "comm 0xabc0 rank 13 nranks 16 cudaDev 10 busId 8d000 commId 0x77 - Init COMPLETE",
      "NCCL_X set by environment to 123"};
  for (const std::string& message : whole) {
    CAPTURE(message);
    CHECK(read("n:1:2 [0] NCCL INFO " + message + "\n").counts.facts == 1);
    // Cut anywhere by another message: whatever is kept must not be a shortened number. The cut
    // messages are compared with the whole one: a fact may stand only if nothing was lost.
    for (std::size_t size = 1; size < message.size(); ++size) {
      const log::Log log =
          read("n:1:2 [0] NCCL INFO " + message.substr(0, size) + "n:1:3 [1] NCCL INFO x\n");
      const bool nothing_lost =
          message.substr(0, size) ==
              "16 coll channels, 16 collnet channels, 16 nvls channels, 16 "
              "p2p channels, 12 p2p channels per peer" ||
          message.substr(size).find_first_of("0123456789") == std::string::npos;
      CAPTURE(message.substr(0, size));
      if (!nothing_lost) CHECK(log.counts.facts == 0);
    }
  }
}

TEST_CASE("nccl log: a torn call stands if all it needs is there") {
  const std::string call =
      "n:1:2 [0] NCCL INFO AllReduce: opCount 3 sendbuff (nil) recvbuff 0x7f count 32768 datatype "
      "2 "
      "op 0 root 1 comm 0x55 [nranks=4] stream 0x7bn:1:3 [1] NCCL INFO x\n";
  CHECK(read(call).calls.size() == 1);
  CHECK(read(call.substr(0, call.find(" stream")) + "n:1:3 [1] NCCL INFO x\n").calls.size() == 1);
  CHECK(read(call.substr(0, call.find("4]")) + "n:1:3 [1] NCCL INFO x\n").calls.empty());
}

TEST_CASE("nccl log: what is not NCCL's is an error that says what to do") {
  const auto none = log::read_text("hello\nworld NCCL WHAT\nNCCL INFOrmation\n", "job.out");
  REQUIRE_FALSE(none.ok());
  CHECK(
      none.error().text() ==
      "job.out: no message of NCCL's found (lines like 'host:1:1 [0] NCCL INFO ...'); was the job "
      "run with NCCL_DEBUG=INFO?");
  CHECK(log::read_text("", "empty.log").ok() == false);
  const auto absent = log::read_file("/nonexistent/nccl.log");
  REQUIRE_FALSE(absent.ok());
  CHECK(absent.error().text() == "/nonexistent/nccl.log: cannot read: No such file or directory");
  const auto folder = log::read_file("/tmp");
  REQUIRE_FALSE(folder.ok());
  CHECK(folder.error().text() == "/tmp: cannot read: Is a directory");
}

TEST_CASE("nccl log: bytes without line ends, zero bytes, endless lines") {
  std::string text = "n:1:2 [0] NCCL INFO Ring 00 : 1 -> 2 -> 3\n";
  text += std::string(3u << 20U, 'x') + "\n";
  text += std::string("a\0b", 3) + "n:1:2 [0] NCCL INFO Ring 01 : 1 -> 2 -> 3\n";
  const log::Log log = read(text);
  CHECK(log.counts.overlong == 1);
  CHECK(log.counts.lines == 3);
  CHECK(rank_of(log, 2).ring_hops.at(0).line == 1);
}

TEST_CASE("nccl log: a log edited at random is read without harm") {
  std::mt19937_64 random(7);
  const std::string seeds =
      "a:1:2 [0] NCCL INFO comm 0xabc0 rank 3 nranks 4 cudaDev 0 busId 8d000 commId 0x77 - Init "
      "START\na:1:2 [0] NCCL INFO Trees [0] 1/8/-1->0->-1 [1] -1/-1/-1->0->7\n"
      "a:1:2 [0] NCCL INFO Pattern 4, crossNic 2, nChannels 8, bw 48.0/48.0, type NVL/PIX, "
      "sameChannels 0\na:1:2 [0] NCCL INFO  0 : NET/0-0 GPU/0-21000 NET/0-1\n";
  for (int round = 0; round < 400; ++round) {
    std::string text = seeds;
    for (int edit = 0; edit < 6; ++edit) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text.erase(at, random() % 9);
      } else {
        text.insert(at, text.substr(random() % text.size(), random() % 40));
      }
    }
    const auto result = log::read_text(text, "mutated");
    if (!result.ok()) continue;
    const log::Counts& counts = result.value().counts;
    CHECK(counts.facts + counts.torn <= counts.messages + result.value().versions.size());
  }
}
