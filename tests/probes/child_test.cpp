#include "calibrate/probes/common/child.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "calibrate/probes/common/error.h"

namespace probe = railyard::probe;

namespace {

probe::Report findings() {
  probe::Report report;
  report.software = {{"nccl", "2.28.9"}};
  report.devices = {{"gpu", "NVIDIA H200", {{"index", "0"}, {"bus_id", "0000:0f:00.0"}}}};
  report.notes = {"a note\nof two\tlines"};
  report.rows.push_back({"nccl.operation",
                         {{"operation", "AllReduce"}, {"ranks", "8"}},
                         1024,
                         2048,
                         probe::summarize({1.1, 2.3, 1.0 / 3}),
                         {},
                         ""});
  report.rows.push_back({"nccl.fact", {}, 0, 0, {}, 0.1, "ratio"});
  return report;
}

void check_findings(const probe::Report& read) {
  const probe::Report written = findings();
  CHECK(read.software == written.software);
  REQUIRE(read.devices.size() == 1);
  CHECK(read.devices[0].name == "NVIDIA H200");
  CHECK(read.devices[0].facts == written.devices[0].facts);
  REQUIRE(read.notes.size() == 1);
  CHECK(read.notes[0] == "a note of two lines");
  REQUIRE(read.rows.size() == 2);
  CHECK(read.rows[0].labels == written.rows[0].labels);
  CHECK(read.rows[0].bytes == 1024);
  CHECK(read.rows[0].moved_bytes == 2048);
  CHECK(read.rows[0].time_us.min == 1.0 / 3);
  CHECK(read.rows[0].time_us.median == 1.1);
  CHECK(read.rows[0].time_us.count == 3);
  CHECK_FALSE(read.rows[0].value.has_value());
  CHECK(read.rows[1].value == 0.1);
  CHECK(read.rows[1].unit == "ratio");
}

std::string line_error(const std::string& lines) {
  probe::Report report;
  try {
    probe::add_lines(lines, report);
  } catch (const probe::ProbeError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("findings as lines, and back") {
  probe::Report read;
  probe::add_lines(probe::to_lines(findings()), read);
  check_findings(read);
  CHECK(line_error("row\tx\t1") == "a child's row is cut off");
  CHECK(line_error("row\tx\tone\t1\t1\t1\t1\t1\t1\t1\t\t") == "a child's row is cut off");
  CHECK(line_error("device\tgpu\tname\thalf") == "a child's line has half a label");
  CHECK(line_error("Segmentation fault") == "a child wrote 'Segmentation fault'");
}

// Runs in the child that the next test case starts.
TEST_CASE("the part of a child process") {
  const char* task = std::getenv("RAILYARD_TEST_CHILD");
  if (task == nullptr) return;  // run as an ordinary test case
  if (std::string(task) == "hang") std::this_thread::sleep_for(std::chrono::seconds(60));
  REQUIRE(probe::send_to_parent(findings()));
  if (std::string(task) == "fail") std::_Exit(3);
}

TEST_CASE("a child hands over its findings, its status, and does not hang its parent") {
  const auto child = [](const char* task, double timeout) {
    return probe::run_child({"-tc=the part of a child process", "-ne"},
                            {{"RAILYARD_TEST_CHILD", task}}, timeout);
  };
  CHECK_FALSE(probe::send_to_parent(findings()));  // this process is no child
  for (const char* task : {"work", "fail"}) {
    CAPTURE(task);
    const probe::ChildResult done = child(task, 60);
    CHECK(done.status == (std::string(task) == "fail" ? 3 : 0));
    CHECK_FALSE(done.timed_out);
    probe::Report read;
    probe::add_lines(done.lines, read);
    check_findings(read);
  }
  const probe::ChildResult hung = child("hang", 0.3);
  CHECK(hung.timed_out);
  CHECK(hung.status == 128 + 9);
  CHECK(hung.lines.empty());
  CHECK(std::getenv("RAILYARD_TEST_CHILD") == nullptr);
}
