// Closed forms of ring and tree collectives on links of their own, against both engines.
//
// Every connection has a link of rate W to itself. Of one slice operation:
//   o overhead      T(x) = transfer_time of x wire bytes at W      a latency     cl credit latency
//   p = o + T(slice)          what an operation with a send takes
//   q = o + TL(slice)         what one without takes; TL at the lane's local rate, q <= p
// Cut-through (LL) with a grain g: h = o + T(g) + a, from the start of an operation to its head's
// arrival; the tail of its slice arrives p + a after its start.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/communicator.h"
#include "sim/executor.h"
#include "sim/longest_path.h"
#include "tests/algorithms/clusters.h"

namespace railyard {
namespace {

using namespace sim;            // NOLINT
using namespace sim::literals;  // NOLINT
using algorithms::Communicator;

constexpr Bandwidth kWire = 25_GBps;

struct Terms {
  Duration o{};
  Duration a{};
  Duration cl{};
  Bandwidth local{};  // 0 = no time
  Bytes grain{};      // > 0: cut-through, and twice the payload on the wire, as LL has it

  [[nodiscard]] Duration wire(Bytes payload) const {
    return transfer_time(grain.raw() > 0 ? 2 * payload : payload, kWire);
  }
  [[nodiscard]] Duration copy(Bytes payload) const {
    return local.raw() == 0 ? Duration{} : transfer_time(payload, local);
  }
  [[nodiscard]] Duration p(Bytes slice) const { return o + wire(slice); }
  [[nodiscard]] Duration q(Bytes slice) const { return o + copy(slice); }
  [[nodiscard]] Duration h() const { return o + wire(grain) + a; }
};

// Short and long latencies (a < p and a > p), with and without overhead and local copies.
std::vector<Terms> terms(Bytes grain, Duration credit_latency) {
  return {{.cl = credit_latency, .grain = grain},
          {.a = 1_us, .cl = credit_latency, .grain = grain},
          {.o = 700_ns, .a = 3_us, .cl = credit_latency, .local = 60_GBps, .grain = grain},
          {.o = 100_ns, .a = 150_us, .cl = credit_latency, .local = 400_GBps, .grain = grain}};
}

std::shared_ptr<const Schedule> schedule_of(const CollectiveCall& call, std::uint32_t ranks,
                                            const Channels& channels) {
  const Topology topology = test::gpus_on_a_switch(ranks);
  return Communicator::create(topology, test::everyone(topology), channels)
      .value()
      ->schedule(call)
      .value();
}

// Rings in rank order; trees are chains from rank 0.
Channels chains(std::uint32_t ranks, std::uint32_t count) {
  Channel channel;
  channel.ring.resize(ranks);
  std::iota(channel.ring.begin(), channel.ring.end(), 0U);
  channel.tree.resize(ranks);
  for (std::uint32_t r = 0; r + 1 < ranks; ++r) {
    channel.tree[r].down[0] = static_cast<std::int32_t>(r + 1);
    channel.tree[r + 1].up = static_cast<std::int32_t>(r);
  }
  return Channels(count, channel);
}

// The tree is a full binary one: 2^(levels + 1) - 1 ranks.
Channels full_tree(std::uint32_t ranks) {
  Channels channels = chains(ranks, 1);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    TreeEdges edges;
    if (r > 0) edges.up = static_cast<std::int32_t>((r - 1) / 2);
    for (std::uint32_t k = 0; k < 2 && 2 * r + 1 + k < ranks; ++k)
      edges.down[k] = static_cast<std::int32_t>(2 * r + 1 + k);
    channels[0].tree[r] = edges;
  }
  return channels;
}

struct Ends : RunListener {
  EventQueue* queue = nullptr;
  std::vector<Duration> rank;
  void on_rank_done(std::uint32_t r) override { rank[r] = queue->now().time_since_epoch(); }
};

struct Fluid {
  std::vector<Duration> rank_end;
  std::vector<Bytes> carried;  // by link
};

Fluid run_fluid(const std::shared_ptr<const Schedule>& schedule, const ScheduleCosts& costs,
                std::size_t links) {
  EventQueue queue;
  Network network(queue);
  queue.set_settler(&network);
  for (std::size_t link = 0; link < links; ++link) network.add_resource(kWire);
  Executor executor(schedule, std::make_shared<const ScheduleCosts>(costs), queue, network, {});
  Ends ends;
  ends.queue = &queue;
  ends.rank.resize(schedule->ranks);
  executor.set_listener(&ends);
  for (std::uint32_t r = 0; r < schedule->ranks; ++r) executor.start_rank(r);
  queue.run();
  REQUIRE(executor.finished());
  Fluid result{ends.rank, {}};
  for (std::size_t link = 0; link < links; ++link)
    result.carried.push_back(network.carried(ResourceId(link)));
  return result;
}

ScheduleCosts costs_of(const Schedule& schedule, const Terms& terms) {
  ScheduleCosts costs;
  for (std::size_t c = 0; c < schedule.connections.size(); ++c) {
    ConnectionCost cost;
    cost.route = {LinkId(c)};
    cost.latency = terms.a;
    cost.credit_latency = terms.cl;
    cost.grain = terms.grain;
    cost.wire_numerator = terms.grain.raw() > 0 ? 2 : 1;
    costs.connections.push_back(cost);
  }
  costs.lanes.assign(schedule.lanes.size(), {terms.o, terms.local});
  return costs;
}

// Both engines give `expected` for every rank, to the picosecond.
void check_both(const std::shared_ptr<const Schedule>& schedule, const Terms& terms,
                const std::vector<Duration>& expected) {
  const ScheduleCosts costs = costs_of(*schedule, terms);
  const std::size_t links = costs.connections.size();
  CAPTURE(to_text(schedule->call.protocol));
  CAPTURE(schedule->call.size.raw());
  CAPTURE(schedule->ranks);
  CAPTURE(to_text(terms.a));
  CAPTURE(to_text(terms.cl));
  const auto text = [](const std::vector<Duration>& ends) {
    std::string all;
    for (const Duration end : ends) all += to_text(end) + " ";
    return all;
  };
  CHECK(text(run_fluid(schedule, costs, links).rank_end) == text(expected));
  CHECK(text(longest_path(*schedule, costs.connections, costs.lanes,
                          std::vector<Bandwidth>(links, kWire), {})
                 .rank_end) == text(expected));
}

// ---- rings in lock step: S operations with a send, then one without ----

// S = 2(n-1) for AllReduce, n - 1 for AllGather and ReduceScatter.
struct RingCase {
  Collective collective;
  std::int64_t sends_per_rank;  // S / (n - 1)
  bool size_is_of_one_rank;     // CollectiveCall::size of AllGather and ReduceScatter
};
constexpr std::array kRings{RingCase{Collective::all_reduce, 2, false},
                            RingCase{Collective::all_gather, 1, true},
                            RingCase{Collective::reduce_scatter, 1, true}};

// `block`: bytes of one rank's block, in one loop.
std::shared_ptr<const Schedule> ring(const RingCase& ring, Protocol protocol, std::uint32_t n,
                                     Bytes block, std::int64_t loops = 1) {
  const Bytes size = (ring.size_is_of_one_rank ? block : block * n) * loops;
  return schedule_of({.collective = ring.collective, .size = size, .protocol = protocol}, n,
                     chains(n, 1));
}

// One slice, store and forward. Operation i starts when the neighbour's i-1 has arrived, p + a
// after that began: X(i) = i (p + a). The last, a receive, ends q after X(S):  S (p + a) + q.
TEST_CASE("closed form: ring, plain: S (p + a) + q") {
  for (const RingCase& each : kRings)
    for (const std::uint32_t n : {2U, 3U, 8U, 13U})
      for (const Terms& t : terms({}, 0_us)) {
        const Bytes c = 1'000'000_B;
        const std::int64_t s = each.sends_per_rank * (n - 1);
        check_both(ring(each, Protocol::plain, n, c), t,
                   std::vector<Duration>(n, s * (t.p(c) + t.a) + t.q(c)));
      }
}

// Simple: a chunk of 2 MiB is two slices of s = 1 MiB; the FIFO holds 4. X(i, 0) is the start of
// the first slice of operation i, the second follows at once. Operation i waits for the lane, 2p,
// or for the neighbour's slice, p + a:  M = max(2p, p + a), X(i, 0) = i M. A slot: slice m needs
// slot m - 4, which the neighbour empties at the end of operation i - 1 (its receives are one
// operation behind its sends), so X(i, 0) >= X(i-1, 0) + p + cl for i >= 2: M' = max(M, p + cl)
// from then on, up to the last send. The receive: its first slice starts at X(S) = X(S-1) + M, the
// second when the first is copied, q, or has arrived: X(S-1) + 2p + a = X(S) + min(a, p).  E = X(S)
// + max(q, min(a, p)) + q.
Duration ring_simple(const Terms& t, std::int64_t s, Bytes slice) {
  const Duration p = t.p(slice);
  const Duration q = t.q(slice);
  const Duration m = std::max(2 * p, p + t.a);
  const Duration with_credit = std::max(m, p + t.cl);
  const Duration last = s == 1 ? m : 2 * m + (s - 2) * with_credit;
  return last + std::max(q, std::min(t.a, p)) + q;
}

TEST_CASE("closed form: ring, Simple: slices within the FIFO, and bound by its credits") {
  for (const RingCase& each : kRings)
    for (const std::uint32_t n : {2U, 3U, 8U})
      for (const Duration cl : {0_us, 1_us, 400_us})
        for (const Terms& t : terms({}, cl))
          check_both(
              ring(each, Protocol::simple, n, 2_MiB), t,
              std::vector<Duration>(n, ring_simple(t, each.sends_per_rank * (n - 1), 1_MiB)));
}

// Several loops: nobody sends in the next before its own receive of this one, and (credits being no
// later than that) the loops follow each other.
TEST_CASE("closed form: ring, Simple: L loops take L times as long") {
  for (const RingCase& each : kRings)
    for (const Terms& t : terms({}, 1_us))
      check_both(ring(each, Protocol::simple, 5, 2_MiB, 3), t,
                 std::vector<Duration>(5, 3 * ring_simple(t, each.sends_per_rank * 4, 1_MiB)));
}

// LL: one slice of c = 32 KiB, cut-through. Operation i starts when the lane is free, p, or the
// head is there, h: M = max(p, h), X(i) = i M, and it is never held by its input's tail: the end
// X(i) + p
// >= X(i-1) + h + p. The receive starts at X(S) and ends q later, or a grain behind its tail:
//   E = max(X(S) + q, X(S-1) + p + a + TL(g))
// Credits: slice m needs the neighbour's operation m - 7 to have ended, cl ago: for 8 <= m < S
// X(m) = max(X(m-1) + M, X(m-7) + G), G = p + cl. When G > 7M the slices 1..7 repeat every G:
//   X(1 + 7b + r) = (1 + r) M + b max(G, 7M),   0 <= r < 7,   and X(S) = X(S-1) + M.
Duration ring_ll(const Terms& t, std::int64_t s, Bytes c) {
  const Duration m = std::max(t.p(c), t.h());
  const Duration round = std::max(t.p(c) + t.cl, 7 * m);
  const std::int64_t last = s - 1;
  const Duration x = last == 0 ? Duration{} : (1 + (last - 1) % 7) * m + (last - 1) / 7 * round;
  return std::max(x + m + t.q(c), x + t.p(c) + t.a + t.copy(t.grain));
}

TEST_CASE("closed form: ring, LL: cut through, within the FIFO, and bound by its credits") {
  for (const RingCase& each : kRings)
    for (const std::uint32_t n : {2U, 3U, 8U, 17U})
      for (const Duration cl : {0_us, 40_us, 3000_us})
        for (const Terms& t : terms(16_B, cl))
          check_both(ring(each, Protocol::ll, n, 32_KiB), t,
                     std::vector<Duration>(n, ring_ll(t, each.sends_per_rank * (n - 1), 32_KiB)));
}

// ---- chains of N lanes that pass k chunks on: Broadcast, Reduce and Tree ----

// Store and forward. Without credits the first lane starts chunk j at S(j) = j p. Every lane starts
// it p + a after the one before:  lane i, chunk j:  S(j) + i (p + a); the last receives, q <= p.
// Credits: chunk j needs the next lane's chunk j - 8 to have ended (p, in the last q) and cl to
// pass, D = p + a + p + cl after its own start:  S(j) = (j mod 8) p + floor(j / 8) max(8p, D).
// One chunk: (N - 1) (p + a) + q. No credits: N - 1 + k - 1 stages of p, and N - 1 latencies.
std::vector<Duration> chain_stored(const Terms& t, std::int64_t n, std::int64_t k, Bytes c) {
  const Duration p = t.p(c);
  const Duration consume = n > 2 ? p : t.q(c);
  const Duration round = std::max(8 * p, p + t.a + consume + t.cl);
  const Duration last = (k - 1) % 8 * p + (k - 1) / 8 * round;
  std::vector<Duration> ends;
  for (std::int64_t i = 0; i < n; ++i)
    ends.push_back(last + i * (p + t.a) + (i + 1 < n ? p : t.q(c)));
  return ends;
}

// Cut-through: lane i starts chunk j h after the lane before, S(j) + i h, and ends p later. The
// last starts at S(j) + (N-1) h and ends q later, or a grain behind its tail, S(j) + (N-2) h + p +
// a. Credits: the next lane's chunk ends h + p after ours began, D = h + p + cl; in the last lane
// that is max(h + q, p + a + TL(g)).
std::vector<Duration> chain_cut_through(const Terms& t, std::int64_t n, std::int64_t k, Bytes c) {
  const Duration p = t.p(c);
  const Duration taken = std::max(t.h() + t.q(c), p + t.a + t.copy(t.grain));
  const Duration round = std::max(8 * p, (n > 2 ? t.h() + p : taken) + t.cl);
  const Duration last = (k - 1) % 8 * p + (k - 1) / 8 * round;
  std::vector<Duration> ends;
  for (std::int64_t i = 0; i + 1 < n; ++i) ends.push_back(last + i * t.h() + p);
  ends.push_back(last + (n - 2) * t.h() + taken);
  return ends;
}

struct ChainCase {
  Protocol protocol;
  Bytes chunk;
  Bytes grain;
};
constexpr std::array kChains{ChainCase{Protocol::simple, 512_KiB, {}},
                             ChainCase{Protocol::ll, 32_KiB, 16_B}};

std::vector<Duration> chain_ends(const ChainCase& each, const Terms& t, std::int64_t n,
                                 std::int64_t k) {
  return each.grain.raw() > 0 ? chain_cut_through(t, n, k, each.chunk)
                              : chain_stored(t, n, k, each.chunk);
}

TEST_CASE("closed form: Broadcast: a pipeline of k chunks, within the FIFO and beyond") {
  for (const ChainCase& each : kChains)
    for (const std::uint32_t n : {2U, 3U, 6U})
      for (const std::int64_t k : {1, 2, 8, 9, 20})
        for (const Duration cl : {0_us, 1_us, 2000_us})
          for (const Terms& t : terms(each.grain, cl))
            check_both(schedule_of({.collective = Collective::broadcast,
                                    .size = k * each.chunk,
                                    .protocol = each.protocol},
                                   n, chains(n, 1)),
                       t, chain_ends(each, t, n, k));
}

// The chain runs along the ring to the root: lane i is rank root + 1 + i.
TEST_CASE("closed form: Reduce: the same chain, ending at the root") {
  constexpr std::uint32_t kRanks = 5;
  constexpr std::uint32_t kRoot = 3;
  for (const ChainCase& each : kChains)
    for (const Terms& t : terms(each.grain, 2000_us)) {
      const std::vector<Duration> lanes = chain_ends(each, t, kRanks, 20);
      std::vector<Duration> ends(kRanks);
      for (std::uint32_t i = 0; i < kRanks; ++i) ends[(kRoot + 1 + i) % kRanks] = lanes[i];
      check_both(schedule_of({.collective = Collective::reduce,
                              .size = 20 * each.chunk,
                              .root = kRoot,
                              .protocol = each.protocol},
                             kRanks, chains(kRanks, 1)),
                 t, ends);
    }
}

// Tree AllReduce. In a chain of n ranks the data passes n - 1 lanes up, the root's one, and n - 1
// down: a chain of 2n - 1 lanes, of which rank r's last is lane n - 1 + r.
TEST_CASE("closed form: tree AllReduce along a chain") {
  std::vector<ChainCase> cases(kChains.begin(), kChains.end());
  cases.push_back({Protocol::plain, 3'000'000_B, {}});
  for (const ChainCase& each : cases)
    for (const std::uint32_t n : {2U, 3U, 5U})
      for (const std::int64_t k : {1, 8, 20})
        for (const Duration cl : {1_us, 2000_us})
          for (const Terms& t : terms(each.grain, cl)) {
            if (each.protocol == Protocol::plain && k > 1) continue;  // plain moves all at once
            const std::vector<Duration> lanes = chain_ends(each, t, 2 * n - 1, k);
            check_both(schedule_of({.size = k * each.chunk,
                                    .algorithm = Algorithm::tree,
                                    .protocol = each.protocol},
                                   n, chains(n, 1)),
                       t, {lanes.begin() + n - 1, lanes.end()});
          }
}

// A full binary tree of d levels below the root: all leaves are alike, so every path up and down is
// a chain of 2d + 1 lanes; a rank at level l ends with lane d + l.
TEST_CASE("closed form: tree AllReduce over a full binary tree") {
  for (const ChainCase& each : kChains)
    for (const std::uint32_t levels : {1U, 2U, 3U})
      for (const std::int64_t k : {1, 20})
        for (const Terms& t : terms(each.grain, 2000_us)) {
          const std::uint32_t n = (2U << levels) - 1;
          const std::vector<Duration> lanes = chain_ends(each, t, 2 * levels + 1, k);
          std::vector<Duration> ends;
          for (std::uint32_t l = 0; l <= levels; ++l)
            ends.insert(ends.end(), 1U << l, lanes[levels + l]);
          check_both(
              schedule_of(
                  {.size = k * each.chunk, .algorithm = Algorithm::tree, .protocol = each.protocol},
                  n, full_tree(n)),
              t, ends);
        }
}

// ---- bytes through the engine ----

// One link for each (channel, from, to), or for each (0, from, to).
constexpr bool kByChannel = true;
std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Bytes> carried(
    const std::shared_ptr<const Schedule>& schedule, bool by_channel) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::size_t> links;
  ScheduleCosts costs = costs_of(*schedule, {.o = 1_us, .a = 1_us});
  for (std::size_t c = 0; c < schedule->connections.size(); ++c) {
    const Lane& from = schedule->lanes[schedule->connections[c].from.index()];
    const Lane& to = schedule->lanes[schedule->connections[c].to.index()];
    const auto key = std::tuple(by_channel ? from.channel : 0U, from.rank, to.rank);
    costs.connections[c].route = {LinkId(links.try_emplace(key, links.size()).first->second)};
  }
  const std::vector<Bytes> by_link = run_fluid(schedule, costs, links.size()).carried;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Bytes> result;
  for (const auto& [key, link] : links) result[key] = by_link[link];
  return result;
}

// AllReduce: every block but one goes over each link twice: 2 (n-1)/n B. AllGather, ReduceScatter:
// once, of n blocks of CollectiveCall::size: (n-1) size.
TEST_CASE("closed form: bytes on every ring link, summed over channels, after a run") {
  for (const RingCase& each : kRings)
    for (const Protocol protocol :
         {Protocol::ll, Protocol::ll128, Protocol::simple, Protocol::plain})
      for (const std::uint32_t n : {2U, 3U, 8U}) {
        const Bytes block = 11'520'000_B;  // a multiple of every protocol's grain
        const Bytes size = each.size_is_of_one_rank ? block : block * n;
        // B divides where every part is n blocks of a multiple of 16 B; two parts of 3 ranks are
        // not.
        const std::uint32_t channels = n == 3 ? 1 : 2;
        const auto links =
            carried(schedule_of({.collective = each.collective, .size = size, .protocol = protocol},
                                n, chains(n, channels)),
                    !kByChannel);
        CAPTURE(to_text(each.collective));
        CAPTURE(to_text(protocol));
        CAPTURE(n);
        CHECK(links.size() == n);
        for (const auto& [link, size_on_link] : links)
          CHECK(size_on_link.raw() == each.sends_per_rank * (n - 1) * block.raw());
      }
}

TEST_CASE("closed form: every tree edge carries its channel's part once up and once down") {
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple, Protocol::plain})
    for (const std::uint32_t n : {2U, 5U, 9U}) {
      const auto schedule =
          schedule_of({.size = 7'654'320_B, .algorithm = Algorithm::tree, .protocol = protocol}, n,
                      test::random_channels(n, 3, n));
      std::map<std::uint32_t, Bytes> part;  // by channel
      for (const Lane& lane : schedule->lanes) part[lane.channel] = schedule->works[lane.work].size;
      const auto links = carried(schedule, kByChannel);
      CHECK(links.size() == part.size() * 2 * (n - 1));
      Bytes total;
      for (const auto& [link, size] : links) {
        const auto [channel, from, to] = link;
        CHECK(size == part[channel]);
        CHECK(links.count({channel, to, from}) == 1);
        total += size;
      }
      CHECK(total == 2 * (n - 1) * 7'654'320_B);
    }
}

}  // namespace
}  // namespace railyard
