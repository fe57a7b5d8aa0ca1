// Any bytes as a probe's report: a value whose every time is usable, or a one-line error.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "calibrate/readers/probe.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace calibrate = railyard::calibrate;
  const auto result =
      calibrate::read_probe(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!result.ok()) {
    require(!result.error().message.empty());
    require(result.error().text().find('\n') == std::string::npos);
    return 0;
  }
  for (const calibrate::ProbeRow& row : result.value().rows) {
    require(!row.kind.empty() && row.bytes >= 0 && row.moved_bytes >= 0);
    require(row.time_us.has_value() != row.value.has_value());
    if (!row.time_us) continue;
    require(row.time_us->min > 0 && row.time_us->median <= row.time_us->max);
    require(std::isfinite(row.time_us->max) && row.time_us->count > 0);
    require(row.bytes_per_second() >= 0);
  }
  for (const calibrate::ProbeFit& fit : result.value().fits) require(fit.bytes_per_second > 0);
  return 0;
}
