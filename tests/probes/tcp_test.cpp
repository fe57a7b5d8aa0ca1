#include <doctest/doctest.h>

#include <string>

#include "tests/probes/support.h"

namespace tests = railyard::tests;

TEST_CASE("probe_tcp measures over the loopback") {
  const tests::ProgramRun run =
      tests::run_program(RAILYARD_PROBE_TCP
                         " --loopback --seconds 0.05 --pingpong 1,4K --sizes 1K,64K "
                         "--sockets 1,2 --threads 1,2");
  CAPTURE(run.output);
  CHECK(run.status == 0);
  CHECK(run.output.find("tcp.pingpong") != std::string::npos);
  CHECK(run.output.find("sockets=2 threads=2") != std::string::npos);
  CHECK(run.output.find("sockets=1 threads=2") == std::string::npos);  // no thread without a socket
  CHECK(run.output.find("fits: time = latency + bytes / bandwidth") != std::string::npos);
}

TEST_CASE("probe_tcp's errors") {
  const auto output = [](const std::string& arguments, int status) {
    const tests::ProgramRun run = tests::run_program(RAILYARD_PROBE_TCP " " + arguments);
    CHECK(run.status == status);
    return run.output;
  };
  CHECK(output("", 2) ==
        "probe_tcp: give one of --listen, --connect HOST and --loopback (see probe_tcp --help)\n");
  CHECK(output("--loopback --sockets 0", 2) ==
        "probe_tcp: sizes, sockets and threads are 1 or more (see probe_tcp --help)\n");
  CHECK(output("--loopback --seconds 0.01 --pingpong 1 --sizes 1K --sockets 1 --threads 1 "
               "--json /nonexistent/x.json",
               1)
            .find("probe_tcp: cannot write /nonexistent/x.json: No such file or directory\n") !=
        std::string::npos);
  CHECK(output("--help", 0).find("--sockets LIST") != std::string::npos);
}
