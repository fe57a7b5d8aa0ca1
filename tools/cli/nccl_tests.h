// nccl-tests' own text output (2.17 and later), so that what parses its logs parses a prediction:
//
//   # nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 0 iters: 1 ...
//   #       size         count      type   redop    root     time   algbw   busbw #wrong     time
//   ...
//              8             2     float     sum      -1    12.34    0.00    0.00    N/A    12.34
//              ...
//   # Out of bounds values : 0 OK
//   # Avg bus bandwidth    : 123.456
//
// Both halves of a row hold the same prediction: in place and out of place move the same bytes.
// #wrong is N/A, as nccl-tests prints it when it does not validate. A scenario with several
// collectives gives one complete output after the other, as several programs would.
#pragma once

#include <string>
#include <vector>

#include "scenarios/run.h"
#include "scenarios/scenario.h"

namespace railyard::cli {

// Consecutive rows that one nccl-tests program would print.
using CollectiveBlock = std::vector<const scenarios::CollectiveRow*>;
std::vector<CollectiveBlock> collective_blocks(const std::vector<scenarios::CollectiveRow>& rows);

double average_busbw(const CollectiveBlock& rows);

// Microseconds as nccl-tests writes them: two decimals below 100, one below 10,000, none above.
std::string nccl_tests_time(sim::Duration time);

// A line of "Using devices".
struct DeviceLine {
  std::uint32_t rank = 0;
  std::string host;
  std::uint32_t device = 0;
  std::string description;
};

// Where the scenario's ranks are.
sim::Result<std::vector<DeviceLine>> device_lines(const scenarios::Scenario& scenario);

std::string nccl_tests_text(const std::vector<scenarios::CollectiveRow>& rows,
                            const std::vector<DeviceLine>& devices);

}  // namespace railyard::cli
