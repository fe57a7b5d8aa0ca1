#include "tools/cli/exit_status.h"

#include <doctest/doctest.h>

namespace railyard::cli {

TEST_CASE("exit status of every kind of error") {
  CHECK(exit_status(sim::ErrorCode::bad_input) == 1);
  CHECK(exit_status(sim::ErrorCode::unsupported) == 1);
  CHECK(exit_status(sim::ErrorCode::io) == 1);
  CHECK(exit_status(sim::ErrorCode::would_hang) == 3);
  CHECK(exit_status(sim::ErrorCode::interrupted) == 130);
  CHECK(fail({sim::ErrorCode::would_hang, "a test prints this line", ""}) == 3);
  CHECK(fail_internal("a test prints this line") == 70);
  CHECK(finish_output(3) == 3);
}

}  // namespace railyard::cli
