#include "tools/cli/timeline.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/tools/helpers.h"

namespace railyard::cli {
namespace {

using namespace sim::literals;
using nlohmann::json;

json events(const scenarios::RunResult& result, std::uint32_t ranks = 8) {
  return json::parse(timeline_json(result, ranks)).at("traceEvents");
}

json named(const json& all, const std::string& name) {
  json out = json::array();
  for (const json& event : all)
    if (event.at("name") == name) out.push_back(event);
  return out;
}

// Within every thread two events nest or follow one another.
void check_nesting(const json& all) {
  const auto picoseconds = [](const json& us) { return std::llround(us.get<double>() * 1e6); };
  std::map<std::pair<int, int>, std::vector<std::pair<long long, long long>>> threads;
  for (const json& event : all)
    if (event.at("ph") == "X") {
      const long long start = picoseconds(event.at("ts"));
      threads[{event.at("pid"), event.at("tid")}].emplace_back(
          start, start + picoseconds(event.at("dur")));
    }
  for (const auto& thread : threads)
    for (const auto& a : thread.second)
      for (const auto& b : thread.second) {
        const bool apart = a.second <= b.first || b.second <= a.first;
        const bool a_in_b = b.first <= a.first && a.second <= b.second;
        const bool b_in_a = a.first <= b.first && b.second <= a.second;
        CHECK((apart || a_in_b || b_in_a));
      }
}

scenarios::KeptMessage message(std::uint32_t from, std::uint32_t to, std::int64_t start_us,
                               std::int64_t end_us) {
  scenarios::KeptMessage out;
  out.name = "AllReduce";
  out.from = from;
  out.to = to;
  out.size = 4_KiB;
  out.start = sim::Time(sim::microseconds(start_us));
  out.arrival = sim::Time(sim::microseconds(end_us));
  return out;
}

}  // namespace

TEST_CASE("timeline: ranks are processes, streams are threads") {
  const json all = events(tests::ddp_result());
  check_nesting(all);
  const json processes = named(all, "process_name");
  REQUIRE(processes.size() == 2);
  CHECK(processes[0].at("args").at("name") == "rank 0");
  const json threads = named(all, "thread_name");
  REQUIRE(threads.size() == 3);
  CHECK(threads[0].at("args").at("name") == "compute");
  CHECK(threads[1].at("args").at("name") == "communication");
  const json convolutions = named(all, "conv");
  REQUIRE(convolutions.size() == 3);
  CHECK(convolutions[1].at("ts") == 100.0);
  CHECK(convolutions[1].at("dur") == 150.0);
  CHECK(convolutions[1].at("cat") == "kernel");
}

TEST_CASE("timeline: only the ranks asked for") {
  for (const json& event : events(tests::ddp_result(), 1)) CHECK(event.at("pid") == 0);
  CHECK(events(tests::ddp_result(), 0).empty());
}

TEST_CASE("timeline: reductions say what they carry where their number fits") {
  auto result = tests::ddp_result();
  result.ddp->bucket_bytes = {{25_MiB}};
  const json calls = named(events(result), "AllReduce");
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].at("args") == json{{"iteration", 1},
                                    {"bucket", 0},
                                    {"bytes", 26214400},
                                    {"algorithm", "Ring"},
                                    {"protocol", "Simple"},
                                    {"channels", 24}});
  CHECK_FALSE(named(events(tests::ddp_result()), "AllReduce")[0].contains("args"));
}

TEST_CASE("timeline: picoseconds are kept as fractions of a microsecond") {
  scenarios::RunResult result;
  sim::Span span;
  span.start = sim::Time(sim::picoseconds(1'000'001));
  span.end = sim::Time(sim::picoseconds(3'500'000'000'002));
  result.spans = {span};
  result.span_names = {"a \"name\" with \\ and \x01"};
  const std::string text = timeline_json(result, 1);
  CHECK(tests::contains(text, "\"ts\":1.000001,\"dur\":3499999.000001"));
  CHECK(json::parse(text).at("traceEvents").size() == 5);
  CHECK(tests::contains(text, "\"name\":\"stream 0\""));
}

TEST_CASE("timeline: messages in flight together get threads of their own") {
  scenarios::RunResult result;
  result.kept_messages = {message(0, 1, 0, 10), message(0, 1, 5, 15), message(0, 1, 10, 20),
                          message(0, 2, 0, 10), message(1, 0, 0, 3),  message(9, 0, 0, 3)};
  const json all = events(result);
  check_nesting(all);
  CHECK(named(all, "AllReduce").size() == 5);  // rank 9 is not among the first eight
  const json threads = named(all, "thread_name");
  REQUIRE(threads.size() == 4);
  CHECK(threads[0].at("args").at("name") == "to rank 1, channel 0");
  CHECK(threads[1].at("args").at("name") == "to rank 1, channel 0 (2)");
  CHECK(threads[2].at("args").at("name") == "to rank 2, channel 0");
  CHECK(named(all, "AllReduce")[0].at("args") == json{{"bytes", 4096}, {"to", 1}, {"channel", 0}});
}

TEST_CASE("timeline: more overlap than threads is still valid JSON") {
  scenarios::RunResult result;
  for (std::int64_t i = 0; i < 100; ++i) result.kept_messages.push_back(message(0, 1, i, 200 + i));
  CHECK(named(events(result), "AllReduce").size() == 100);
}

TEST_CASE("timeline: a sweep without spans shows its calls in turn") {
  auto result = tests::collective_result();
  result.ranks = 2;
  const json all = events(result);
  check_nesting(all);
  CHECK(named(all, "AllReduce").size() == 4);
  CHECK(named(all, "AllGather")[0].at("ts") == 135.801);
  CHECK(named(all, "AllGather")[0].at("args").at("protocol") == "LL");
}

TEST_CASE("timeline: spans of a sweep say what is known of their calls") {
  auto result = tests::collective_result();
  REQUIRE(result.collectives.size() >= 2);
  result.collectives[1].label = "AllGather 1MiB";
  sim::Span span;
  span.kind = sim::SpanKind::collective;
  span.end = sim::Time(5_us);
  result.spans = {span};
  result.span_names = {"AllGather 1MiB"};
  result.stream_names = {"collectives"};
  result.kept_messages = {message(0, 1, 0, 4)};
  const json all = events(result);
  const json calls = named(all, "AllGather 1MiB");
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].at("dur") == 5.0);
  CHECK(calls[0].at("cat") == "collective");
  CHECK(calls[0].at("args").at("channels") == result.collectives[1].channels);
  CHECK(calls[0].at("args").at("bytes") == result.collectives[1].size.raw());
  CHECK(named(all, "thread_name")[0].at("args").at("name") == "collectives");
}

TEST_CASE("timeline: independent transfers are on a thread of their sender") {
  const json all = events(tests::flow_result(), 2);
  const json flows = named(all, "transfer");
  REQUIRE(flows.size() == 2);
  CHECK(flows[1].at("pid") == 1);
  CHECK(flows[1].at("ts") == 5.0);
  CHECK(flows[1].at("dur") == 20.0);
  CHECK(flows[1].at("args") == json{{"to", 2}, {"bytes", 1048576}});
  CHECK(named(all, "thread_name")[0].at("args").at("name") == "transfers");
}

TEST_CASE("timeline: nothing to show is an empty list") {
  CHECK(timeline_json({}, 8) == "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n\n]}\n");
}

}  // namespace railyard::cli
