// Any bytes as a profiler trace: a value or a one-line error comes back, whatever is kept is
// consistent, and every measurement can be used.
#include "calibrate/readers/kineto.h"

#include "tests/fuzz/measurement_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace calibrate = railyard::calibrate;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto result = calibrate::read_kineto(text, "fuzz");
  if (!result.ok()) return fuzz::check_error(result.error().text());
  for (const auto& call : result.value().collectives) fuzz::require(call.end_ns >= call.start_ns);
  fuzz::check_notes(result.value().notes);
  fuzz::check_measurements(
      calibrate::measurements(calibrate::merge_kineto({result.value(), result.value()})));
  return 0;
}
