// Every probe on a machine without what it measures: one line that says so, and exit status 1.
#include <doctest/doctest.h>

#include <string>

#include "tests/probes/support.h"
#include "tests/skip.h"

namespace tests = railyard::tests;

namespace {

bool one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

}  // namespace

TEST_CASE("probe_cuda without a GPU") {
#ifndef RAILYARD_PROBE_CUDA
  RAILYARD_SKIP("probe_cuda is not built: no CUDA toolkit");
#else
  const tests::ProgramRun run = tests::run_program("CUDA_VISIBLE_DEVICES= " RAILYARD_PROBE_CUDA);
  CAPTURE(run.output);
  CHECK(run.status == 1);
  CHECK(run.output.rfind("probe_cuda: no CUDA device: ", 0) == 0);
  CHECK(one_line(run.output));
  const tests::ProgramRun wrong = tests::run_program(RAILYARD_PROBE_CUDA " --parts flags,cookies");
  CHECK(wrong.status == 2);
  CHECK(wrong.output == "probe_cuda: there is no part 'cookies' (see probe_cuda --help)\n");
#endif
}
