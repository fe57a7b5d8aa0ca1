// `railyard validate`: every run of a set of measurements predicted, and how far off that is.
#pragma once

#include <string>
#include <vector>

namespace railyard::cli {

struct ValidateArguments {
  std::string reference;  // folder of measured runs; default: what is found beside the checkout
  std::string runs;       // shell pattern of run ids; empty = all
  std::vector<std::string> sets;
  std::string log;       // of nccl-tests, with `scenario`
  std::string scenario;  // the platform of the log
  std::string html;      // page to write
  std::string journal;   // finished runs, for going on after an interruption
  bool json = false;
  bool rows = false;     // every row as text
  std::size_t jobs = 0;  // 0 = all processors
  double timeout_seconds = 0;
};

int validate_command(const ValidateArguments& arguments);

}  // namespace railyard::cli
