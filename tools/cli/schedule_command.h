// `railyard schedule check FILE`: proves a user-written schedule (ours or MSCCL's) with the
// data-flow checker, and says which collective it is or the first thing that is wrong.
#pragma once

#include <string>

#include "sim/result.h"

namespace railyard::cli {

struct ScheduleArguments {
  std::string file;
};

// What is proved, as text. Errors: the file cannot be read or used; it proves nothing.
sim::Result<std::string> schedule_check_text(const ScheduleArguments& arguments);

int schedule_command(const ScheduleArguments& arguments);

}  // namespace railyard::cli
