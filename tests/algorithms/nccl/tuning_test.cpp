// The cost table against numbers that NCCL itself prints (facts recorded from its INIT table, with
// one digit after the point), the constants by version, and the time of a call.
#include "algorithms/nccl/tuning.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/algorithms/nccl/machines.h"

namespace railyard::algorithms::nccl {
namespace {

using sim::GraphPattern;

std::string cell(const CommPlan& plan, Function f, Algorithm a, Protocol p) {
  return fmt::format("{:.1f}/{:.1f}", plan.tuning.latency[index_of(f)][index_of(a)][index_of(p)],
                     plan.tuning.bandwidth[index_of(f)][index_of(a)][index_of(p)]);
}

std::string row(const CommPlan& plan, Function f, Algorithm a) {
  return cell(plan, f, a, Protocol::ll) + ", " + cell(plan, f, a, Protocol::ll128) + ", " +
         cell(plan, f, a, Protocol::simple);
}

std::string simple(const CommPlan& plan, Function f, Algorithm a) {
  return cell(plan, f, a, Protocol::simple);
}

constexpr Function kAr = Function::all_reduce;
constexpr Function kAg = Function::all_gather;

TEST_CASE("NCCL cost table: one node of H100") {
  const CommPlan eight = plan_of(machine(h100(1)));
  CHECK(row(eight, kAr, Algorithm::tree) == "15.2/43.6, 31.5/128.8, 64.4/165.6");
  CHECK(row(eight, kAr, Algorithm::ring) == "15.0/80.6, 40.6/189.3, 56.0/205.7");
  CHECK(simple(eight, kAr, Algorithm::nvls) == "25.0/272.0");
  CHECK(row(eight, kAg, Algorithm::ring) == "10.8/161.1, 27.3/378.5, 32.2/411.4");
  CHECK(simple(eight, kAg, Algorithm::nvls) == "25.0/208.2");
  CHECK(row(eight, Function::broadcast, Algorithm::ring) == "7.2/141.0, 15.9/331.2, 11.8/360.0");
  CHECK(eight.info.channels == 24);
  CHECK(eight.info.nvls_channels == 16);
  CHECK(eight.info.p2p_channels == 32);
  CHECK(eight.info.p2p_channels_per_peer == 32);

  MachineSpec four = h100(1);
  four.gpus = 4;
  four.nvls = {4, 60, 60};
  CHECK(row(plan_of(machine(four)), kAr, Algorithm::ring) == "10.2/94.0, 25.4/220.8, 28.8/240.0");
  CHECK(simple(plan_of(machine(four)), kAr, Algorithm::nvls) == "25.0/160.0");

  MachineSpec two = h100(1);
  two.gpus = 2;
  two.tree = {12, 60, 60, GraphPattern::balanced_tree};
  two.nvls = {2, 60, 60};
  CHECK(row(plan_of(machine(two)), kAr, Algorithm::ring) == "7.8/141.0, 17.8/331.2, 15.2/360.0");
  CHECK(simple(plan_of(machine(two)), kAr, Algorithm::nvls) == "25.0/102.0");
}

TEST_CASE("NCCL cost table: other GPUs on one node") {
  MachineSpec a100{
      .capability = 80, .ring = {12, 20, 20}, .tree = {12, 20, 20, GraphPattern::balanced_tree}};
  CHECK(row(plan_of(machine(a100)), kAr, Algorithm::tree) == "15.2/29.1, 31.5/85.9, 64.4/110.4");
  CHECK(row(plan_of(machine(a100)), kAr, Algorithm::ring) == "15.0/50.1, 40.6/126.2, 56.0/137.1");

  MachineSpec v100{
      .capability = 70, .ring = {6, 20, 20}, .tree = {6, 20, 20, GraphPattern::balanced_tree}};
  CHECK(row(plan_of(machine(v100)), kAr, Algorithm::ring) == "15.0/22.3, 40.6/63.1, 56.0/68.6");

  MachineSpec b200{.capability = 100,
                   .ring = {16, 45, 45},
                   .tree = {16, 45, 45, GraphPattern::balanced_tree},
                   .nvls = {8, 80, 90}};
  const CommPlan plan = plan_of(machine(b200));
  CHECK(row(plan, kAr, Algorithm::tree) == "15.2/87.2, 31.5/257.6, 64.4/331.2");
  CHECK(row(plan, kAr, Algorithm::ring) == "15.0/161.1, 40.6/365.7, 56.0/411.4");
  CHECK(simple(plan, kAr, Algorithm::nvls) == "25.0/411.4");
  CHECK(plan.info.channels == 32);
  CHECK(plan.info.nvls_channels == 24);

  MachineSpec rack = b200;
  rack.gpus = 72;
  rack.nvls = {32, 20, 40};
  rack.arch = CpuArch::arm;
  rack.vendor = CpuVendor::undefined;
  const CommPlan nvl72 = plan_of(machine(rack));
  CHECK(row(nvl72, kAr, Algorithm::tree) == "92.0/87.2, 191.5/257.6, 576.4/331.2");
  CHECK(row(nvl72, kAr, Algorithm::ring) == "91.8/143.0, 283.8/324.5, 491.2/365.1");
  CHECK(simple(nvl72, kAr, Algorithm::nvls) == "25.0/465.3");
}

TEST_CASE("NCCL cost table: several nodes of H100 and B200") {
  const CommPlan two = plan_of(machine(h100(2)));
  CHECK(row(two, kAr, Algorithm::tree) == "25.2/16.6, 48.5/124.8, 92.4/140.8");
  CHECK(row(two, kAr, Algorithm::ring) == "40.0/20.8, 75.2/156.6, 131.6/204.8");
  CHECK(simple(two, kAr, Algorithm::nvls_tree) == "66.8/246.2");
  CHECK(row(two, kAg, Algorithm::ring) == "23.3/41.6, 44.6/313.2, 70.0/409.6");
  CHECK(two.info.channels == 16);
  CHECK(two.info.p2p_channels_per_peer == 4);
  const CommPlan four = plan_of(machine(h100(4)));
  CHECK(row(four, kAr, Algorithm::tree) == "35.2/8.7, 65.5/98.6, 120.4/122.4");
  CHECK(row(four, kAr, Algorithm::ring) == "78.8/10.5, 144.4/151.5, 282.8/198.2");
  CHECK(simple(four, kAr, Algorithm::nvls_tree) == "108.6/187.9");
  const CommPlan eight = plan_of(machine(h100(8)));
  CHECK(row(eight, kAr, Algorithm::ring) == "156.4/10.4, 282.8/149.1, 585.2/195.0");
  CHECK(simple(eight, kAr, Algorithm::nvls_tree) == "150.4/184.9");
  CHECK(simple(plan_of(machine(h100(16))), kAr, Algorithm::nvls_tree) == "192.2/183.4");
  const CommPlan many = plan_of(machine(h100(64)));
  CHECK(simple(many, kAr, Algorithm::nvls_tree) == "275.8/182.4");
  CHECK(simple(many, kAr, Algorithm::ring) == "4818.8/192.4");

  MachineSpec b200 = h100(2);
  b200.capability = 100;
  b200.inter = sim::PathType::pxn;
  b200.tree = {8, 96, 48, GraphPattern::tree};
  b200.nvls = {8, 48, 48};
  CHECK(simple(plan_of(machine(b200)), kAr, Algorithm::ring) == "131.6/204.8");
  CHECK(simple(plan_of(machine(b200)), kAr, Algorithm::nvls_tree) == "66.8/265.2");
  b200.nodes = 4;
  CHECK(simple(plan_of(machine(b200)), kAr, Algorithm::nvls_tree) == "108.6/198.2");
}

TEST_CASE("NCCL cost table: A100 with AMD CPUs, and one GPU per node") {
  MachineSpec a100{.nodes = 2,
                   .capability = 80,
                   .ring = {8, 24, 24},
                   .tree = {8, 30, 24, GraphPattern::balanced_tree},
                   .vendor = CpuVendor::amd};
  CHECK(row(plan_of(machine(a100)), kAr, Algorithm::tree) == "25.2/11.2, 48.5/80.0, 92.4/94.4");
  CHECK(row(plan_of(machine(a100)), kAr, Algorithm::ring) == "68.0/12.0, 78.0/85.3, 204.4/102.4");
  a100.nodes = 4;
  CHECK(row(plan_of(machine(a100)), kAr, Algorithm::tree) == "35.2/9.5, 65.5/66.8, 120.4/71.2");
  CHECK(row(plan_of(machine(a100)), kAr, Algorithm::ring) == "134.8/9.8, 150.0/82.6, 428.4/99.1");

  MachineSpec single{.nodes = 16,
                     .gpus = 1,
                     .ring = {2, 24, 24},
                     .tree = {2, 48, 24, GraphPattern::tree},
                     .intra = sim::PathType::loc};
  const CommPlan sixteen = plan_of(machine(single));
  CHECK(row(sixteen, kAr, Algorithm::tree) == "46.8/4.9, 82.0/17.6, 120.4/18.8");
  CHECK(row(sixteen, kAr, Algorithm::ring) == "156.6/10.9, 269.0/23.6, 428.4/25.6");
  CHECK(simple(sixteen, kAg, Algorithm::pat) == "68.8/36.0");
  CHECK(simple(sixteen, Function::reduce_scatter, Algorithm::pat) == "68.8/36.0");
  CHECK(sixteen.info.channels == 4);
  single.nodes = 2;
  CHECK(row(plan_of(machine(single)), kAr, Algorithm::ring) == "16.6/24.0, 31.0/44.2, 36.4/48.0");
  CHECK(row(plan_of(machine(single)), kAg, Algorithm::ring) == "11.6/48.0, 22.5/88.3, 22.4/96.0");
  CHECK(simple(plan_of(machine(single)), kAg, Algorithm::pat) == "17.6/72.0");
  single.nodes = 64;
  CHECK(simple(plan_of(machine(single)), kAg, Algorithm::pat) == "211.2/36.0");
}

TEST_CASE("NCCL's model: variables that change it") {
  const CommInputs inputs = machine(h100(2));
  // Per message 5 us, three times that under Simple: 28 hops inside nodes of 30 all in all.
  const CommPlan slow = plan_of(inputs, {{"NCCL_NET_OVERHEAD", "5000"}});
  CHECK(cell(slow, kAr, Algorithm::ring, Protocol::ll) == "152.0/20.8");
  CHECK(cell(slow, kAr, Algorithm::ring, Protocol::simple) == "456.4/204.8");
  const auto threads = [&](const char* asked) {
    return plan_of(inputs, {{"NCCL_NTHREADS", asked}})
        .tuning.max_threads[index_of(Algorithm::ring)][index_of(Protocol::ll)];
  };
  CHECK(threads("256") == 256);
  CHECK(threads("100") == 512);
  CHECK(threads("32") == 64);
  CHECK(threads("1024") == 512);
  CHECK(threads("0") == 512);
  const CommPlan few = plan_of(inputs, {{"NCCL_THREAD_THRESHOLDS", "1 2 3 4 -1"}});
  CHECK(few.tuning.thread_thresholds[index_of(Algorithm::tree)] ==
        std::array<std::int64_t, 3>{1, 2, 3});
  CHECK(few.tuning.thread_thresholds[index_of(Algorithm::ring)] ==
        std::array<std::int64_t, 3>{4, 8, 64});
}

TEST_CASE("NCCL's constants by version") {
  const auto at = [](std::int32_t major, std::int32_t minor, std::int32_t patch) {
    return *constants_for({major, minor, patch}).constants;
  };
  constexpr std::size_t s = index_of(Protocol::simple);
  CHECK(at(2, 30, 7).nvls_tree_cap[kBlackwell][2] == 80);
  CHECK(at(2, 29, 7).nvls_tree_cap[kBlackwell][2] == 43.8);
  CHECK(at(2, 28, 3).nvls_tree_cap[kBlackwell][2] == 43.1);
  CHECK(at(2, 29, 2).ring_ll128_cap[kBlackwell][1] == 34.6);
  CHECK(at(2, 28, 3).ring_ll128_cap[kBlackwell][1] == 73.4);
  CHECK(at(2, 28, 7).hop_latency[kHopNet][index_of(Algorithm::nvls_tree)][s] == 14);
  CHECK(at(2, 28, 9).hop_latency[kHopNet][index_of(Algorithm::nvls_tree)][s] == 20.9F);
  CHECK(at(2, 27, 7).tree_cap[kBlackwell][0] == 77.4);
  CHECK(at(2, 23, 4).base_latency[index_of(Algorithm::tree)][s] == 8.4F);
  CHECK(at(2, 22, 3).hop_latency[kHopPci][index_of(Algorithm::tree)][s] == 28);
  CHECK(at(2, 21, 5).ll_max[kHopper][0] == 141);
  CHECK(at(2, 20, 5).ll_max[kHopper][0] == 87.7);
  CHECK(at(2, 20, 5).hop_latency[kHopNvlink][index_of(Algorithm::nvls)][s] == 23);
  CHECK(at(2, 18, 3).base_latency[index_of(Algorithm::nvls)][s] == 23);
  CHECK(at(2, 18, 3).hop_latency[kHopNet][index_of(Algorithm::nvls_tree)][s] == 19);
  for (const TuningConstants& entry : all_constants())
    CHECK(constants_for(entry.since).constants == &entry);
}

TEST_CASE("NCCL's constants: versions outside the table take the nearest and say so") {
  CHECK(constants_for({2, 24, 1}).note.empty());
  CHECK(constants_for({2, 10, 3}).constants == &all_constants().front());
  CHECK(constants_for({2, 10, 3}).note ==
        "NCCL 2.10.3 is outside the table (2.18.3 to 2.30.7): its constants are taken to be those "
        "of 2.18.3");
  CHECK(constants_for({2, 31, 0}).constants == &all_constants().back());
  CHECK(constants_for({2, 31, 0}).note.ends_with("those of 2.30.7"));
  CommInputs old = machine(h100(1));
  old.version = {2, 27, 3};
  const CommPlan plan = plan_of(old);
  REQUIRE(plan.notes.size() == 1);
  CHECK(plan.notes.front().find("threads and chunks are those of") != std::string::npos);
}

TEST_CASE("NCCL's older models") {
  CommInputs inputs = machine(h100(1));
  inputs.version = {2, 20, 5};
  // Ring LL a quarter of 360, capped at 87.7; NVLS 8 x min(40, 60) x 5/6; tree hop 28.
  const CommPlan old = plan_of(inputs);
  CHECK(row(old, kAr, Algorithm::ring) == "15.0/50.1, 40.6/189.3, 56.0/205.7");
  CHECK(simple(old, kAr, Algorithm::nvls) == "23.0/266.7");
  CHECK(simple(old, kAr, Algorithm::tree) == "392.0/165.6");
  inputs.version = {2, 18, 3};
  CHECK(simple(plan_of(inputs), kAr, Algorithm::nvls) == "23.0/266.7");
  inputs.version = {2, 27, 3};
  CHECK(simple(plan_of(inputs), kAg, Algorithm::nvls) == "25.0/280.0");  // 8 x 40 x 7/8
  // Without an enabled algorithm the ring came back until 2.23.
  inputs.version = {2, 23, 4};
  const auto bandwidth = [](const CommPlan& plan) {
    return plan.tuning.bandwidth[index_of(kAg)][index_of(Algorithm::ring)][index_of(Protocol::ll)];
  };
  CHECK(bandwidth(plan_of(inputs, {{"NCCL_ALGO", "tree"}})) > 0);
  inputs.version = {2, 24, 3};
  CHECK(bandwidth(plan_of(inputs, {{"NCCL_ALGO", "tree"}})) == 0);
}

TEST_CASE("NCCL versions as text") {
  CHECK(parse_version("2.18.3").value() == Version{2, 18, 3});
  CHECK(parse_version("2.30").value() == Version{2, 30, 0});
  CHECK(to_text(Version{2, 28, 9}) == "2.28.9");
  for (const char* text : {"", "2", "2.", "2.30.", "2.30.7.1", "v2.30", "2.x"})
    CHECK(parse_version(text).error().text() ==
          "'" + std::string(text) + "' is no NCCL version (expected like 2.30.7 or 2.30)");
}

}  // namespace
}  // namespace railyard::algorithms::nccl
