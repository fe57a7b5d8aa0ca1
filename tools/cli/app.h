// The whole command line: parses the arguments, runs the command, gives the exit status.
#pragma once

namespace railyard::cli {

int run_app(int argc, const char* const* argv);

}  // namespace railyard::cli
