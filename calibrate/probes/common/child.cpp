#include "calibrate/probes/common/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "calibrate/probes/common/error.h"

namespace railyard::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kSeparator = '\t';

std::string flat(std::string text) {
  for (char& character : text)
    if (character == '\n' || character == kSeparator) character = ' ';
  return text;
}

void append_labels(std::string& line, const Labels& labels) {
  for (const auto& [name, value] : labels)
    line += kSeparator + flat(name) + kSeparator + flat(value);
}

std::string row_line(const Row& row) {
  std::ostringstream text;
  text.precision(17);
  const Summary& time = row.time_us;
  text << "row" << kSeparator << flat(row.kind) << kSeparator << row.bytes << kSeparator
       << row.moved_bytes << kSeparator << time.median << kSeparator << time.p10 << kSeparator
       << time.p90 << kSeparator << time.min << kSeparator << time.max << kSeparator << time.count
       << kSeparator;
  if (row.value) text << *row.value;
  text << kSeparator << flat(row.unit);
  std::string line = text.str();
  append_labels(line, row.labels);
  return line;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::size_t start = 0;
  for (std::size_t end = line.find(kSeparator); end != std::string::npos;
       end = line.find(kSeparator, start)) {
    fields.push_back(line.substr(start, end - start));
    start = end + 1;
  }
  fields.push_back(line.substr(start));
  return fields;
}

Labels labels_from(const std::vector<std::string>& fields, std::size_t first) {
  if ((fields.size() - first) % 2 != 0) throw ProbeError("a child's line has half a label");
  Labels labels;
  for (std::size_t i = first; i < fields.size(); i += 2) labels[fields[i]] = fields[i + 1];
  return labels;
}

Row row_from(const std::vector<std::string>& fields) {
  if (fields.size() < 12) throw ProbeError("a child's row is cut off");
  Row row;
  row.kind = fields[1];
  row.bytes = std::stoll(fields[2]);
  row.moved_bytes = std::stoll(fields[3]);
  row.time_us = {std::stod(fields[4]), std::stod(fields[5]), std::stod(fields[6]),
                 std::stod(fields[7]), std::stod(fields[8]), std::stoll(fields[9])};
  if (!fields[10].empty()) row.value = std::stod(fields[10]);
  row.unit = fields[11];
  row.labels = labels_from(fields, 12);
  return row;
}

void add_line(const std::string& line, Report& report) {
  const std::vector<std::string> fields = fields_of(line);
  if (fields[0] == "row") {
    report.rows.push_back(row_from(fields));
  } else if (fields[0] == "note" && fields.size() == 2) {
    report.notes.push_back(fields[1]);
  } else if (fields[0] == "software" && fields.size() == 3) {
    report.software[fields[1]] = fields[2];
  } else if (fields[0] == "device" && fields.size() >= 3) {
    report.devices.push_back({fields[1], fields[2], labels_from(fields, 3)});
  } else {
    throw ProbeError("a child wrote '" + fields[0] + "'");
  }
}

// In the child between fork and exec: nothing that allocates is left to do but this.
[[noreturn]] void become(const std::vector<std::string>& arguments,
                         const std::map<std::string, std::string>& environment, int rows_to) {
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  setenv(kRowsVariable, std::to_string(rows_to).c_str(), 1);
  std::string self = "/proc/self/exe";
  std::vector<std::string> copies = arguments;
  std::vector<char*> pointers = {self.data()};
  for (std::string& argument : copies) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(self.c_str(), pointers.data());
  _exit(127);
}

// Reads to the end of the pipe, or kills the child when the time is up.
void collect(int pipe_end, pid_t child, double timeout_seconds, ChildResult& result) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_seconds);
  char buffer[4096];
  for (;;) {
    const std::chrono::duration<double, std::milli> left = deadline - Clock::now();
    pollfd waiting{pipe_end, POLLIN, 0};
    const int ready = left.count() > 0 ? poll(&waiting, 1, static_cast<int>(left.count()) + 1) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      kill(child, SIGKILL);
      result.timed_out = true;
      return;
    }
    const ssize_t got = read(pipe_end, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    result.lines.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace

std::string to_lines(const Report& report) {
  std::string lines;
  for (const auto& [name, version] : report.software)
    lines += "software" + (kSeparator + flat(name)) + kSeparator + flat(version) + '\n';
  for (const Device& device : report.devices) {
    lines += "device" + (kSeparator + flat(device.kind)) + kSeparator + flat(device.name);
    append_labels(lines, device.facts);
    lines += '\n';
  }
  for (const Row& row : report.rows) lines += row_line(row) + '\n';
  for (const std::string& note : report.notes) lines += "note" + (kSeparator + flat(note)) + '\n';
  return lines;
}

void add_lines(const std::string& lines, Report& report) {
  std::istringstream stream(lines);
  try {
    for (std::string line; std::getline(stream, line);) add_line(line, report);
  } catch (const std::logic_error&) {  // of stoll and stod
    throw ProbeError("a child's row is cut off");
  }
}

bool send_to_parent(const Report& report) {
  const char* text = std::getenv(kRowsVariable);
  if (text == nullptr) return false;
  const int descriptor = std::atoi(text);
  const std::string lines = to_lines(report);
  for (std::size_t sent = 0; sent < lines.size();) {
    const ssize_t written = write(descriptor, lines.data() + sent, lines.size() - sent);
    if (written < 0 && errno != EINTR) fail_with_errno("writing to the parent");
    if (written > 0) sent += static_cast<std::size_t>(written);
  }
  return true;
}

ChildResult run_child(const std::vector<std::string>& arguments,
                      const std::map<std::string, std::string>& environment,
                      double timeout_seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail_with_errno("pipe");  // no other child holds it open
  const pid_t child = fork();
  if (child < 0) fail_with_errno("fork");
  if (child == 0) {
    fcntl(ends[1], F_SETFD, 0);
    become(arguments, environment, ends[1]);
  }
  close(ends[1]);
  ChildResult result;
  collect(ends[0], child, timeout_seconds, result);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace railyard::probe
