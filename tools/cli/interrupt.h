// Ctrl-C and SIGTERM: the first sets a flag that simulations poll, the second ends the program at
// once. The flag is the only state of the process that signals touch.
#pragma once

#include <atomic>

namespace railyard::cli {

void catch_interrupts();
const std::atomic<bool>& interrupted();

}  // namespace railyard::cli
