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

TEST_CASE("probe_nccl without a GPU or without NCCL") {
#ifndef RAILYARD_PROBE_NCCL
  RAILYARD_SKIP("probe_nccl is not built: no CUDA toolkit");
#else
  const auto run = [](const std::string& arguments) {
    return tests::run_program("CUDA_VISIBLE_DEVICES= " RAILYARD_PROBE_NCCL " " + arguments);
  };
  const tests::ProgramRun no_device = run("");
  CAPTURE(no_device.output);
  CHECK(no_device.status == 1);
  CHECK(no_device.output.rfind("probe_nccl: no CUDA device: ", 0) == 0);
  CHECK(one_line(no_device.output));

  const tests::ProgramRun no_library = run("--nccl-version --nccl /nonexistent/libnccl.so.2");
  CHECK(no_library.status == 1);
  CHECK(no_library.output ==
        "probe_nccl: NCCL cannot be loaded (--nccl PATH, NCCL_HOME): /nonexistent/libnccl.so.2: "
        "cannot open shared object file: No such file or directory\n");
  CHECK(run("--operations AllReduce,Sum").output ==
        "probe_nccl: there is no operation 'Sum' (see probe_nccl --help)\n");
  CHECK(run("--settings Ring/LL256").output ==
        "probe_nccl: there is no setting 'Ring/LL256' (see probe_nccl --help)\n");
  CHECK(run("--ranks-per-gpu 2 --rank 0 --world 2 --address localhost").status == 2);
  CHECK(run("--child-of-setting default").output ==
        "probe_nccl: --child-of-setting is for the program itself (see probe_nccl --help)\n");
#endif
}

TEST_CASE("probe_verbs without an RDMA device") {
#ifndef RAILYARD_PROBE_VERBS
  RAILYARD_SKIP("probe_verbs is not built: no headers of rdma-core");
#else
  const tests::ProgramRun run = tests::run_program(RAILYARD_PROBE_VERBS " --loopback");
  CAPTURE(run.output);
  if (run.status == 0) RAILYARD_SKIP("this machine has an RDMA device");
  CHECK(run.status == 1);
  CHECK(run.output == "probe_verbs: no RDMA device: the list of the verbs library is empty\n");
  const auto usage = [](const std::string& arguments) {
    const tests::ProgramRun wrong = tests::run_program(RAILYARD_PROBE_VERBS " " + arguments);
    CHECK(wrong.status == 2);
    return wrong.output;
  };
  CHECK(usage("--verbs write,atomic") ==
        "probe_verbs: there is no verb 'atomic'; write, read and send are (see probe_verbs "
        "--help)\n");
  CHECK(usage("--pairs 0") ==
        "probe_verbs: sizes, pairs and depths are 1 or more, and below 2G (see probe_verbs "
        "--help)\n");
#endif
}
