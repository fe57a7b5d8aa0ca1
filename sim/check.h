// RAILYARD_CHECK: a condition that only a bug of ours can break. On in every build type. A failed
// check throws InternalError, which the command line turns into exit status 70. Never use it for
// the user's input: that is Result<T> (sim/result.h).
#pragma once

#include <stdexcept>
#include <string>

namespace railyard::sim {

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* condition, const char* why, const char* file, int line);

}  // namespace railyard::sim

#define RAILYARD_CHECK(condition, why)                                    \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::railyard::sim::check_failed(#condition, why, __FILE__, __LINE__); \
  } while (false)
