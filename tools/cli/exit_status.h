// What the program's exit status says. Errors go to standard error as one line, "railyard: ...".
//
//   return fail(result.error());   // prints the line, gives the status
#pragma once

#include <string>
#include <string_view>

#include "sim/result.h"

namespace railyard::cli {

inline constexpr int kDone = 0;
inline constexpr int kBadInput = 1;       // a file or value that cannot be used; a limit was met
inline constexpr int kUsage = 2;          // the command line itself
inline constexpr int kWouldHang = 3;      // the simulated job never ends
inline constexpr int kInternal = 70;      // a fault of this program
inline constexpr int kInterrupted = 130;  // Ctrl-C or SIGTERM

int exit_status(sim::ErrorCode code);

// "railyard: <message>" on standard error.
void complain(std::string_view message);

// Complains about the error and returns its status.
int fail(const sim::Error& error);

// A fault of ours: asks for a report.
int fail_internal(std::string_view what);

// Flushes standard output and returns `status`, or kBadInput where the output could not be written.
int finish_output(int status);

}  // namespace railyard::cli
