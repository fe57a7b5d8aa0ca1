#include <algorithm>

#include "calibrate/probes/common/args.h"
#include "calibrate/probes/cuda/affinity.h"
#include "calibrate/probes/cuda/kernels.h"
#include "calibrate/probes/cuda/session.h"

namespace railyard::probe {
namespace {

const Sizes kSizes = {65536, 1048576, 16777216, 134217728};
const Sizes kFewSizes = {1048576, 67108864};

// 1, 2, 4, ... blocks up to one per multiprocessor, and that number itself.
std::vector<int> block_counts(int device) {
  int most = 0;
  PROBE_CUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMultiProcessorCount, device));
  std::vector<int> counts;
  for (int blocks = 1; blocks < most; blocks *= 2) counts.push_back(blocks);
  counts.push_back(most);
  return counts;
}

struct Way {
  int by, from, to;  // devices; -1: the host
};

std::string name_of(int end) { return end < 0 ? "host" : std::to_string(end); }

Buffer memory_of(int end, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  return end < 0 ? Buffer::on_host(size) : Buffer::on_device(end, size);
}

void measure_way(Session& session, const Way& way, const Sizes& sizes,
                 const std::vector<int>& block_counts) {
  session.run_cell(
      "kernel copy by " + name_of(way.by) + ", " + name_of(way.from) + " to " + name_of(way.to),
      [&] {
        const NearDevice near(way.by);
        const OnDevice here(way.by);
        const std::int64_t most = *std::max_element(sizes.begin(), sizes.end());
        const Buffer from = memory_of(way.from, most), to = memory_of(way.to, most);
        const Stream stream(way.by);
        for (const int blocks : block_counts) {
          for (const std::int64_t bytes : sizes) {
            const Summary time = time_on_device(stream, session.effort, [&] {
              launch_copy({blocks, 512, stream}, from.in_kernel<void>(), to.in_kernel<void>(),
                          static_cast<std::size_t>(bytes));
            });
            session.report.rows.push_back({"cuda.sm_copy",
                                           {{"by", name_of(way.by)},
                                            {"from", name_of(way.from)},
                                            {"to", name_of(way.to)},
                                            {"blocks", std::to_string(blocks)}},
                                           bytes,
                                           bytes,
                                           time,
                                           {},
                                           ""});
          }
        }
      });
}

void measure_reduction(Session& session, int blocks, bool two_stores) {
  session.run_cell("reduction by " + std::to_string(blocks) + " blocks", [&] {
    const auto most = static_cast<std::size_t>(kSizes.back());
    const Buffer first = Buffer::on_device(0, most), second = Buffer::on_device(0, most);
    const Buffer to = Buffer::on_device(0, most);
    const Buffer also_to = two_stores ? Buffer::on_device(0, most) : Buffer();
    const Stream stream(0);
    for (const std::int64_t bytes : kSizes) {
      const ReduceArguments arguments = {first.as<void>(), second.as<void>(), to.as<void>(),
                                         also_to.as<void>(), static_cast<std::size_t>(bytes)};
      const Summary time = time_on_device(stream, session.effort, [&] {
        launch_reduce_copy({blocks, 512, stream}, arguments);
      });
      session.report.rows.push_back(
          {"cuda.reduce",
           {{"blocks", std::to_string(blocks)}, {"stores", two_stores ? "2" : "1"}},
           bytes,
           bytes,
           time,
           {},
           ""});
    }
  });
}

}  // namespace

void measure_sm_copies(Session& session) {
  const std::vector<int> counts = block_counts(0);
  measure_way(session, {0, 0, 0}, kSizes, counts);
  measure_way(session, {0, -1, 0}, kFewSizes, {1, 4, 16, 64});
  measure_way(session, {0, 0, -1}, kFewSizes, {1, 4, 16, 64});
  for (int other = 1; other < session.devices; ++other) {
    if (!session.connected(0, other)) continue;
    const std::vector<int> tried = other == 1 ? counts : std::vector<int>{16};
    const Sizes sizes = other == 1 ? kSizes : Sizes{67108864};
    measure_way(session, {0, 0, other}, sizes, tried);  // writes
    measure_way(session, {0, other, 0}, sizes, tried);  // reads
  }
  add_fits(session.report, "cuda.sm_copy");
}

void measure_reductions(Session& session) {
  for (const int blocks : block_counts(0)) {
    measure_reduction(session, blocks, false);
    measure_reduction(session, blocks, true);
  }
  add_fits(session.report, "cuda.reduce");
}

}  // namespace railyard::probe
