#include "algorithms/nccl/environment.h"

#include <doctest/doctest.h>

using railyard::algorithms::nccl::Environment;
using railyard::sim::PathType;

namespace {
Environment parse(const std::map<std::string, std::string>& variables) {
  auto env = Environment::parse(variables);
  REQUIRE(env.ok());
  return std::move(env).value();
}
}  // namespace

TEST_CASE("environment: numbers are read as strtoll with base 0 reads them") {
  const Environment env = parse({{"NCCL_BUFFSIZE", "0x100000"},
                                 {"NCCL_CROSS_NIC", "-1"},
                                 {"NCCL_NTHREADS", "256 threads"},
                                 {"NCCL_MAX_NCHANNELS", "010"},
                                 {"NCCL_PXN_DISABLE", ""}});
  CHECK(env.integer("NCCL_BUFFSIZE", 7) == 1048576);
  CHECK(env.integer("NCCL_CROSS_NIC", 2) == -1);
  CHECK(env.integer("NCCL_NTHREADS", 512) == 512);   // not a number to its end: the default
  CHECK(env.integer("NCCL_MAX_NCHANNELS", 0) == 8);  // octal
  CHECK(env.integer("NCCL_PXN_DISABLE", 3) == 3);    // empty is unset
  CHECK_FALSE(env.has("NCCL_PXN_DISABLE"));
}

TEST_CASE("environment: levels by name or by NCCL's old integers") {
  const auto level = [](const char* text) {
    return parse({{"NCCL_P2P_LEVEL", text}}).level("NCCL_P2P_LEVEL");
  };
  CHECK(level("sys") == PathType::sys);
  CHECK(level("LOC") == PathType::loc);
  CHECK(level("0") == PathType::loc);
  CHECK(level("2") == PathType::pxb);
  CHECK(level("9") == PathType::sys);
  CHECK(level("far") == std::nullopt);
  CHECK(parse({}).level("NCCL_P2P_LEVEL") == std::nullopt);
}

TEST_CASE("environment: an unknown name is a warning with the nearest one") {
  const Environment env = parse({{"NCCL_CROSSNIC", "1"}});
  REQUIRE(env.warnings().size() == 1);
  CHECK(env.warnings()[0] ==
        "NCCL_CROSSNIC has no effect here: not a variable this program knows; did you mean "
        "'NCCL_CROSS_NIC'?");
  CHECK(env.integer("NCCL_CROSSNIC", 0) == 1);
}

TEST_CASE("environment: only NCCL_ variables are taken") {
  const auto env = Environment::parse({{"CUDA_VISIBLE_DEVICES", "0"}});
  REQUIRE_FALSE(env.ok());
  CHECK(env.error().text() ==
        "env.CUDA_VISIBLE_DEVICES: 'CUDA_VISIBLE_DEVICES' is no NCCL_* variable");
}
