#include "calibrate/probes/common/error.h"

#include <cerrno>
#include <cstdio>
#include <exception>
#include <system_error>

namespace railyard::probe {

int run_probe(const std::string& tool, const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "%s: %s (see %s --help)\n", tool.c_str(), error.what(), tool.c_str());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", tool.c_str(), error.what());
    return 1;
  }
}

void fail_with_errno(const std::string& what) {
  throw ProbeError(what + ": " + std::generic_category().message(errno));
}

}  // namespace railyard::probe
