// Vectors: astra-network-analytical @599a047 (its gtests), ASTRA-sim 2.0 @c459ab6 (its shipped
// examples), LogGOPSim @76451de (its README and runs of its Schedgen patterns).
#include "sim/comparison_modes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "sim/loggp.h"

namespace railyard::sim {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

Nanoseconds send_once(AnalyticShape shape, std::uint32_t from, std::uint32_t to) {
  StoreForwardNetwork network({shape, 16, 50, 500});
  network.send(0, from, to, kMiB, [](Nanoseconds) {});
  return network.run();
}

// 1 MiB at 50 GiB/s: floor(10^9 / 51200) = 19 531 ns. Each hop adds that and 500 ns.
TEST_CASE("comparison_modes: astra-network-analytical, congestion aware") {
  CHECK(send_once(AnalyticShape::ring, 1, 4) == 60'093);
  CHECK(send_once(AnalyticShape::fully_connected, 1, 4) == 20'031);
  CHECK(send_once(AnalyticShape::through_switch, 1, 4) == 40'062);
}

TEST_CASE("comparison_modes: astra-network-analytical, all-gather by single sends on a ring") {
  StoreForwardNetwork network({AnalyticShape::ring, 16, 50, 500});
  for (std::uint32_t i = 0; i < 16; ++i)
    for (std::uint32_t j = 0; j < 16; ++j)
      if (i != j) network.send(0, i, j, kMiB, [](Nanoseconds) {});
  CHECK(network.run() == 704'116);
}

TEST_CASE("comparison_modes: astra-network-analytical, congestion unaware") {
  const auto one = [](AnalyticShape shape) {
    return analytic_delay({{shape, 16, 50, 500}}, 1, 4, kMiB);
  };
  CHECK(one(AnalyticShape::ring) == 21'031);
  CHECK(one(AnalyticShape::fully_connected) == 20'031);
  CHECK(one(AnalyticShape::through_switch) == 20'531);
  CHECK(analytic_delay({{AnalyticShape::ring, 16, 50, 500}}, 4, 4, kMiB) == 0);

  const std::vector<AnalyticDimension> three{{AnalyticShape::ring, 2, 200, 50},
                                             {AnalyticShape::fully_connected, 8, 100, 500},
                                             {AnalyticShape::through_switch, 4, 50, 2000}};
  CHECK(analytic_delay(three, 0, 1, kMiB) == 4'932);
  CHECK(analytic_delay(three, 37, 41, kMiB) == 10'265);
  CHECK(analytic_delay(three, 26, 42, kMiB) == 23'531);
  CHECK(analytic_delay(three, 3, 19, kMiB) == 23'531);
}

struct AstraRow {
  AnalyticAlgorithm algorithm;
  std::vector<Nanoseconds> by_ranks;  // 4, 8, 16
};

// examples/workload/microbenchmarks/*/{4,8,16}npus_1MB, four splits, 50 GiB/s, 500 ns; the local
// memory of these examples moves 1600 GB/s.
TEST_CASE("comparison_modes: ASTRA-sim microbenchmarks on a ring") {
  using A = AnalyticAlgorithm;
  const std::vector<AstraRow> rows{{A::ring_all_reduce, {43'000, 64'440, 99'640}},
                                   {A::ring_all_gather, {64'744, 151'016, 323'560}},
                                   {A::ring_reduce_scatter, {22'240, 33'080, 50'740}},
                                   {A::ring_all_to_all, {41'560, 125'480, 391'240}}};
  for (const AstraRow& row : rows)
    for (std::uint32_t i = 0; i < 3; ++i) {
      CAPTURE(static_cast<int>(row.algorithm));
      const std::uint32_t ranks = 4U << i;
      CHECK(run_analytic({AnalyticShape::ring, ranks, 50, 500},
                         {row.algorithm, kMiB, 4, 1600, 10}) == row.by_ranks[i]);
    }
}

// tests/rt_template/refs/stdout.txt: local memory of 50 GB/s.
TEST_CASE("comparison_modes: ASTRA-sim all-reduce with slow local memory") {
  CHECK(run_analytic({AnalyticShape::ring, 8, 50, 500},
                     {AnalyticAlgorithm::ring_all_reduce, kMiB, 4, 50, 10}) == 117'780);
}

// Closed forms of ASTRA-sim's results. s = ser + 500; h hops (switch 2):
//   ring all-gather of a shard, one split: (n-1) h 20 031 + 10 n
//   direct all-to-all: fully connected c + 20; switch (n-1)(c-500) + 500 + c + 20
//   direct all-gather through a switch: n 19 531 + 1 000 + 20
TEST_CASE("comparison_modes: ASTRA-sim closed forms of direct and switched collectives") {
  using A = AnalyticAlgorithm;
  for (const std::uint32_t n : {2U, 4U, 8U, 16U}) {
    const Nanoseconds c = kMiB / n * 1'000'000'000 / (std::int64_t{50} << 30) + 500;
    const auto result = [&](AnalyticShape shape, A algorithm) {
      return run_analytic({shape, n, 50, 500}, {algorithm, kMiB, 1, 1600, 10});
    };
    CAPTURE(n);
    CHECK(result(AnalyticShape::ring, A::ring_all_gather) == (n - 1) * 20'031 + 10 * n);
    CHECK(result(AnalyticShape::through_switch, A::ring_all_gather) ==
          (n - 1) * 2 * 20'031 + 10 * n);
    CHECK(result(AnalyticShape::fully_connected, A::direct_all_to_all) == c + 20);
    CHECK(result(AnalyticShape::through_switch, A::direct_all_to_all) ==
          (n - 1) * (c - 500) + 500 + c + 20);
    CHECK(result(AnalyticShape::through_switch, A::direct_all_gather) == n * 19'531 + 1'000 + 20);
  }
}

using Times = std::vector<std::int64_t>;

TEST_CASE("comparison_modes: LogGOPSim binomial trees, host by host") {
  CHECK(run_loggp({}, 8, binomial_reduce(8, 1024)) ==
        Times{34'914, 24'776, 13'138, 13'138, 1'500, 1'500, 1'500, 1'500});
  CHECK(run_loggp({}, 8, binomial_broadcast(8, 1024)) ==
        Times{15'776, 20'276, 20'276, 24'776, 25'914, 30'414, 30'414, 34'914});
}

void check_all(const LogGP& parameters, std::uint32_t hosts, const HostProgram& program,
               std::int64_t expected) {
  const Times times = run_loggp(parameters, hosts, program);
  CAPTURE(hosts);
  CAPTURE(times[0]);
  CHECK(times == Times(hosts, expected));
}

TEST_CASE("comparison_modes: LogGOPSim dissemination") {
  check_all({}, 16, dissemination(16, 1), 22'000);
  check_all({}, 8, dissemination(8, 1024), 34'914);
  check_all({}, 16, dissemination(16, 1024), 46'552);
}

TEST_CASE("comparison_modes: LogGOPSim dissemination over many hosts") {
#ifdef __SANITIZE_THREAD__  // some fifty times slower
  constexpr std::int64_t kRounds = 12;
#else
  constexpr std::int64_t kRounds = 16;
#endif
  const Times times = run_loggp({}, 1U << kRounds, dissemination(1U << kRounds, 1));
  CHECK(std::ranges::all_of(times, [](std::int64_t time) { return time == kRounds * 5'500; }));
}

TEST_CASE("comparison_modes: LogGOPSim all-reduce and all-to-all") {
  check_all({}, 4, ring_allreduce(4, 65536), 622'788);
  check_all({}, 8, ring_allreduce(8, 8192), 162'932);
  check_all({}, 4, recursive_halving_doubling(4, 65536), 611'800);
  check_all({}, 8, recursive_halving_doubling(8, 8192), 118'980);
  check_all({}, 4, linear_all_to_all(4, 65536), 1'196'130);
  check_all({}, 8, linear_all_to_all(8, 8192), 382'522);
}

TEST_CASE("comparison_modes: LogGOPSim with other parameters") {
  LogGP fast;
  fast.L = 1000;
  fast.o = 200;
  fast.g = 5;
  fast.G = 1;
  check_all(fast, 8, ring_allreduce(8, 8192), 33'922);
  check_all(fast, 8, recursive_halving_doubling(8, 8192), 22'730);
  check_all(fast, 8, linear_all_to_all(8, 8192), 67'137);
  check_all(fast, 4, ring_allreduce(4, 1 << 20), 1'581'258);
}

// Two senders to one host at once, s = 101, (s-1) G = 600. First bytes at o + L = 4000. The NIC
// takes the first message at 4000..4600 and is busy until 4000 + g + 600 = 5600, then the second,
// there at 6200. CPU: 4600..6100, then 6200..7700.
TEST_CASE("comparison_modes: a host receives one message at a time") {
  const HostProgram incast = [](std::uint32_t host, std::uint32_t round, std::vector<HostOp>& out) {
    if (host != 0) out.push_back({true, 0, 101});
    if (host == 0) out = {{false, 1, 101}, {false, 2, 101}};
    return round == 0;
  };
  CHECK(run_loggp({}, 3, incast) == Times{7'700, 1'500, 1'500});
  // Above S the senders are done when their message is received.
  LogGP rendezvous;
  rendezvous.S = 100;
  CHECK(run_loggp(rendezvous, 3, incast) == Times{7'700, 6'100, 7'700});
}

}  // namespace
}  // namespace railyard::sim
