// Any bytes as an nccl-tests log: a value or a one-line error comes back, whatever is kept is
// consistent, and every measurement can be used.
#include "calibrate/readers/nccl_tests.h"

#include "tests/fuzz/measurement_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace calibrate = railyard::calibrate;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto result = calibrate::read_nccl_tests(text, "fuzz");
  if (!result.ok()) return fuzz::check_error(result.error().text());
  fuzz::require(!result.value().tables.empty());
  for (const auto& table : result.value().tables) {
    fuzz::require(!table.rows.empty());
    fuzz::require(table.rank_count != 0);
    for (const auto& row : table.rows) fuzz::require(row.bytes >= 0 && row.count >= 0);
  }
  fuzz::check_notes(result.value().notes);
  fuzz::check_measurements(calibrate::measurements(result.value()));
  return 0;
}
