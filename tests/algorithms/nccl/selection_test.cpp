// What a call and a group are given: predicted times and choices that NCCL's own code gave
// (recorded as tables), splits of single calls, filters, groups worked out by hand.
#include "algorithms/nccl/selection.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/algorithms/nccl/machines.h"

namespace railyard::algorithms::nccl {
namespace {

constexpr std::int64_t kKi = 1024;
constexpr std::int64_t kMi = 1024 * kKi;
constexpr std::int64_t kGi = 1024 * kMi;

Choice chosen(const CommPlan& plan, const Call& call) {
  const auto choice = choose(plan, call);
  REQUIRE_MESSAGE(choice.ok(), (choice.ok() ? "" : choice.error().text()));
  return choice.value();
}

Call all_reduce(std::int64_t bytes) {
  return {.function = Function::all_reduce, .count = bytes / 4};
}

std::string name_of(const Choice& choice) {
  return fmt::format("{} {}", sim::to_text(choice.algorithm), sim::to_text(choice.protocol));
}

// "T T T R R R NVLS" as the recorded tables have them; whole microseconds from 1000 on.
std::string times(const CommPlan& plan, std::int64_t bytes, Algorithm last) {
  const Choice choice = chosen(plan, all_reduce(bytes));
  std::string text;
  const auto add = [&](Algorithm a, Protocol p) {
    const float time = choice.costs[index_of(a)][index_of(p)];
    text += fmt::format("{}{:.{}f}", text.empty() ? "" : " ", time, bytes >= kGi ? 0 : 1);
  };
  for (const Algorithm a : {Algorithm::tree, Algorithm::ring})
    for (const Protocol p : kAllProtocols) add(a, p);
  add(last, Protocol::simple);
  return text;
}

TEST_CASE("NCCL's predicted times: AllReduce on one H100 node and on two") {
  const CommPlan one = plan_of(machine(h100(1)));
  const auto on_one = [&](std::int64_t bytes) { return times(one, bytes, Algorithm::nvls); };
  CHECK(on_one(8) == "15.2 31.5 64.4 15.0 40.6 56.0 25.0");
  CHECK(on_one(64 * kKi) == "17.7 32.3 65.1 15.8 40.9 56.3 25.2");
  CHECK(on_one(kMi) == "63.3 45.1 77.1 28.0 46.1 61.1 28.9");
  CHECK(on_one(16 * kMi) == "443.0 176.2 209.1 223.2 129.2 137.6 86.7");
  CHECK(on_one(kGi) == "24654 8368 6548 13342 5714 5276 3973");
  const CommPlan two = plan_of(machine(h100(2)));
  const auto on_two = [&](std::int64_t bytes) { return times(two, bytes, Algorithm::nvls_tree); };
  CHECK(on_two(8) == "25.2 48.5 92.4 40.0 75.2 131.6 66.8");
  CHECK(on_two(16 * kKi) == "26.6 48.7 92.6 40.8 75.3 184.3 66.9");
  CHECK(on_two(256 * kKi) == "64.7 52.0 96.1 52.6 76.9 185.5 67.9");
  CHECK(on_two(kMi) == "151.7 62.5 107.3 90.4 81.9 189.4 71.1");
  CHECK(on_two(16 * kMi) == "1149.9 197.9 262.7 846.6 182.3 266.2 134.9");
  CHECK(on_two(kGi) == "64806 8654 7721 51662 6932 5427 4428");
}

// The sizes (powers of two from 8 B) at which the choice changes: "Ring LL, 4 Mi Ring LL128, ...".
std::string changes(const CommPlan& plan, Function function) {
  std::string text;
  std::string last;
  for (std::int64_t bytes = 8; bytes <= 8 * kGi; bytes *= 2) {
    const std::int64_t unit = 4 * (is_gather_or_scatter(function) ? plan.info.ranks : 1);
    const std::string name = name_of(
        chosen(plan, {.function = function, .count = std::max<std::int64_t>(1, bytes / unit)}));
    if (name == last) continue;
    const std::string from =
        bytes < kMi ? fmt::format("{} Ki ", bytes / kKi) : fmt::format("{} Mi ", bytes / kMi);
    text += text.empty() ? name : ", " + from + name;
    last = name;
  }
  return text;
}

TEST_CASE("NCCL's choice by size") {
  const CommPlan one = plan_of(machine(h100(1)));
  CHECK(changes(one, Function::all_reduce) == "Ring LL, 2 Mi NVLS Simple");
  CHECK(changes(one, Function::all_gather) == "Ring LL, 8 Mi Ring LL128, 32 Mi Ring Simple");
  CHECK(changes(one, Function::broadcast) == "Ring LL, 2 Mi Ring Simple");
  MachineSpec a100{.capability = 80,
                   .ring = {12, 20, 20},
                   .tree = {12, 20, 20, sim::GraphPattern::balanced_tree}};
  CHECK(changes(plan_of(machine(a100)), Function::all_reduce) ==
        "Ring LL, 4 Mi Ring LL128, 32 Mi Ring Simple");
  CHECK(changes(plan_of(machine(h100(2))), Function::all_reduce) ==
        "Tree LL, 256 Ki Tree LL128, 2 Mi NVLSTree Simple");
  CHECK(changes(plan_of(machine(h100(4))), Function::all_reduce) ==
        "Tree LL, 256 Ki Tree LL128, 8 Mi NVLSTree Simple, 1024 Mi Ring Simple");
  MachineSpec rack{.gpus = 72,
                   .capability = 100,
                   .ring = {16, 45, 45},
                   .tree = {16, 45, 45, sim::GraphPattern::balanced_tree},
                   .nvls = {32, 20, 40},
                   .arch = CpuArch::arm};
  CHECK(changes(plan_of(machine(rack)), Function::all_reduce) == "NVLS Simple");
  // 64 nodes of 8 H200 in a public log: 16 MiB Tree LL128, 32 MiB NVLSTree Simple.
  const CommPlan large = plan_of(machine(h100(64)));
  CHECK(name_of(chosen(large, all_reduce(16 * kMi))) == "Tree LL128");
  CHECK(name_of(chosen(large, all_reduce(32 * kMi))) == "NVLSTree Simple");
}

std::string parts(const Choice& choice) {
  return fmt::format("{}+{} {}/{}/{} {}", choice.first_channel, choice.channels, choice.lo.bytes,
                     choice.mid.bytes, choice.hi.bytes, choice.threads);
}

TEST_CASE("NCCL's split before 2.29: 16 KiB of traffic for a channel, not 32") {
  const auto split = [](Version version) {
    MachineSpec spec = h100(1);
    spec.nvls = {};
    CommInputs inputs = machine(spec);
    inputs.version = version;
    const CommPlan plan = plan_of(inputs, {{"NCCL_ALGO", "ring"}, {"NCCL_PROTO", "ll128"}});
    return parts(chosen(plan, all_reduce(16 * kKi)));
  };
  // 32 KiB of traffic, at most three channels.
  CHECK(split({2, 29, 2}) == "0+1 16384/0/0 640");
  CHECK(split({2, 28, 9}) == "0+2 8192/0/8192 640");
  CHECK(split({2, 27, 3}) == "0+2 8192/0/8192 640");
}

TEST_CASE("NCCL's notes say what of a plan is another version's") {
  const auto note = [](Version version) {
    CommInputs inputs = machine(h100(1));
    inputs.version = version;
    const CommPlan plan = plan_of(inputs);
    return plan.notes.empty() ? std::string() : plan.notes.back();
  };
  CHECK(note({2, 30, 7}).empty());
  CHECK(note({2, 30, 3}).empty());
  CHECK(note({2, 29, 7}) ==
        "NCCL 2.29.7: the cost table is that version's; other channel counts, threads and chunks "
        "are those of 2.30.7");
  CHECK(note({2, 28, 9}) ==
        "NCCL 2.28.9: the cost table, the channels per peer of sends and receives and the split of "
        "a call over channels are that version's; other channel counts, threads and chunks are "
        "those of 2.30.7");
  CHECK(note({2, 23, 4}) ==
        "NCCL 2.23.4: the cost table and the channels per peer of sends and receives are that "
        "version's, the split of a call over channels is 2.27's; other channel counts, threads and "
        "chunks are those of 2.30.7");
}

TEST_CASE("NCCL's split of one call among 24 channels of 8 ranks") {
  const auto on = [](const char* algorithm, const char* protocol) {
    MachineSpec spec = h100(1);
    spec.nvls = {};
    return plan_of(machine(spec), {{"NCCL_ALGO", algorithm}, {"NCCL_PROTO", protocol}});
  };
  CHECK(parts(chosen(on("ring", "ll"), all_reduce(8))) == "0+1 8/0/0 96");
  CHECK(parts(chosen(on("ring", "ll"), all_reduce(64 * kKi))) == "0+2 32768/0/32768 512");
  CHECK(parts(chosen(on("ring", "ll"), all_reduce(kMi))) == "0+24 45056/45056/12288 512");
  CHECK(parts(chosen(on("ring", "simple"), all_reduce(kMi))) == "0+22 49152/49152/16384 544");
  CHECK(parts(chosen(on("ring", "simple"), all_reduce(16 * kMi))) ==
        "0+24 704512/704512/573440 544");
  CHECK(parts(chosen(on("ring", "simple"), all_reduce(kGi))) ==
        "0+24 44744704/44744704/44613632 544");
  CHECK(parts(chosen(on("tree", "ll"), all_reduce(64 * kKi))) == "0+16 4096/4096/4096 640");
  const Call gather{.function = Function::all_gather, .count = 4 * kMi};
  CHECK(parts(chosen(on("ring", "simple"), gather)) == "0+24 700416/700416/667648 544");
  const Choice broadcast =
      chosen(on("ring", "simple"), {.function = Function::broadcast, .count = 256 * kKi});
  CHECK(broadcast.channels == 16);
  CHECK(broadcast.lo.bytes == 65'536);
  CHECK(broadcast.lo.chunk == 512 * kKi);
  CHECK(chosen(on("tree", "ll128"), all_reduce(24 * 48 * kKi)).lo.chunk == 17'280);
  CHECK(chosen(on("ring", "simple"), all_reduce(kGi)).lo.chunk == 2 * kMi);
}

TEST_CASE("NCCL's choice: what a call cannot use") {
  const CommPlan plan = plan_of(machine(h100(1)));
  const auto nvls = [&](Call call) {
    call.count = 64 * kMi;
    return chosen(plan, call).costs[index_of(Algorithm::nvls)][index_of(Protocol::simple)] >= 0;
  };
  CHECK(nvls({.type = DataType::float32, .reduction = Reduction::sum}));
  CHECK_FALSE(nvls({.type = DataType::float32, .reduction = Reduction::max}));
  CHECK(nvls({.type = DataType::bfloat16, .reduction = Reduction::min}));
  CHECK_FALSE(nvls({.type = DataType::bfloat16, .reduction = Reduction::prod}));
  CHECK_FALSE(nvls({.type = DataType::float16, .reduction = Reduction::avg}));
  CHECK_FALSE(nvls({.type = DataType::int8, .reduction = Reduction::sum}));
  CHECK(nvls({.function = Function::all_gather, .type = DataType::int8}));

  MachineSpec single{.nodes = 16,
                     .gpus = 1,
                     .ring = {2, 24, 24},
                     .tree = {2, 48, 24, sim::GraphPattern::tree},
                     .intra = sim::PathType::loc};
  const CommPlan pat = plan_of(machine(single));
  const Call scatter{.function = Function::reduce_scatter, .count = 64};
  const Choice sum = chosen(pat, scatter);
  CHECK(name_of(sum) == "PAT Simple");
  CHECK(sum.threads == 640);
  CHECK(sum.max_channels == 4);
  CHECK(sum.lo.chunk == 64 * kKi);
  Call average = scatter;
  average.reduction = Reduction::avg;
  CHECK(name_of(chosen(pat, average)) == "Ring LL");

  // fp8 rings of more than 8 ranks cost 1024 times as much.
  const auto ring_ll = [&](DataType type) {
    return chosen(pat, {.count = 64, .type = type})
        .costs[index_of(Algorithm::ring)][index_of(Protocol::ll)];
  };
  CHECK(ring_ll(DataType::float8e4m3) == doctest::Approx(1024 * ring_ll(DataType::int8)));
}

TEST_CASE("NCCL's choice: AllGather by NVLS needs 32 local ranks or fewer") {
  MachineSpec rack{.gpus = 72,
                   .capability = 100,
                   .ring = {16, 45, 45},
                   .tree = {16, 45, 45, sim::GraphPattern::balanced_tree},
                   .nvls = {32, 20, 40}};
  const auto has_nvls = [&] {
    return chosen(plan_of(machine(rack)), {.function = Function::all_gather, .count = kMi})
               .costs[index_of(Algorithm::nvls)][index_of(Protocol::simple)] >= 0;
  };
  CHECK_FALSE(has_nvls());
  rack.gpus = 32;
  CHECK(has_nvls());
}

TEST_CASE("NCCL's choice: one rank, no elements, and errors") {
  MachineSpec lone{.gpus = 1, .ring = {1, 20, 20}, .tree = {1, 20, 20}};
  const Choice copy = chosen(plan_of(machine(lone)), all_reduce(kMi));
  CHECK(name_of(copy) == "Ring Simple");
  CHECK(copy.time_us == 0);
  CHECK(copy.channels == 0);
  const CommPlan plan = plan_of(machine(h100(1)));
  CHECK(chosen(plan, all_reduce(0)).channels == 0);
  CHECK(choose(plan, {.count = -1}).error().text() == "a negative count");
  CHECK(choose(plan, {.function = Function::reduce, .count = 1, .root = 8}).error().text() ==
        "root 8 of 8 ranks");
  const CommPlan trees = plan_of(machine(h100(1)), {{"NCCL_ALGO", "tree"}, {"NCCL_PROTO", "LL"}});
  CHECK(choose(trees, {.function = Function::broadcast, .count = 1}).error().text() ==
        "no algorithm and protocol available for Broadcast of int8; NCCL_ALGO is 'tree'; "
        "NCCL_PROTO is 'LL'");
  const Call roots[] = {{.function = Function::broadcast, .count = 1},
                        {.function = Function::broadcast, .count = 1, .root = 3}};
  CHECK(choose_group(plan, roots).error().code == sim::ErrorCode::unsupported);
  CHECK(choose_group(plan, roots).error().text() ==
        "broadcasts of several roots in one group run as NCCL's AllGatherV, which is not modelled: "
        "put them into groups of their own");
}

TEST_CASE("NCCL's groups: calls within four times the smallest are decided together") {
  const CommPlan plan = plan_of(machine(h100(1)));
  // 1 MiB alone is Ring LL. With 3 MiB beside it, both are decided as 4 MiB: NVLS.
  const Call near[] = {all_reduce(3 * kMi), all_reduce(kMi)};
  const auto together = choose_group(plan, near);
  REQUIRE(together.ok());
  CHECK(name_of(together.value()[0]) == "NVLS Simple");
  CHECK(name_of(together.value()[1]) == "NVLS Simple");
  CHECK(together.value()[0].time_us == together.value()[1].time_us);
  // 4 MiB is four times 1 MiB: apart.
  const Call far[] = {all_reduce(4 * kMi), all_reduce(kMi)};
  const auto apart = choose_group(plan, far);
  REQUIRE(apart.ok());
  CHECK(name_of(apart.value()[0]) == "NVLS Simple");
  CHECK(name_of(apart.value()[1]) == "Ring LL");
  // Another type is another decision.
  const Call types[] = {all_reduce(3 * kMi), {.count = kMi / 2, .type = DataType::float16}};
  const auto mixed = choose_group(plan, types);
  REQUIRE(mixed.ok());
  CHECK(name_of(mixed.value()[1]) == "Ring LL");
}

TEST_CASE("NCCL's groups: small calls fill channels one after the other, smallest first") {
  // Tree LL: 8 bytes of traffic per byte, cells of 4 KiB. Three calls of 8, 16 and 4 KiB are one
  // decision of 28 KiB: 28672 / (512 x 8) = 7 channels each, 21 together. Traffic 224 KiB over 21
  // channels is 10922, aligned 10928 each: less than a cell's 32 KiB, so every cell fills a
  // channel.
  const CommPlan plan = plan_of(machine(h100(1)), {{"NCCL_ALGO", "tree"}, {"NCCL_PROTO", "LL"}});
  const Call calls[] = {all_reduce(8 * kKi), all_reduce(15 * kKi), all_reduce(5 * kKi)};
  const auto group = choose_group(plan, calls);
  REQUIRE(group.ok());
  CHECK(group.value()[2].max_channels == 7);
  CHECK(parts(group.value()[2]) == "0+2 4096/0/1024 640");
  CHECK(parts(group.value()[0]) == "2+2 4096/0/4096 640");
  CHECK(parts(group.value()[1]) == "4+4 4096/4096/3072 640");
}

TEST_CASE("NCCL's groups: what one call leaves of a channel the next one uses") {
  // Ring Simple, 2 bytes of traffic per byte, 16 KiB cells. 24 equal calls of 64 KiB are decided as
  // 1.5 MiB; all 24 channels are asked for more than 24 times, so each has 24 x 128 Ki / 24 of
  // traffic: one call per channel.
  MachineSpec spec = h100(1);
  spec.nvls = {};
  const CommPlan plan = plan_of(machine(spec), {{"NCCL_ALGO", "ring"}, {"NCCL_PROTO", "simple"}});
  const std::vector<Call> calls(24, all_reduce(64 * kKi));
  const auto group = choose_group(plan, calls);
  REQUIRE(group.ok());
  for (std::size_t i = 0; i < calls.size(); ++i)
    CHECK(parts(group.value()[i]) == fmt::format("{}+1 65536/0/0 544", i));
  // 48 calls: two operations in line, the ring's latency twice; two calls per channel.
  const std::vector<Call> more(48, all_reduce(64 * kKi));
  const auto double_group = choose_group(plan, more);
  REQUIRE(double_group.ok());
  CHECK(double_group.value()[0].time_us ==
        doctest::Approx(2 * 56.0 + 3 * kMi / (1000 * 205.7143)).epsilon(1e-5));
  CHECK(double_group.value()[0].first_channel == 0);
  CHECK(double_group.value()[1].first_channel == 0);
  CHECK(double_group.value()[2].first_channel == 1);
}

TEST_CASE("NCCL's tuner file: the first line that matches an available pair wins") {
  CommInputs inputs = machine(h100(1));
  const auto tuned = [&](const char* text, ChannelReading reading, std::int64_t bytes) {
    auto tuner = parse_tuner_file(text, "t.csv");
    REQUIRE(tuner.ok());
    tuner.value().reading = reading;
    inputs.tuner = tuner.value();
    const Choice choice = chosen(plan_of(inputs), all_reduce(bytes));
    return fmt::format("{} on {}", name_of(choice), choice.max_channels);
  };
  const char* text =
      "# sizes in bytes\n\n"
      "allreduce,0,65536,pat,simple,4,-1,-1\n"  // no candidate for AllReduce: passed over
      "allreduce, 0, 65536, tree, ll128, 4, 1, 8, -1, -1\n"
      "allreduce,65537,1048576,ring,simple,-1,-1,-1,1\n"
      "allreduce,65537,1048576,tree,simple,8,2,-1\n"  // two nodes: not this communicator
      "broadcast,0,1048576,ring,ll,2,-1,-1\n";
  constexpr ChannelReading kDocumented = ChannelReading::documented;
  constexpr ChannelReading kAsShipped = ChannelReading::as_shipped;
  CHECK(tuned(text, kDocumented, 1024) == "Tree LL128 on 4");
  CHECK(tuned(text, kDocumented, kMi) == "Ring Simple on 24");
  CHECK(tuned(text, kDocumented, 64 * kMi) == "NVLS Simple on 16");
  CHECK(tuned(text, kAsShipped, 1024) == "Tree LL128 on 4");
  CHECK(tuned(text, kAsShipped, kMi) == "Ring Simple on 1");
  CHECK(tuned(text, kAsShipped, 64 * kMi) == "NVLS Simple on 1");
}

TEST_CASE("NCCL's tuner file: the plugin's own edits of constants") {
  MachineSpec b200 = h100(4);
  b200.capability = 100;
  CommInputs inputs = machine(b200);
  const auto ring = [&] {
    return plan_of(inputs).tuning.bandwidth[index_of(Function::all_gather)]
                                           [index_of(Algorithm::ring)][index_of(Protocol::ll128)];
  };
  const float before = ring();
  inputs.tuner = TunerFile{};
  CHECK(ring() == before);
  inputs.tuner->reading = ChannelReading::as_shipped;
  CHECK(ring() == doctest::Approx(8 * 20.0 * 32 / 31));
}

TEST_CASE("NCCL's tuner file: errors name file and line") {
  const auto error = [](const char* text) {
    return parse_tuner_file(text, "t.csv").error().text();
  };
  CHECK(error("\nallreduce,0,1,ring,ll,1,1\n") ==
        "t.csv:2: 7 fields; expected collective,min,max,algorithm,protocol,channels,nodes,ranks"
        "[,numPipeOps[,regBuff]]");
  CHECK(error("alltoall,0,1,ring,ll,1,1,1") ==
        "t.csv:1: unknown collective 'alltoall' (one of: broadcast, reduce, allgather, "
        "reducescatter, allreduce)");
  CHECK(error("allreduce,0,1,nvlstree,simple,1,1,1") ==
        "t.csv:1: unknown algorithm 'nvlstree' (one of: tree, ring, collnet_direct, collnet_chain, "
        "nvls, nvls_tree, pat)");
  CHECK(error("allreduce,0,1,ring,LL,1,1,1") ==
        "t.csv:1: unknown protocol 'LL' (one of: ll, ll128, simple)");
  CHECK(error("allreduce,-1,1,ring,ll,1,1,1") ==
        "t.csv:1: min_bytes: '-1' is no whole number in range");
  CHECK(error("allreduce,0,1k,ring,ll,1,1,1") ==
        "t.csv:1: max_bytes: '1k' is no whole number in range");
  CHECK(error("allreduce,0,1,ring,ll,0,1,1") == "t.csv:1: channels: 0 (1 to 64, or -1)");
  CHECK(error("allreduce,0,1,ring,ll,1,1,1,-1,-1,7").starts_with("t.csv:1: 11 fields"));
}

}  // namespace
}  // namespace railyard::algorithms::nccl
