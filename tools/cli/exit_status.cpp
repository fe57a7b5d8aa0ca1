#include "tools/cli/exit_status.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sim/version.h"

namespace railyard::cli {

int exit_status(sim::ErrorCode code) {
  switch (code) {
    case sim::ErrorCode::bad_input:
    case sim::ErrorCode::unsupported:
    case sim::ErrorCode::io: return kBadInput;
    case sim::ErrorCode::would_hang: return kWouldHang;
    case sim::ErrorCode::interrupted: return kInterrupted;
  }
  return kInternal;
}

void complain(std::string_view message) {
  const std::string line = fmt::format("railyard: {}\n", message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

int fail(const sim::Error& error) {
  complain(error.text());
  return exit_status(error.code);
}

int fail_internal(std::string_view what) {
  complain(fmt::format("internal error: {}", what));
  complain(
      fmt::format("this is a fault of railyard {}, not of your input; please report it with "
                  "the command line and the scenario",
                  sim::kVersion));
  return kInternal;
}

int finish_output(int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  complain(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  return status == kDone ? kBadInput : status;
}

}  // namespace railyard::cli
