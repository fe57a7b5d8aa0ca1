// What hosts do around the framework: what each habit costs a job whose times without it are known.
#include "scenarios/host.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "scenarios/run.h"
#include "tests/scenarios/helpers.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using sim::microseconds;
using tests::full_scenario;
using tests::good_run;
using tests::run_of;

// A step that the host bounds: batches of one.
const std::string kSmall =
    "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nranks: {count: 8}\n"
    "nccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
    "ddp: {model: resnet50, batch_per_gpu: 1, precision: amp-bf16, optimizer: sgd, iterations: "
    "6}\n";

RunResult with_host(const std::string& host) {
  return good_run(full_scenario(kSmall + "host: " + host + "\n"));
}

sim::Duration lost_to(const RunResult& result, const std::string& what) {
  for (const HostLoss& loss : result.host_losses)
    if (loss.what == what) return loss.total;
  return {};
}

TEST_CASE("host: an empty section changes nothing, and neither do habits that never come due") {
  const RunResult plain = good_run(full_scenario(kSmall));
  CHECK(plain.host_losses.empty());
  for (const char* host : {"{}", "{synchronize_every: 0}", "{cuda_graphs: {after: 6, launch: 1ms}}",
                           "{numa: {bound_to: 0, factor: 1}}", "{print: {every: 100, time: 1s}}"}) {
    CAPTURE(host);
    const RunResult same = with_host(host);
    CHECK(same.trace_hash == plain.trace_hash);
    CHECK(same.ddp->iterations == plain.ddp->iterations);
    CHECK(same.host_losses.empty());
  }
}

TEST_CASE("host: printing reads the loss, then takes its time") {
  const RunResult read = with_host("{synchronize_every: 1}");
  const RunResult printed = with_host("{print: {every: 1, time: 3ms}}");
  CHECK(printed.ddp->step_time - read.ddp->step_time == microseconds(3000));
  CHECK(printed.ddp->iterations.front() == read.ddp->iterations.front());
  CHECK(lost_to(printed, "print") == microseconds(5 * 3000));  // behind all steps but the last
}

TEST_CASE("host: the script's own time, every step") {
  const RunResult read = with_host("{synchronize_every: 1}");
  const RunResult slow = with_host("{synchronize_every: 1, step_overhead: 500us}");
  CHECK(slow.ddp->step_time - read.ddp->step_time == microseconds(500));
  CHECK(lost_to(slow, "script") == microseconds(6 * 500));
}

// The bound of a step without launches: what the compute stream needs, and the exposed rest.
TEST_CASE("host: a CUDA graph makes a launch-bound step as short as its kernels") {
  const RunResult eager = with_host("{synchronize_every: 1}");
  const RunResult graph =
      with_host("{synchronize_every: 1, cuda_graphs: {after: 3, launch: 100us}}");
  CHECK(eager.ddp->bound_by == "host launches");
  for (std::size_t i = 0; i < 3; ++i) CHECK(graph.ddp->iterations[i] == eager.ddp->iterations[i]);
  CHECK(graph.ddp->step_time < eager.ddp->step_time);
  CHECK(graph.ddp->step_time >= microseconds(100) + graph.ddp->compute);
  CHECK(graph.ddp->iterations[4] == graph.ddp->iterations[5]);
  const RunResult later =
      with_host("{synchronize_every: 1, cuda_graphs: {after: 3, launch: 350us}}");
  CHECK(later.ddp->step_time - graph.ddp->step_time == microseconds(250));
}

// GPUs 0 to 3 hang off the first NUMA node of an HGX H100, 4 to 7 off the second.
TEST_CASE("host: threads on another NUMA node are late, and named") {
  const RunResult near = good_run(full_scenario(kSmall));
  const RunResult far = with_host("{numa: {bound_to: 0, factor: 1.5}}");
  const double ratio = sim::to_seconds(far.ddp->step_time) / sim::to_seconds(near.ddp->step_time);
  CHECK(ratio > 1.35);
  CHECK(ratio < 1.55);
  REQUIRE_FALSE(far.late_ranks.empty());
  for (const LateRank& late : far.late_ranks) {
    CHECK(late.rank >= 4);
    CHECK(late.cause == "host thread far from its GPU (launches take 1.5 times as long)");
  }
  const RunResult other = with_host("{numa: {bound_to: 1, factor: 1.5}}");
  REQUIRE_FALSE(other.late_ranks.empty());
  CHECK(other.late_ranks.front().rank < 4);
}

// 1000 MiB in segments of 20 MiB over two steps: 25 each of 2 ms, and 500 MiB at 1 GiB/s.
TEST_CASE("host: an allocator that grows") {
  const RunResult read = with_host("{synchronize_every: 1}");
  const RunResult grown = with_host(
      "{synchronize_every: 1, memory_growth: {size: 1000MiB, allocation: 2ms, steps: 2}}");
  const auto more = [&](const RunResult& result, std::size_t step) {
    return result.ddp->iterations[step] - read.ddp->iterations[step];
  };
  CHECK(more(grown, 0) == microseconds(50'000));
  CHECK(more(grown, 1) == microseconds(50'000));
  CHECK(more(grown, 2) == sim::Duration{});
  const MemoryGrowthSpec registered{.size = sim::bytes(1000 << 20),
                                    .allocation = microseconds(2000),
                                    .steps = 2,
                                    .registration = sim::bytes_per_second(1 << 30)};
  CHECK(growth_time(registered, 1) == microseconds(50'000 + 488'281) + sim::nanoseconds(250));
  CHECK(growth_time(registered, 2) == sim::Duration{});
}

// Eight ranks, 2.30: 1 s and 8 x (1 s / 7000 + 150 us).
TEST_CASE("host: communicators made once delay the first step, made every step, all of them") {
  const RunResult read = with_host("{synchronize_every: 1}");
  const RunResult once = with_host("{synchronize_every: 1, communicators: {create: once}}");
  const RunResult always = with_host("{synchronize_every: 1, communicators: {create: every_step}}");
  const double setup = 1 + 8 * (1.0 / 7000 + 150e-6);
  const auto more = [&](const RunResult& result, std::size_t step) {
    return sim::to_seconds(result.ddp->iterations[step] - read.ddp->iterations[step]);
  };
  CHECK(more(once, 0) == doctest::Approx(setup));
  CHECK(more(once, 5) == 0);
  CHECK(more(always, 5) == doctest::Approx(setup));
  CHECK(sim::to_seconds(lost_to(always, "communicators")) == doctest::Approx(6 * setup));
  const RunResult set = with_host(
      "{synchronize_every: 1, communicators: {create: once, fixed: 100ms, per_rank: 2ms}}");
  CHECK(more(set, 0) == doctest::Approx(0.116));
}

// Two ranks on one node: 4 k + 8 ports when they are made for the k-th time within a minute, so the
// 14th, with 64, is one too many for 60.
TEST_CASE("host: ports run out, and the job ends there") {
  const std::string job =
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nranks: {count: 2}\n"
      "nccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
      "ddp: {model: resnet50, batch_per_gpu: 1, precision: fp32, optimizer: sgd, iterations: 20}\n"
      "host: {communicators: {create: every_step, ports: [50000, 50059]}}\n";
  const RunResult result = run_of(full_scenario(job));
  REQUIRE_FALSE(result.unfinished.empty());
  CHECK(result.unfinished.front() ==
        "node0 needs 64 TCP ports for 1 communicator (2 memberships of ranks, 0 connections to "
        "other nodes, made for the 14th time while closed connections keep theirs for a minute), "
        "but ports 50000 to 50059 are 60: NCCL fails with \"Address already in use\" "
        "(host.communicators.ports, net.ipv4.ip_local_port_range)");
  CHECK_FALSE(result.ddp);
  CHECK(good_run(full_scenario(job, {"ddp.iterations=13"})).ddp);
}

// A ring over two nodes: each of 8 channels leaves each node once. 8 ranks x 4, 8 connections, 8
// that linger and 8 that listen for the root.
TEST_CASE("host: ports of collectives are counted before they start") {
  const std::string text =
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: switch}}\n"
      "ranks: {count: 16}\nnccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
      "collectives: [{collective: AllReduce, sizes: [64MiB]}]\n"
      "host: {communicators: {create: once, ports: [50000, 500%]}}\n";
  const auto with_last = [&](const std::string& last) {
    std::string out = text;
    return full_scenario(out.replace(out.find('%'), 1, last));
  };
  CHECK(good_run(with_last("55")).collectives.size() == 1);
  const RunResult none = run_of(with_last("54"));
  REQUIRE(none.unfinished.size() == 1);
  CHECK(none.unfinished.front().starts_with(
      "node0 needs 56 TCP ports for 1 communicator (8 memberships of ranks, 8 connections to other "
      "nodes), but ports 50000 to 50054 are 55"));
  CHECK(none.collectives.empty());
}

// NVIDIA/nccl#1882: an all-to-all without PXN needs as many times the connections as a node has
// GPUs to each rail. Here 8: every sender to every one of 8 receivers, instead of one relay each.
TEST_CASE("host: PXN saves the ports of an all-to-all") {
  const auto connections = [](const std::string& pxn) {
    const RunResult result = run_of(full_scenario(
        "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: rail-optimised}}\n"
        "ranks: {count: 16}\nnccl: auto\nenv: {NCCL_PXN_DISABLE: \"" +
        pxn +
        "\"}\n"
        "collectives: [{collective: AllToAll, sizes: [64KiB]}]\n"
        "host: {communicators: {create: once, ports: [1, 1]}}\n"));
    REQUIRE(result.unfinished.size() == 1);
    const std::string& line = result.unfinished.front();
    const std::size_t begin = line.find("ranks, ") + 7;
    return std::stoi(line.substr(begin, line.find(' ', begin) - begin));
  };
  CHECK(connections("1") == 64);  // 8 x 8, a channel each
  CHECK(connections("0") < 64);
}

TEST_CASE("host: what is refused") {
  const auto error = [](const std::string& host) {
    return tests::error_of(tests::with(
        "nccl: auto\nddp: {model: resnet50, batch_per_gpu: 1, precision: fp32, optimizer: sgd}\n"
        "host: " +
        host + "\n"));
  };
  CHECK(error("{communicators: {create: once, ports: [9, 8]}}") ==
        "s.yaml:6:45: host.communicators.ports: the first and the last port are expected, from 1 "
        "to 65535: [32768, 60999]");
  CHECK(error("{communicators: {create: sometimes}}").find("time of creation") !=
        std::string::npos);
  CHECK(error("{memory_growth: {size: 1GB, allocation: 1ms, segment: 0B}}") ==
        "s.yaml:6:23: host.memory_growth: 'segment' must be positive");
  CHECK(error("{numa: {bound_to: 0, factor: 0.5}}").find("host.numa.factor") != std::string::npos);
  CHECK(error("{print: {every: 1}}").find("time") != std::string::npos);
  CHECK(error("{coffee: 1}").find("coffee") != std::string::npos);
  const auto run_error = [](const std::string& text) {
    return tests::error_of_run(full_scenario(text));
  };
  CHECK(run_error(kSmall + "host: {numa: {bound_to: 2, factor: 2}}\n")
            .find("host.numa.bound_to: there is no NUMA node 2: a node of this machine has 2") !=
        std::string::npos);
  CHECK(run_error("railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nranks: {count: 8}\n"
                  "nccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
                  "collectives: [{collective: AllReduce, sizes: [1MiB]}]\n"
                  "host: {synchronize_every: 1}\n")
            .find("host: these are habits of training jobs") != std::string::npos);
  std::string unused = kSmall;
  unused.replace(unused.find("iterations: 6"), 13, "iterations: 6, find_unused_parameters: true");
  CHECK(run_error(unused + "host: {cuda_graphs: {launch: 1ms}}\n")
            .find("waits on the host, so no graph can hold it") != std::string::npos);
}

}  // namespace
}  // namespace railyard::scenarios
