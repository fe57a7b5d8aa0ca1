// Any bytes as a perftest log: a value or a one-line error comes back, whatever is kept is
// consistent, and every measurement can be used.
#include "calibrate/readers/perftest.h"

#include "tests/fuzz/measurement_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace calibrate = railyard::calibrate;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto result = calibrate::read_perftest(text, "fuzz");
  if (!result.ok()) return fuzz::check_error(result.error().text());
  for (const auto& table : result.value().tables) fuzz::require(!table.rows.empty());
  fuzz::check_notes(result.value().notes);
  fuzz::check_measurements(calibrate::measurements(result.value()));
  return 0;
}
