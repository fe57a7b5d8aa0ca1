#include "sim/result.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace railyard::sim {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return bad_input("it is odd", "file:1:2: n");
  return n / 2;
}
Result<int> quarter(int n) {
  RAILYARD_ASSIGN(const int once, half(n));
  RAILYARD_ASSIGN(const int twice, half(once));
  return twice;
}
Result<void> check_quarter(int n) {
  RAILYARD_TRY(half(n));
  RAILYARD_TRY(quarter(n));
  return {};
}

TEST_CASE("result: a value or an error") {
  const Result<int> good = half(4);
  CHECK(good.ok());
  CHECK(static_cast<bool>(good));
  CHECK(good.value() == 2);
  const Result<int> bad = half(3);
  CHECK_FALSE(bad.ok());
  CHECK(bad.error().code == ErrorCode::bad_input);
  CHECK(bad.error().text() == "file:1:2: n: it is odd");
  CHECK(Error{ErrorCode::io, "gone", ""}.text() == "gone");
}

TEST_CASE("result: the macros return the error upwards") {
  CHECK(quarter(8).value() == 2);
  CHECK(quarter(6).error().message == "it is odd");
  CHECK(check_quarter(8).ok());
  CHECK(check_quarter(7).error().message == "it is odd");
  CHECK(check_quarter(6).error().message == "it is odd");
}

TEST_CASE("result: values may be moved out, and need not be copyable") {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  result.value().reset(new int(6));
  const std::unique_ptr<int> taken = std::move(result).value();
  CHECK(*taken == 6);
}

TEST_CASE("result: asking for what is not there is a bug") {
  CHECK_THROWS_AS((void)half(3).value(), InternalError);
  CHECK_THROWS_AS((void)half(4).error(), InternalError);
  CHECK_THROWS_AS((void)Result<void>().error(), InternalError);
  CHECK_THROWS_WITH_AS(check_failed("a == b", "why", "f.cpp", 7),
                       "f.cpp:7: check failed: why (a == b)", InternalError);
}

}  // namespace
}  // namespace railyard::sim
