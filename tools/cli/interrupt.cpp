#include "tools/cli/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "tools/cli/exit_status.h"

namespace railyard::cli {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "used in a signal handler");

extern "C" void railyard_on_interrupt(int /*signal*/) {
  if (flag.exchange(true)) _exit(kInterrupted);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = railyard_on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

const std::atomic<bool>& interrupted() { return flag; }

}  // namespace railyard::cli
