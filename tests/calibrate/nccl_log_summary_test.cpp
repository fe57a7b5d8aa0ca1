#include "calibrate/readers/nccl_log_summary.h"

#include <algorithm>

#include "tests/calibrate/nccl_log_support.h"

using namespace railyard::tests::nccl_log;  // NOLINT: a test's own names

TEST_CASE("nccl log: the summary says who, over what and what was chosen, with lines") {
  const log::Log log = read(
      "NCCL version 2.21.5+cuda12.4\n"
      "n:1:2 [0] NCCL INFO cudaDriverVersion 12040\n"
      "n:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"
      "n:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'\n"
      "n:1:2 [0] NCCL INFO Using network IB\n"
      "n:1:2 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.\n"
      "n:1:2 [0] NCCL INFO comm 0xa rank 0 nranks 2 cudaDev 0 busId 1000 commId 0x77 - Init START\n"
      "n:1:2 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 1, bw 12.5/12.5, type LOC/PIX, "
      "sameChannels 1\n"
      "n:1:2 [0] NCCL INFO Channel 00/02 : 0 1\n"
      "n:1:2 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1\n"
      "n:1:2 [0] NCCL INFO 2 coll channels, 0 nvls channels, 2 p2p channels, 1 p2p channels per "
      "peer\n"
      "n:1:2 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA\n"
      "n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0(4)/GDRDMA\n"
      "n:1:2 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n"
      "n:1:2 [0] NCCL INFO AllReduce: 64 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n"
      "n:1:2 [0] net.cc:9 NCCL WARN trouble\n");
  CHECK(log::summary(log) ==
        "test.log: 16 lines, 15 messages of NCCL's, 15 facts, 0 torn\n"
        "NCCL 2.21.5+cuda12.4 (line 1)\n"
        "CUDA driver 12.4\n"
        "network IB: [0] mlx5_0 IB GPU Direct (1 of 1 processes)\n"
        "NCCL_IB_TIMEOUT=22 (1 of 1 processes)\n"
        "communicator 0x77: 1 of 2 ranks seen, on n\n"
        "  search ring: 1 channels, bw 12.5/12.5, LOC/PIX, crossNic 0, sameChannels 1 (line 8)\n"
        "  channels: 2 coll, 0 nvls, 2 p2p, 1 p2p per peer (1 rank, first line 11)\n"
        "  1 ring (line 9), trees of 1 rank\n"
        "  via NET/IB by another rank's NIC (PXN)/GDRDMA: 1 connection (first line 13)\n"
        "  via NET/IB/GDRDMA: 1 connection (first line 12)\n"
        "  chose AllReduce Ring/LL: 2 calls, 8 to 64 bytes (first line 14)\n"
        "WARN net.cc:9 trouble (line 16)\n");
}

TEST_CASE("nccl log: the summary of many communicators stays a page") {
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += "n:1:" + std::to_string(i) +
            " [0] NCCL INFO comm 0xa rank 0 nranks 2 cudaDev 0 busId 1 commId " +
            std::to_string(100 + i) + " - Init START\n";
  const std::string page = log::summary(read(text));
  CHECK(page.find("and 12 communicators\n") != std::string::npos);
  CHECK(std::count(page.begin(), page.end(), '\n') == 10);
}
