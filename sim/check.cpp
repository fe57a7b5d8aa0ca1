#include "sim/check.h"

#include <fmt/format.h>

namespace railyard::sim {

void check_failed(const char* condition, const char* why, const char* file, int line) {
  throw InternalError(fmt::format("{}:{}: check failed: {} ({})", file, line, why, condition));
}

}  // namespace railyard::sim
