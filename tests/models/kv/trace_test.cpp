#include "models/kv/trace.h"

#include <doctest/doctest.h>

namespace railyard::models {
namespace {

using namespace sim::literals;

void check(const KvRequest& request, sim::Duration arrival, std::int64_t input,
           std::int64_t output) {
  CHECK(request.arrival == sim::Time(arrival));
  CHECK(request.input_tokens == input);
  CHECK(request.output_tokens == output);
}

TEST_CASE("kv trace: title, comments, order") {
  const auto trace = parse_kv_trace(
      "time_s, input, output\r\n# a comment\n\n1.5,100,20\n0.25, 7 ,1\n1.5,200,30", "t.csv");
  REQUIRE(trace.ok());
  REQUIRE(trace.value().size() == 3);
  check(trace.value()[0], 250_ms, 7, 1);
  check(trace.value()[1], 1500_ms, 100, 20);
  check(trace.value()[2], 1500_ms, 200, 30);
}

TEST_CASE("kv trace: errors name the line") {
  const auto error = [](std::string_view text) {
    return parse_kv_trace(text, "t.csv").error().text();
  };
  CHECK(error("1,2\n") ==
        "t.csv:1: three columns are expected: seconds, input tokens, output tokens");
  CHECK(error("1,2,3,4\n") ==
        "t.csv:1: three columns are expected: seconds, input tokens, output tokens");
  CHECK(error("a,b,c\na,b,c\n") ==
        "t.csv:2: a time in seconds from 0 to 1000000 is expected first");
  CHECK(error("0,1,1\n-1,2,3\n") ==
        "t.csv:2: a time in seconds from 0 to 1000000 is expected first");
  CHECK(error("0,0,1\n") ==
        "t.csv:1: whole numbers of tokens from 1 to 16000000 are expected second (input) and third "
        "(output)");
  CHECK(error("0,1,1.5\n").ends_with("third (output)"));
  CHECK(error("# nothing\n") == "t.csv: the trace holds no request");
}

}  // namespace
}  // namespace railyard::models
