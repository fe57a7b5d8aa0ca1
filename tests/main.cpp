#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/skip.h"

namespace railyard::tests {
namespace {

int skipped = 0;
unsigned selected = 0;

struct CountSelected : doctest::IReporter {
  explicit CountSelected(const doctest::ContextOptions& /*options*/) {}
  void report_query(const doctest::QueryData& /*data*/) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    selected = stats.numTestCasesPassingFilters;
  }
  void test_case_start(const doctest::TestCaseData& /*data*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*data*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*exception*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*signature*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*data*/) override {}
  void log_message(const doctest::MessageData& /*data*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*data*/) override {}
};

DOCTEST_REGISTER_LISTENER("count-selected", 1, CountSelected);

}  // namespace

void skip(const std::string& why) {
  ++skipped;
  MESSAGE("skipped: " << why);
}

void skip_oracle(const std::string& why) {
  const char* required = std::getenv("RAILYARD_REQUIRE_ORACLE");
  if (required != nullptr && std::string(required) == "1") {
    FAIL("RAILYARD_REQUIRE_ORACLE=1, but " << why);
  }
  skip(why);
}

}  // namespace railyard::tests

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int status = context.run();
  // Set by ctest, which runs one test case per process: the status it takes for "skipped".
  const char* skip_status = std::getenv("RAILYARD_SKIP_STATUS");
  if (status != 0 || context.shouldExit() || skip_status == nullptr) return status;
  if (railyard::tests::selected == 0) {
    std::cerr << "no test case has this name: names cannot hold ';' or '\\'\n";
    return 1;
  }
  return railyard::tests::skipped > 0 ? std::atoi(skip_status) : 0;
}
