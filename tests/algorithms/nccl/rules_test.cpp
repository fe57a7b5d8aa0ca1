#include "algorithms/nccl/rules.h"

#include <doctest/doctest.h>

#include "tests/algorithms/nccl/machines.h"

namespace railyard::algorithms::nccl {
namespace {

// What is enabled: one letter per algorithm or protocol, in NCCL's order.
template <std::size_t N>
std::string letters(const std::array<Enabled, N>& enabled) {
  std::string text;
  for (const Enabled e : enabled) text += e == Enabled::no ? '-' : e == Enabled::yes ? 'y' : '?';
  return text;
}

std::string algorithms(const char* value, Function function) {
  const auto lists = parse_lists(variables({{"NCCL_ALGO", value}}));
  REQUIRE_MESSAGE(lists.ok(), (lists.ok() ? "" : lists.error().text()));
  return letters(lists.value().algorithms[index_of(function)]);
}

std::string protocols(const char* value, Function function) {
  const auto lists = parse_lists(variables({{"NCCL_PROTO", value}}));
  REQUIRE_MESSAGE(lists.ok(), (lists.ok() ? "" : lists.error().text()));
  return letters(lists.value().protocols[index_of(function)]);
}

TEST_CASE("NCCL_ALGO and NCCL_PROTO: lists by function") {
  CHECK(algorithms("", Function::broadcast) == "yyyyyyy");
  CHECK(algorithms("ring", Function::broadcast) == "-y-----");
  CHECK(algorithms("RING,nvlstree", Function::all_reduce) == "-y---y-");
  CHECK(algorithms("^tree,pat", Function::all_gather) == "-yyyyy-");
  const char* mixed = "ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring";
  CHECK(algorithms(mixed, Function::all_reduce) == "y-y----");
  CHECK(algorithms(mixed, Function::broadcast) == "-y-----");
  CHECK(algorithms(mixed, Function::reduce) == "-yy----");
  CHECK(algorithms("allreduce:tree;allgather:ring", Function::reduce) == "yyyyyyy");
  CHECK(protocols("", Function::reduce) == "y?y");
  CHECK(protocols("ll,simple;allreduce:^ll", Function::all_reduce) == "-yy");
  CHECK(protocols("^LL128;AllReduce:LL128", Function::all_reduce) == "-y-");
  CHECK(protocols("^LL128;AllReduce:LL128", Function::reduce) == "y-y");
}

TEST_CASE("NCCL_ALGO and NCCL_PROTO: errors name the variable") {
  const auto error = [](const char* name, const char* value) {
    return parse_lists(variables({{name, value}})).error().text();
  };
  CHECK(error("NCCL_ALGO", "rong") ==
        "NCCL_ALGO: unknown algorithm 'rong' (one of: Tree, Ring, CollNetDirect, CollNetChain, "
        "NVLS, NVLSTree, PAT)");
  CHECK(error("NCCL_PROTO", "ll,plain") ==
        "NCCL_PROTO: unknown protocol 'plain' (one of: LL, LL128, Simple)");
  CHECK(error("NCCL_PROTO", "alltoall:ll") ==
        "NCCL_PROTO: unknown function 'alltoall' (one of: Broadcast, Reduce, AllGather, "
        "ReduceScatter, AllReduce)");
  CHECK(error("NCCL_ALGO", "allreduce:tree;ring") ==
        "NCCL_ALGO: 'ring': all entries but the first need a function, as in allreduce:ring");
  CHECK(error("NCCL_ALGO", ":").find("need a function") != std::string::npos);
  const auto plan = make_comm_plan(machine(h100(1)), variables({{"NCCL_ALGO", "allreduce:ringg"}}));
  CHECK(plan.error().where == "NCCL_ALGO");
}

bool has_ll128(const MachineSpec& spec, const std::map<std::string, std::string>& env = {}) {
  return plan_of(machine(spec), env)
             .tuning.bandwidth[index_of(Function::all_reduce)][index_of(Algorithm::ring)]
                              [index_of(Protocol::ll128)] != 0;
}

TEST_CASE("NCCL's rule for LL128: near links and equal GPUs, or by name") {
  MachineSpec spec = h100(2);
  CHECK(has_ll128(spec));
  spec.inter = sim::PathType::pxn;
  CHECK(has_ll128(spec));
  CHECK_FALSE(has_ll128(spec, {{"NCCL_LL128_C2C", "0"}}));
  spec.capability = 80;
  CHECK_FALSE(has_ll128(spec));
  spec.inter = sim::PathType::pxb;
  CHECK(has_ll128(spec));
  spec.intra = sim::PathType::phb;
  CHECK_FALSE(has_ll128(spec));
  CHECK(has_ll128(spec, {{"NCCL_PROTO", "ll128"}}));
  spec.intra = sim::PathType::nvb;
  CHECK(has_ll128(spec));
  spec.capability = 60;
  CHECK_FALSE(has_ll128(spec));
  CommInputs mixed = machine(h100(2));
  mixed.kinds[0].compute_capabilities = {80, 80, 80, 80, 80, 80, 80, 89};
  CHECK(plan_of(mixed).tuning.bandwidth[index_of(Function::all_reduce)][index_of(Algorithm::ring)]
                                       [index_of(Protocol::ll128)] == 0);
}

TEST_CASE("NCCL's rule for PAT") {
  const auto has_pat = [](const MachineSpec& spec, const std::map<std::string, std::string>& env) {
    return plan_of(machine(spec), env)
               .tuning.bandwidth[index_of(Function::all_gather)][index_of(Algorithm::pat)]
                                [index_of(Protocol::simple)] != 0;
  };
  MachineSpec single{.nodes = 4, .gpus = 1, .ring = {2, 24, 24}, .tree = {2, 48, 24}};
  CHECK(has_pat(single, {}));
  CHECK_FALSE(has_pat(single, {{"NCCL_PAT_ENABLE", "0"}}));
  CHECK_FALSE(has_pat(h100(2), {}));
  CHECK(has_pat(h100(2), {{"NCCL_PAT_ENABLE", "1"}}));
  single.capability = 52;
  CHECK_FALSE(has_pat(single, {}));
  CommInputs unpacking = machine(single);
  unpacking.kinds[0].compute_capabilities = {90};
  unpacking.host_network = false;
  CHECK(plan_of(unpacking)
            .tuning.bandwidth[index_of(Function::all_gather)][index_of(Algorithm::pat)][2] == 0);
}

}  // namespace
}  // namespace railyard::algorithms::nccl
