// A page of text about an NCCL log: who took part, over what, with which channels, and what NCCL
// chose, each with the line that says so.
//
//   std::fputs(nccl_log::summary(log).c_str(), stdout);
#pragma once

#include <string>

#include "calibrate/readers/nccl_log.h"

namespace railyard::calibrate::nccl_log {

// At most kSummaryCommunicators communicators in full, the first ones.
inline constexpr std::size_t kSummaryCommunicators = 8;
std::string summary(const Log& log);

}  // namespace railyard::calibrate::nccl_log
