#include "algorithms/split.h"

#include <doctest/doctest.h>

#include <string>

namespace railyard::algorithms {
namespace {

using sim::Algorithm;
using sim::bytes;
using sim::Bytes;
using sim::Collective;
using sim::CollectiveCall;
using sim::Protocol;

constexpr CommShape kEightRanks{.ranks = 8, .nodes = 1};

CollectiveCall call(Collective collective, std::int64_t size, Algorithm algorithm,
                    Protocol protocol) {
  CollectiveCall result;
  result.collective = collective;
  result.size = bytes(size);
  result.algorithm = algorithm;
  result.protocol = protocol;
  return result;
}

// "3x100 + 40" for parts of 100, 100, 100 and 40 bytes on channels 0 to 3.
std::string parts_text(const std::vector<Part>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t run = 1;
    while (i + run < parts.size() && parts[i + run].size == parts[i].size) ++run;
    text += (text.empty() ? "" : " + ") + std::to_string(run) + "x" +
            std::to_string(parts[i].size.raw());
    i += run;
  }
  return text;
}

constexpr std::int64_t kKi = 1024;
constexpr std::int64_t kMi = 1024 * kKi;

// Validated against NCCL: 8 ranks, 24 channels, fp32.
struct Vector {
  Collective collective;
  std::int64_t size;
  Algorithm algorithm;
  Protocol protocol;
  std::string parts;
  std::uint32_t threads;
};
const Vector kVectors[] = {
    {Collective::all_reduce, 8, Algorithm::ring, Protocol::ll, "1x8", 96},
    {Collective::all_reduce, 64 * kKi, Algorithm::ring, Protocol::ll, "2x32768", 512},
    {Collective::all_reduce, kMi, Algorithm::ring, Protocol::ll, "23x45056 + 1x12288", 512},
    {Collective::all_reduce, kMi, Algorithm::ring, Protocol::simple, "21x49152 + 1x16384", 544},
    {Collective::all_reduce, 16 * kMi, Algorithm::ring, Protocol::simple, "23x704512 + 1x573440",
     544},
    {Collective::all_reduce, 1024 * kMi, Algorithm::ring, Protocol::simple,
     "23x44744704 + 1x44613632", 544},
    {Collective::all_reduce, 64 * kKi, Algorithm::tree, Protocol::ll, "16x4096", 640},
    {Collective::all_gather, 16 * kMi, Algorithm::ring, Protocol::simple, "23x700416 + 1x667648",
     544},
    {Collective::broadcast, kMi, Algorithm::ring, Protocol::simple, "16x65536", 544}};

TEST_CASE("split: vectors of 8 ranks on 24 channels") {
  for (const Vector& vector : kVectors) {
    const CollectiveCall one =
        call(vector.collective, vector.size, vector.algorithm, vector.protocol);
    CAPTURE(vector.size);
    CAPTURE(std::string(to_text(vector.collective)));
    CHECK(parts_text(split_call(one, kEightRanks, 24, {})) == vector.parts);
    CHECK(launch_shape(one, kEightRanks, 24, {}).threads == vector.threads);
  }
}

TEST_CASE("split: a 64 KiB ring AllReduce under LL may use 2 channels") {
  const CollectiveCall one = call(Collective::all_reduce, 64 * kKi, Algorithm::ring, Protocol::ll);
  CHECK(launch_shape(one, kEightRanks, 24, {}).channels == 2);
  CHECK(launch_shape(one, {.ranks = 16, .nodes = 2}, 24, {}).channels == 1);
}

TEST_CASE("split: threads") {
  const auto threads = [](Collective collective, std::int64_t size, Protocol protocol,
                          LaunchLimits limits) {
    return launch_shape(call(collective, size, Algorithm::ring, protocol), kEightRanks, 24, limits)
        .threads;
  };
  CHECK(threads(Collective::all_reduce, 64 * kMi, Protocol::ll128, {}) == 640);
  CHECK(threads(Collective::all_reduce, 64 * kMi, Protocol::simple, {.ring_simple_threads = 256}) ==
        288);
  // 640 threads of LL128 want 5,120 bytes; 640 and 320 = 128 x 2.5 is not halved again.
  CHECK(threads(Collective::all_reduce, 1024, Protocol::ll128, {}) == 320);
  // 8 bytes: Simple 512, 256, 128, 64, then 32 more for posting and waiting.
  CHECK(threads(Collective::broadcast, 8, Protocol::simple, {}) == 96);
}

TEST_CASE("split: AllGather counts all ranks' bytes") {
  const CollectiveCall one =
      call(Collective::all_gather, 128 * kKi, Algorithm::ring, Protocol::simple);
  CHECK(launch_shape(one, kEightRanks, 64, {}).channels == 32);  // 8 x 128 KiB / (512 x 64 B)
  CHECK(traffic_per_byte(one, kEightRanks) == 8);
}

// Parts are contiguous, in channel order, each on its own channel, and sum to the message.
void check_covering(const std::vector<Part>& parts, Bytes size, std::uint32_t channels) {
  Bytes next;
  std::uint32_t channel = 0;
  for (const Part& part : parts) {
    CHECK(part.offset == next);
    CHECK(part.size.raw() > 0);
    if (next.raw() > 0) CHECK(part.channel == channel + 1);
    channel = part.channel;
    next += part.size;
  }
  CHECK(next == size);
  CHECK((parts.empty() || channel < channels));
}

TEST_CASE("split: parts sum to the message for many sizes") {
  for (std::uint32_t channels = 1; channels <= 32; ++channels)
    for (std::int64_t size = 0; size < 3'000'000; size = size * 17 / 8 + 4)
      for (const auto protocol :
           {Protocol::ll, Protocol::ll128, Protocol::simple, Protocol::plain}) {
        CAPTURE(size);
        CAPTURE(channels);
        check_covering(
            split_call(call(Collective::all_reduce, size / 4 * 4, Algorithm::ring, protocol),
                       kEightRanks, channels, {}),
            bytes(size / 4 * 4), channels);
      }
}

TEST_CASE("split: plain divides evenly over all channels") {
  const CollectiveCall one = call(Collective::all_reduce, 40, Algorithm::ring, Protocol::plain);
  CHECK(parts_text(split_call(one, kEightRanks, 4, {})) == "3x12 + 1x4");  // whole fp32 elements
  CHECK(parts_text(split_call(one, kEightRanks, 1, {})) == "1x40");
}

TEST_CASE("split: a call's own limit on channels") {
  CollectiveCall one = call(Collective::all_reduce, 16 * kMi, Algorithm::ring, Protocol::simple);
  one.max_channels = 4;
  CHECK(split_call(one, kEightRanks, 24, {}).size() == 4);
  one.max_channels = 100;
  CHECK(split_call(one, kEightRanks, 24, {}).size() == 24);
}

TEST_CASE("split: calls of one group share the channels") {
  // Two AllReduces of 64 KiB: 128 KiB of traffic each over 8 channels = 32 KiB a channel, so that a
  // cell of 16 KiB fills a channel and the second task starts where the first ended.
  const SplitTask task{.size = bytes(64 * kKi), .traffic_per_byte = 2, .max_channels = 4};
  const SplitTask tasks[] = {task, task};
  const auto parts = split_tasks(tasks, 8);
  REQUIRE(parts.size() == 2);
  CHECK(parts_text(parts[0]) == "4x16384");
  CHECK(parts_text(parts[1]) == "4x16384");
  CHECK(parts[0].front().channel == 0);
  CHECK(parts[1].front().channel == 4);
  CHECK(parts[1].back().channel == 7);
}

TEST_CASE("split: NCCL before 2.29") {
  const SplitRule older{.min_traffic = 16 * kKi, .rounds_up = false};
  // 32 KiB of traffic on two channels: cells of 8 KiB, a channel's share 16 KiB, one cell each.
  const SplitTask small[] = {{.size = bytes(16 * kKi), .traffic_per_byte = 2, .max_channels = 2}};
  CHECK(parts_text(split_tasks(small, 8, older)[0]) == "2x8192");
  CHECK(parts_text(split_tasks(small, 8)[0]) == "1x16384");
  // Two tasks of 4 KiB count as 16 KiB of traffic each: a channel's share of four is 8 KiB, raised
  // to the least of 16 KiB, which a cell fills.
  const SplitTask tiny{.size = bytes(4 * kKi), .traffic_per_byte = 2, .max_channels = 2};
  const SplitTask both[] = {tiny, tiny};
  const auto parts = split_tasks(both, 8, older);
  CHECK(parts[0].front().channel == 0);
  CHECK(parts[1].front().channel == 1);
}

TEST_CASE("split: many tasks on few channels never leave them") {
  std::vector<SplitTask> tasks;
  for (std::int64_t i = 0; i < 40; ++i)
    tasks.push_back({.size = bytes((i * 7919) % 300'000 * 4),
                     .traffic_per_byte = 2,
                     .max_channels = static_cast<std::uint32_t>(i % 5 + 1)});
  for (std::uint32_t channels = 1; channels <= 12; ++channels) {
    for (const SplitRule& rule : {SplitRule{}, SplitRule{16 * kKi, false}}) {
      const auto parts = split_tasks(tasks, channels, rule);
      for (std::size_t i = 0; i < tasks.size(); ++i)
        check_covering(parts[i], tasks[i].size, channels);
    }
  }
}

}  // namespace
}  // namespace railyard::algorithms
