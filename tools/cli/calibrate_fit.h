// `railyard calibrate fit`: parameters of a platform from measurements of it.
#pragma once

#include <string>
#include <vector>

namespace railyard::cli {

struct FitArguments {
  // A scenario (machine, version, environment) and nccl-tests logs of it; or measured runs (.yaml),
  // which state their own platform.
  std::vector<std::string> files;
  std::vector<std::string> parameters;
  std::vector<std::string> sets;
  std::string out;  // profile to write; empty: none, the values are printed only
  std::string name;
  std::int64_t largest = 0;  // bytes: longer messages are left out; 0 = none
  bool part = false;         // only what was fitted, to be named behind the scenario's own profiles
  std::size_t most_parameters = 8;  // of one platform; a class of hardware may take more
  std::size_t jobs = 0;
};

int calibrate_fit_command(const FitArguments& arguments);

}  // namespace railyard::cli
