// Any bytes as a trace of requests: a one-line error comes back, or requests within the limits and
// in the order of their arrival.
#include <string>

#include "models/kv/trace.h"
#include "tests/fuzz/measurement_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto trace = railyard::models::parse_kv_trace(text, "fuzz");
  if (!trace.ok()) return fuzz::check_error(trace.error().text());
  const railyard::models::KvRequest* before = nullptr;
  for (const auto& request : trace.value()) {
    fuzz::require(request.arrival.time_since_epoch().count() >= 0);
    fuzz::require(request.input_tokens > 0 && request.output_tokens > 0);
    fuzz::require(request.input_tokens <= railyard::models::kMaxKvTokens);
    fuzz::require(request.output_tokens <= railyard::models::kMaxKvTokens);
    fuzz::require(before == nullptr || before->arrival <= request.arrival);
    before = &request;
  }
  return 0;
}
