// Shared by the tests of tools/: results made by hand, a directory for files, and the program run
// as a user runs it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/run.h"
#include "scenarios/scenario.h"

namespace railyard::tests {

// Two ranks, three iterations, two buckets; every number is a round one.
scenarios::RunResult ddp_result();
// AllReduce of 1 KiB and 2 KiB, then one AllGather.
scenarios::RunResult collective_result();
// Four flows of 1 MiB that take 10, 20, 30 and 40 us.
scenarios::RunResult flow_result();

// A scenario that needs no file beside it.
scenarios::Scenario small_scenario();

// The text of a scenario file that runs in milliseconds: AllReduce on four GPUs of one switch.
// `more` follows, for instance an `explore:` block.
std::string small_yaml(std::string_view more = "");

// A fresh directory, removed with all it holds at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string write(const std::string& name, std::string_view text) const;  // returns its path
  [[nodiscard]] std::string read(const std::string& name) const;            // "" if there is none
  [[nodiscard]] std::string path(const std::string& name = "") const;
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names() const;  // sorted

 private:
  std::filesystem::path directory_;
};

struct Outcome {
  int status = -1;  // exit status, or -signal
  std::string out;
  std::string err;
};

// The program under way, its working directory being `directory`.
class Program {
 public:
  Program(const TemporaryDirectory& directory, const std::vector<std::string>& arguments);
  void send(int signal) const;
  Outcome wait();

 private:
  const TemporaryDirectory& directory_;
  std::string name_;
  pid_t pid_ = -1;
};

Outcome run_program(const TemporaryDirectory& directory, const std::vector<std::string>& arguments);

bool contains(std::string_view text, std::string_view part);
std::vector<std::string> lines(std::string_view text);

}  // namespace railyard::tests
