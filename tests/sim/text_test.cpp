#include "sim/text.h"

#include <doctest/doctest.h>

#include <array>
#include <string>

#include "sim/collective.h"
#include "sim/enum_table.h"

namespace railyard::sim {
namespace {

using namespace std::string_view_literals;

constexpr std::array kNames{"bandwidth"sv, "latency"sv, "ring"sv, "tree"sv};

TEST_CASE("text: comparison ignores the case of ASCII letters") {
  CHECK(equal_ignoring_case("Simple", "sIMPLE"));
  CHECK(equal_ignoring_case("", ""));
  CHECK_FALSE(equal_ignoring_case("LL", "LL128"));
  CHECK_FALSE(equal_ignoring_case("a", "b"));
}

TEST_CASE("text: the nearest name is within a slip of the finger") {
  CHECK(nearest_name("latencey", kNames) == "latency");
  CHECK(nearest_name("LATENCY", kNames) == "latency");
  CHECK(nearest_name("bandwith", kNames) == "bandwidth");
  CHECK(nearest_name("rnig", kNames) == "ring");
  CHECK(nearest_name("ringg", kNames) == "ring");
  CHECK(nearest_name("bndwdt", kNames) == "");                 // three edits in six letters
  CHECK(nearest_name("bandwidth_gb", kNames) == "bandwidth");  // three of twelve letters
  CHECK(nearest_name("elephant", kNames) == "");
  CHECK(nearest_name("", kNames) == "");
  CHECK(nearest_name("latency", {}) == "");
}

TEST_CASE("text: of two equally near names the first is taken") {
  constexpr std::array names{"aaaa1"sv, "aaaa2"sv};
  CHECK(nearest_name("aaaa3", names) == "aaaa1");
  CHECK(nearest_name("aaaa2", names) == "aaaa2");
}

// All letters changed is no slip, however short the name.
TEST_CASE("text: a name that shares nothing is not suggested") {
  constexpr std::array names{"ab"sv, "x"sv};
  CHECK(nearest_name("cd", names) == "");
  CHECK(nearest_name("y", names) == "");
}

TEST_CASE("text: junk of any length costs little and suggests nothing") {
  CHECK(nearest_name(std::string(100'000, 'x'), kNames) == "");
}

TEST_CASE("text: did_you_mean") {
  CHECK(did_you_mean("tre", kNames) == "; did you mean 'tree'?");
  CHECK(did_you_mean("elephant", kNames) == "");
}

TEST_CASE("text: enum tables parse and print") {
  CHECK(to_text(Protocol::ll128) == "LL128");
  CHECK(parse_enum<Protocol>("ll128").value() == Protocol::ll128);
  CHECK(parse_enum<Collective>("ALLREDUCE").value() == Collective::all_reduce);
  CHECK(parse_enum<Algorithm>("nvlstree").value() == Algorithm::nvls_tree);
  CHECK(enum_names<Protocol>() == "LL, LL128, Simple, plain");
  CHECK(parse_enum<Protocol>("smple").error().message ==
        "unknown protocol 'smple'; did you mean 'Simple'? (one of: LL, LL128, Simple, plain)");
  CHECK(parse_enum<Protocol>("").error().message ==
        "unknown protocol '' (one of: LL, LL128, Simple, plain)");
  for (const auto& entry : EnumTable<Collective>::entries)
    CHECK(parse_enum<Collective>(to_text(entry.value)).value() == entry.value);
  CHECK(to_text(static_cast<Algorithm>(99)) == "?");
}

}  // namespace
}  // namespace railyard::sim
