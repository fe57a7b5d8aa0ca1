#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "calibrate/readers/probe.h"
#include "tests/probes/support.h"
#include "tests/skip.h"

namespace calibrate = railyard::calibrate;
namespace tests = railyard::tests;

#ifndef RAILYARD_PROBE_GLOO
#define RAILYARD_PROBE_GLOO ""
#endif

namespace {

std::string program() { return RAILYARD_PROBE_GLOO; }

// "AllReduce ring", ... of a run with so many ranks.
std::set<std::string> measured_with(int ranks) {
  char path[] = "/tmp/railyard-probe-XXXXXX";
  if (mkstemp(path) < 0) return {};
  const tests::ProgramRun run =
      tests::run_program(program() + " --seconds 0.001 --sizes 1K,8K --ranks " +
                         std::to_string(ranks) + " --json " + path);
  CAPTURE(run.output);
  CHECK(run.status == 0);
  const auto report = calibrate::read_probe_file(path);
  std::remove(path);
  std::set<std::string> found;
  if (!report.ok()) return found;
  for (const calibrate::ProbeRow& row : report.value().rows) {
    if (row.kind != "gloo.operation") continue;
    CHECK(row.labels.at("ranks") == std::to_string(ranks));
    found.insert(row.labels.at("operation") + " " + row.labels.at("algorithm"));
  }
  return found;
}

}  // namespace

TEST_CASE("probe_gloo times every algorithm that the number of ranks allows") {
  if (program().empty()) RAILYARD_SKIP("probe_gloo is not built: no Gloo headers");
  const std::set<std::string> two = measured_with(2);
  CHECK(two.size() == 10);
  CHECK(two.count("AllReduce halving-doubling") == 1);
  CHECK(two.count("AllReduce bcube") == 1);
  CHECK(two.count("AllGather segmented") == 1);
  CHECK(two.count("Broadcast tree") == 1);
  const std::set<std::string> three = measured_with(3);
  CHECK(three.size() == 9);
  CHECK(three.count("AllReduce bcube") == 0);  // pairs up the ranks
}

TEST_CASE("probe_gloo measures the algorithms that are asked for, and their processor time") {
  if (program().empty()) RAILYARD_SKIP("probe_gloo is not built: no Gloo headers");
  char path[] = "/tmp/railyard-probe-XXXXXX";
  REQUIRE(mkstemp(path) >= 0);
  const tests::ProgramRun run =
      tests::run_program(program() + " --seconds 0.001 --pause 0.001 --sizes 8K --ranks 2 --only " +
                         "AllReduce/segmented-ring,Broadcast/tree --json " + path);
  CAPTURE(run.output);
  CHECK(run.status == 0);
  const auto report = calibrate::read_probe_file(path);
  std::remove(path);
  REQUIRE(report.ok());
  std::set<std::string> found;
  for (const calibrate::ProbeRow& row : report.value().rows) {
    if (row.kind == "gloo.operation") found.insert(row.labels.at("algorithm"));
    if (row.kind != "gloo.processor") continue;
    CHECK(row.labels.at("bytes") == "8192");
    CHECK(row.value > 0);
  }
  CHECK(found == std::set<std::string>{"segmented-ring", "tree"});
}

TEST_CASE("probe_gloo's errors") {
  if (program().empty()) RAILYARD_SKIP("probe_gloo is not built: no Gloo headers");
  const tests::ProgramRun none = tests::run_program(program());
  CHECK(none.status == 2);
  CHECK(none.output ==
        "probe_gloo: give --ranks N for one host, or --rank, --world and --address (see probe_gloo "
        "--help)\n");
  CHECK(tests::run_program(program() + " --ranks 1").output ==
        "probe_gloo: --ranks is 2 to 256 (see probe_gloo --help)\n");
  CHECK(tests::run_program(program() + " --ranks 2 --only AllReduce/tree").output ==
        "probe_gloo: --only has no 'AllReduce/tree'; there are AllReduce/ring, "
        "AllReduce/ring-chunked, AllReduce/halving-doubling, AllReduce/bcube, "
        "AllReduce/segmented-ring, AllReduce/segmented-bcube, AllGather/ring, AllGather/segmented, "
        "Broadcast/one-to-all, Broadcast/tree (see probe_gloo --help)\n");
  const tests::ProgramRun wrong =
      tests::run_program(program() + " --ranks 2 --interface nonexistent0");
  CAPTURE(wrong.output);
  CHECK(wrong.status == 1);
  CHECK(wrong.output.find("probe_gloo: rank 0 ended with status 1\n") != std::string::npos);
}
