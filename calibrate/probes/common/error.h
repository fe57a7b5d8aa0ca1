// How probes fail. They are small programs that must build on a bare GPU machine, so they do not
// use sim::Result: anything that ends a run throws, and run_probe() turns it into one line on
// stderr, "probe_x: what", and an exit status.
//
//   0 done, 1 hardware or library missing or failed (ProbeError), 2 wrong arguments (UsageError).
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace railyard::probe {

struct ProbeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Runs `body` and returns the program's exit status.
int run_probe(const std::string& tool, const std::function<void()>& body);

// "what: No such file or directory", from errno.
[[noreturn]] void fail_with_errno(const std::string& what);

}  // namespace railyard::probe
