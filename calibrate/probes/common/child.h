// Runs this program again with other arguments and environment, and collects what it found.
//
// NCCL reads its environment once per process, so that each setting needs a process of its own.
// The child writes one line per finding to the descriptor named by kRowsVariable; what it prints
// itself goes where the parent's output goes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibrate/probes/common/report.h"

namespace railyard::probe {

inline constexpr char kRowsVariable[] = "RAILYARD_PROBE_ROWS_TO";

// Findings as lines, without newlines inside; the order of rows is kept.
std::string to_lines(const Report& report);
// Adds what the lines say. Throws ProbeError on a line that no to_lines wrote.
void add_lines(const std::string& lines, Report& report);

// In the child: sends a report's findings to the parent. False when this process is no child.
bool send_to_parent(const Report& report);

struct ChildResult {
  int status = 0;          // exit status; 128 + signal
  bool timed_out = false;  // and was killed
  std::string lines;       // for add_lines
};

// `arguments` without the program's name. `environment` is set in the child alone.
ChildResult run_child(const std::vector<std::string>& arguments,
                      const std::map<std::string, std::string>& environment,
                      double timeout_seconds);

}  // namespace railyard::probe
