#include "algorithms/chunking.h"

#include <doctest/doctest.h>

namespace railyard::algorithms {
namespace {

using sim::Algorithm;
using sim::bytes;
using sim::Collective;
using sim::CollectiveCall;
using sim::Protocol;
using namespace sim::literals;

constexpr CommShape kEightRanks{.ranks = 8, .nodes = 1};

CollectiveCall call(Collective collective, Algorithm algorithm, Protocol protocol) {
  CollectiveCall result;
  result.collective = collective;
  result.algorithm = algorithm;
  result.protocol = protocol;
  return result;
}

Chunking of(Collective collective, Algorithm algorithm, Protocol protocol,
            sim::Bytes part = 16_MiB) {
  return chunking(call(collective, algorithm, protocol), kEightRanks, part);
}

TEST_CASE("chunking: payload of a step") {
  CHECK(step_payload(Protocol::ll, {}) == 32_KiB);        // half of 64 KiB
  CHECK(step_payload(Protocol::ll128, {}) == 576'000_B);  // 15/16 of 614,400
  CHECK(step_payload(Protocol::simple, {}) == 512_KiB);
  CHECK(step_payload(Protocol::ll, {}) * 2 * kFifoSteps == 512_KiB);
  CHECK(step_payload(Protocol::ll128, {}) / 15 * 16 * kFifoSteps == 4'915'200_B);
  CHECK(step_payload(Protocol::simple, {}) * kFifoSteps == 4_MiB);
}

TEST_CASE("chunks follow the FIFO's size") {
  const FifoBytes fifos{.ll = 1'048'576, .ll128 = 9'830'400, .simple = 1'048'576};
  CHECK(step_payload(Protocol::ll, fifos) == 64_KiB);
  CHECK(step_payload(Protocol::ll128, fifos) == 1'152'000_B);
  CHECK(step_payload(Protocol::simple, fifos) == 128_KiB);
  // A step is at least the grain, whatever the variable says.
  CHECK(step_payload(Protocol::simple, {.simple = 1}) == 512_B);
  const CommShape shape{.ranks = 8, .fifos = fifos};
  const Chunking ring = chunking({.size = 1_GiB}, shape, 64_MiB);
  CHECK(ring.chunk == 512_KiB);
  CHECK(ring.min_slice == 8_KiB);
}

TEST_CASE("chunking: Ring Simple AllReduce, AllGather, ReduceScatter move 2 MiB in two slices") {
  for (const auto collective :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
    const Chunking got = of(collective, Algorithm::ring, Protocol::simple);
    CHECK(got.chunk == 2_MiB);
    CHECK(got.slices_per_chunk == 2);
    CHECK(got.min_slice == 32_KiB);
    CHECK(got.fifo_slices == 4);
    CHECK(got.slice_align == 64);  // 16 elements of 4 bytes
  }
}

TEST_CASE("chunking: everything else moves a step at a time") {
  for (const auto collective : {Collective::broadcast, Collective::reduce}) {
    const Chunking got = of(collective, Algorithm::ring, Protocol::simple);
    CHECK(got.chunk == 512_KiB);
    CHECK(got.slices_per_chunk == 1);
    CHECK(got.fifo_slices == 8);
  }
  CHECK(of(Collective::all_reduce, Algorithm::tree, Protocol::simple).chunk == 512_KiB);
  CHECK(of(Collective::all_reduce, Algorithm::tree, Protocol::ll).chunk == 32_KiB);
  CHECK(of(Collective::all_reduce, Algorithm::ring, Protocol::ll).chunk == 32_KiB);
  CHECK(of(Collective::all_reduce, Algorithm::ring, Protocol::ll128).chunk == 576'000_B);
  CHECK(of(Collective::all_reduce, Algorithm::ring, Protocol::ll128).fifo_slices == 8);
}

// The rule with its own arithmetic: halve 576,000 to above / below 128 KiB and 32 KiB, round to
// 1,920.
TEST_CASE("chunking: Tree LL128 shortens its chunk for small parts") {
  const auto chunk = [](std::int64_t part, CommShape shape) {
    return chunking(call(Collective::all_reduce, Algorithm::tree, Protocol::ll128), shape,
                    bytes(part))
        .chunk.raw();
  };
  // 8 ranks, one node: s = 1.8; 64 s/8 = 14.4 chunks wanted above 128 KiB, 16 s/8 = 3.6 above 32
  // KiB.
  CHECK(chunk(48 * 1024, kEightRanks) == 17'280);      // 18,000
  CHECK(chunk(576'000 * 15, kEightRanks) == 576'000);  // 15 chunks are enough
  CHECK(chunk(576'000 * 14, kEightRanks) == 288'000);  // 14 are not
  CHECK(chunk(72'000 * 4, kEightRanks) == 71'040);     // 72,000 below 128 KiB; 4 >= 3.6
  CHECK(chunk(72'000 * 3, kEightRanks) == 34'560);     // 36,000; 6 >= 3.6
  // 16 nodes of one rank: s = 1 + 4 + 0.1; 326.4 and 81.6 chunks wanted.
  CHECK(chunk(576'000 * 327, {.ranks = 16, .nodes = 16}) == 576'000);
  CHECK(chunk(576'000 * 326, {.ranks = 16, .nodes = 16}) == 288'000);
}

TEST_CASE("chunking: plain moves whole blocks") {
  CHECK(of(Collective::all_reduce, Algorithm::ring, Protocol::plain, 64_MiB).chunk == 8_MiB);
  CHECK(of(Collective::all_reduce, Algorithm::ring, Protocol::plain, 36_B).chunk == 8_B);
  CHECK(of(Collective::all_gather, Algorithm::ring, Protocol::plain, 64_MiB).chunk == 64_MiB);
  CHECK(of(Collective::broadcast, Algorithm::ring, Protocol::plain, 64_MiB).chunk == 64_MiB);
  CHECK(of(Collective::all_reduce, Algorithm::tree, Protocol::plain, 64_MiB).chunk == 64_MiB);
  CHECK(of(Collective::all_reduce, Algorithm::ring, Protocol::plain, 0_B).chunk == 4_B);  // > 0
  const Chunking plain = of(Collective::all_reduce, Algorithm::ring, Protocol::plain);
  CHECK(plain.slices_per_chunk == 1);
  CHECK(plain.fifo_slices == 8);
}

TEST_CASE("chunking: the last loop of a ring is aligned to 16 bytes, plain to elements") {
  sim::Work work;
  work.size = 1000_B;
  work.blocks = 8;
  work.layout = sim::Layout::rotating;
  set_chunking(call(Collective::all_reduce, Algorithm::ring, Protocol::ll), kEightRanks, work);
  CHECK(block_region(work, 0, 0).size == 128_B);  // ceil(1000/8) = 125, aligned
  CHECK(block_region(work, 0, 7).size == 104_B);
  set_chunking(call(Collective::all_reduce, Algorithm::ring, Protocol::plain), kEightRanks, work);
  CHECK(block_region(work, 0, 0).size == 128_B);  // ceil(125/4) elements
  work.size = 8_B;
  set_chunking(call(Collective::all_reduce, Algorithm::ring, Protocol::ll), kEightRanks, work);
  CHECK(block_region(work, 0, 0).size == 8_B);
  CHECK(block_region(work, 0, 1).size == 0_B);
}

TEST_CASE("chunking: a short chunk is one full slice and an empty one") {
  sim::Work work;
  work.size = 20_KiB;
  set_chunking(call(Collective::all_reduce, Algorithm::ring, Protocol::simple), kEightRanks, work);
  CHECK(slice_region(work, {0_B, 20_KiB}, 0).size == 20_KiB);
  CHECK(slice_region(work, {0_B, 20_KiB}, 1).size == 0_B);
  CHECK(slice_region(work, {0_B, 2_MiB}, 0).size == 1_MiB);
  CHECK(slice_region(work, {0_B, 2_MiB}, 1).offset == 1_MiB);
  CHECK(slice_region(work, {0_B, 1'000'000_B}, 0).size == 500'032_B);  // a multiple of 64 bytes
}

}  // namespace
}  // namespace railyard::algorithms
