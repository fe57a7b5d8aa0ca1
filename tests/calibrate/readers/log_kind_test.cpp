// Which tool wrote it: every sample, and one line of every kind.
#include <doctest/doctest.h>

#include "calibrate/readers/log_kind.h"
#include "calibrate/readers/log_text.h"
#include "tests/calibrate/readers/support.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::calibrate;       // NOLINT

TEST_CASE("log kind: every sample is told by its content") {
  if (!has_samples()) RAILYARD_SKIP("no samples");
  for (const auto& entry : std::filesystem::directory_iterator(samples() + "/perf")) {
    const std::string file = entry.path().filename().string();
    CAPTURE(file);
    const Identified what = identify(text_of(entry.path().string()));
    if (file.find("-nccl-tests__") != std::string::npos) CHECK(what.kind == LogKind::nccl_tests);
    if (file.find("-nvbandwidth__") != std::string::npos) CHECK(what.kind == LogKind::nvbandwidth);
    if (file.find("-osu") != std::string::npos) CHECK(what.kind == LogKind::osu);
    if (file.find("-p2p__") != std::string::npos) CHECK(what.kind == LogKind::p2p_bandwidth);
    if (file.find("-perftest__") != std::string::npos) CHECK(what.kind == LogKind::perftest);
    CHECK(what.line > 0);
  }
  CHECK(identify(text_of(sample_path("traces/hta_resnet50"))).kind == LogKind::gzip);
  // Logs of NCCL without measurements.
  CHECK(identify(text_of(sample_path("nccl-logs/011"))).kind == LogKind::nccl_tests);
}

TEST_CASE("log kind: the line that gives it away") {
  struct Case {
    const char* text;
    LogKind kind;
    std::size_t line;
  };
  const Case cases[] = {
      {"", LogKind::empty, 0},
      {" \n\t\r\n", LogKind::empty, 0},
      {"hello\n", LogKind::unknown, 0},
      {"\x1f\x8b\x08", LogKind::gzip, 1},
      {"x\nh:1:2 [0] NCCL INFO Bootstrap\n", LogKind::nccl_log, 2},
      {"h:1:2 [0] NCCL INFO size busbw\n\n# nThread 8 nGpus 1\n", LogKind::nccl_tests, 3},
      {"{\n \"schemaVersion\": 1,\n \"traceEvents\": []}", LogKind::kineto, 3},
      {"{\"nvbandwidth\": {}}", LogKind::nvbandwidth_json, 1},
      {"{\"results\":[{\"bus_bw\":1}]}", LogKind::nccl_tests_json, 1},
      {"{\"results\":{\"MsgSize\":1}}", LogKind::perftest_json, 1},
      {"{\"schema\": \"1.1.0\", \"nodes\": []}", LogKind::execution_trace, 1},
      {"{\"a\": 1}", LogKind::unknown, 0},
      {"   size(B)   count(elems)   type   time:avg(us)   algbw(GB/s)   busbw(GB/s)\n",
       LogKind::nccom_test, 1},
      {"Running host_to_device_memcpy_ce.\n", LogKind::nvbandwidth, 1},
      {"a\n #bytes     #iterations    BW peak[Gb/sec]\n", LogKind::perftest, 2},
  };
  for (const Case& each : cases) {
    CAPTURE(each.text);
    const Identified what = identify(each.text);
    CHECK(what.kind == each.kind);
    CHECK(what.line == each.line);
  }
}

TEST_CASE("log text: numbers, tags, colours") {
  CHECK(to_real("1.2e+07") == 1.2e7);
  CHECK_FALSE(to_real("inf").has_value());
  CHECK_FALSE(to_real("1.2x").has_value());
  CHECK_FALSE(to_real("").has_value());
  CHECK(to_integer("+5") == 5);
  CHECK_FALSE(to_integer("9223372036854775808").has_value());
  CHECK(integer_after("a nGpus 8, b", "nGpus") == 8);
  CHECK_FALSE(integer_after("nGpus x", "nGpus").has_value());
  CHECK(without_tag("[1,13]<stdout>: x") == " x");
  CHECK(without_tag("12: x") == " x");
  CHECK(without_tag("12:x") == "12:x");
  CHECK(without_tag("[x] y") == "[x] y");
  CHECK(without_ansi("a\x1b[1;31mb\x1b[0mc\x1b") == "abc");
}
