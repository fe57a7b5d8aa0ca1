// Any bytes as a user-written schedule, in either form: a schedule or a one-line error comes back;
// small schedules go through the data-flow checker.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "algorithms/custom/custom_schedule.h"
#include "sim/result.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace algorithms = railyard::algorithms;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto custom = algorithms::read_custom_schedule("fuzz", text);
  if (!custom.ok()) {
    if (custom.error().text().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  std::size_t operations = 0;
  for (const auto& block : custom.value().blocks)
    for (const auto& step : block.steps) operations += step.count;
  if (operations > 500 || custom.value().ranks > 16 || custom.value().chunks > 64) return 0;
  const auto proof = algorithms::prove_custom(custom.value());
  if (proof.proved.empty() == proof.problem.empty()) std::abort();
  return 0;
}
