// `railyard calibrate read FILE...`: what measurement logs of other tools hold: which tool, which
// test, ranks, sizes, and what is wrong with them. Traces of several ranks are merged.
#pragma once

#include <string>
#include <vector>

#include "sim/result.h"

namespace railyard::cli {

struct CalibrateReadArguments {
  std::vector<std::string> files;
  bool json = false;
};

struct CalibrateReadReport {
  std::string text;
  std::vector<std::string> complaints;  // one for each file that could not be read
};
CalibrateReadReport calibrate_read_report(const CalibrateReadArguments& arguments);

int calibrate_read_command(const CalibrateReadArguments& arguments);

}  // namespace railyard::cli
