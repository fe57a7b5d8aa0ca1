// backend: gloo.
#include <doctest/doctest.h>

#include <string>

#include "scenarios/run.h"
#include "tests/scenarios/helpers.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using tests::error_of_run;
using tests::full_scenario;
using tests::good_run;

constexpr double kGoodput = 0.941 * 200e6 / 8;  // links.nic.efficiency of the profile, 200 Mb/s

std::string hosts(int nodes, const std::string& more) {
  return "railyard: 1\ncluster: {machine: cpu-host, nodes: " + std::to_string(nodes) +
         ", gpus_per_node: 1, fabric: {kind: switch, link_rate: 200Mb/s}}\n" + more;
}

double seconds(const std::string& text) {
  const RunResult result = good_run(full_scenario(text));
  REQUIRE(result.collectives.size() == 1);
  return sim::to_seconds(result.collectives[0].time);
}

TEST_CASE("gloo: a large AllReduce fills the link, a small one waits for messages") {
  for (const int nodes : {2, 4}) {
    const double wire = 2.0 * (nodes - 1) / nodes * (64 << 20) / kGoodput;
    const double large = seconds(
        hosts(nodes, "backend: gloo\ncollectives: [{collective: AllReduce, sizes: [64MiB]}]\n"));
    CHECK(large > wire);
    CHECK(large < 1.02 * wire);
    const double small = seconds(
        hosts(nodes, "backend: gloo\ncollectives: [{collective: AllReduce, sizes: [64B]}]\n"));
    // 2 (n - 1) hops in a row, each of at least the stacks' 15 us, two device threads' 5 us and
    // one wake-up of 10 us.
    CHECK(small > 2 * (nodes - 1) * 35e-6);
    CHECK(small < 2 * (nodes - 1) * 100e-6 + 30e-6);
  }
}

TEST_CASE("gloo: its other collectives, and bcube") {
  const std::string head = "backend: gloo\ncollectives: [{collective: ";
  const double part = (16 << 20) / kGoodput;
  // The nccl-tests size of AllGather counts all blocks: three of four arrive from elsewhere.
  CHECK(seconds(hosts(4, head + "AllGather, sizes: [16MiB]}]\n")) ==
        doctest::Approx(0.75 * part).epsilon(0.02));
  // Two rounds of a tree, whole buffers stored before they go on; the root sends both at once.
  CHECK(seconds(hosts(4, head + "Broadcast, sizes: [16MiB]}]\n")) > 2.0 * part);
  CHECK(seconds(hosts(2, head + "Broadcast, sizes: [16MiB]}]\n")) ==
        doctest::Approx(part).epsilon(0.02));
  CHECK(seconds(hosts(4, head + "Reduce, sizes: [16MiB]}]\n")) > 1.5 * part);
  // Recursive halving moves as much as the ring, in two steps of 1/2 and 1/4.
  const double cube = seconds(
      hosts(4, "backend: gloo-bcube\ncollectives: [{collective: AllReduce, sizes: [16MiB]}]\n"));
  CHECK(cube == doctest::Approx(1.5 * part).epsilon(0.03));
}

TEST_CASE("gloo: the result names the algorithm and how busy the processor is") {
  const RunResult result = good_run(full_scenario(
      hosts(2, "backend: gloo\ncollectives: [{collective: AllReduce, sizes: [4MiB]}]\n")));
  CHECK(result.collectives[0].algorithm == sim::Algorithm::gloo);
  bool told = false;
  for (const std::string& note : result.notes)
    told = told || note.starts_with("Gloo keeps the busiest rank's processor at work for ");
  CHECK(told);
}

TEST_CASE("gloo: a DDP step over it ends, and takes at least its network time") {
  const RunResult result = good_run(full_scenario(
      hosts(2,
            "backend: gloo\nddp: {model: resnet18, batch_per_gpu: 2, precision: fp32, optimizer: "
            "sgd, iterations: 3}\n")));
  REQUIRE(result.ddp);
  CHECK(sim::to_seconds(result.ddp->step_time) > 11'689'512 * 4.0 / kGoodput);
}

TEST_CASE("gloo: processes of one host need no network") {
  const double inside = seconds(
      "railyard: 1\ncluster: {machine: cpu-host, nodes: 1, gpus_per_node: 4}\nbackend: gloo\n"
      "collectives: [{collective: AllReduce, sizes: [16MiB]}]\n");
  CHECK(inside == doctest::Approx(1.5 * (16 << 20) / 2.4e9).epsilon(0.4));  // gloo.stream_rate
}

TEST_CASE("gloo: errors") {
  CHECK(tests::error_of("railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nbackend: gloo\n"
                        "nccl: auto\ncollectives: [{collective: AllReduce, sizes: [1MiB]}]\n") ==
        "s.yaml:1:1: 'nccl' and 'backend: gloo' exclude each other (an included 'nccl' is removed "
        "with 'nccl: ~')");
  CHECK(tests::error_of(hosts(2,
                              "nccl: auto\ncollectives: [{collective: AllReduce, sizes: "
                              "[1MiB]}]\n")) ==
        "s.yaml:1:1: machine 'cpu-host' has no GPUs for NCCL; 'backend: gloo' runs on processors");
  CHECK(tests::error_of(hosts(2, "backend: mpi\ntraffic: {}\n")).find("back end") !=
        std::string::npos);
  CHECK(
      error_of_run(full_scenario(hosts(
                       2, "backend: gloo\ncollectives: [{collective: AllToAll, sizes: [1MiB]}]\n")))
          .find("Gloo's AllToAll is not modelled; there are AllReduce, AllGather, Broadcast and "
                "Reduce") != std::string::npos);
}

}  // namespace
}  // namespace railyard::scenarios
