// Leaving a test case that cannot run here, visibly: ctest lists it as skipped, never as passed.
//
//   TEST_CASE("[oracle] buckets are PyTorch's own") {
//     if (!has_torch()) RAILYARD_SKIP_ORACLE("no python3 with torch");
//     ...
//
// RAILYARD_SKIP        something optional is absent (the reference data, a tool).
// RAILYARD_SKIP_ORACLE the same for an oracle; with RAILYARD_REQUIRE_ORACLE=1 it fails instead.
#pragma once

#include <string>

namespace railyard::tests {

void skip(const std::string& why);
void skip_oracle(const std::string& why);

}  // namespace railyard::tests

#define RAILYARD_SKIP(why)        \
  do {                            \
    ::railyard::tests::skip(why); \
    return;                       \
  } while (false)

#define RAILYARD_SKIP_ORACLE(why)        \
  do {                                   \
    ::railyard::tests::skip_oracle(why); \
    return;                              \
  } while (false)
