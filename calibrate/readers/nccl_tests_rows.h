// The rows of one nccl-tests table, put together again from what other output left of them.
//
// A row is printed in pieces: sizes and type, then each half when its test is done, then the line's
// end. What other threads print lies between the pieces; so a row ends with a line that nothing
// cut off, or when the next row begins. A row whose number of fields is impossible is left out,
// with a note: a field that broke in two must not become a figure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/readers/log_text.h"
#include "calibrate/readers/nccl_tests.h"

namespace railyard::calibrate {

struct NcclTestsColumns {
  bool redop = false, root = false;
  bool per_iteration = false, timestamp = false;
  bool host_times = false, error_column = false;

  [[nodiscard]] std::size_t before_halves() const {
    return 3 + static_cast<std::size_t>(redop) + static_cast<std::size_t>(root);
  }
  [[nodiscard]] std::size_t half() const { return per_iteration ? 8 : 4; }
};

// The columns, if the line (without '#') is a table's header.
std::optional<NcclTestsColumns> nccl_tests_columns(std::string_view line);

class NcclTestsRows {
 public:
  NcclTestsRows(const NcclTestsColumns& columns, Notes& notes) : columns_(columns), notes_(notes) {}

  // Text that is no NCCL message. whole = the line ends behind it, not another thread's message.
  void text(std::string_view text, std::size_t line, bool whole);
  std::vector<NcclTestsRow> finish();

 private:
  void close();
  std::optional<NcclTestsRow> row_of_fields();
  std::optional<NcclTestsHalf> half_at(std::size_t first);

  NcclTestsColumns columns_;
  Notes& notes_;
  std::vector<NcclTestsRow> rows_;
  std::vector<std::string> fields_;  // of the row under way
  std::size_t line_ = 0;             // where it began
  bool far_half_ = false;            // its first half stands where the second belongs
};

}  // namespace railyard::calibrate
