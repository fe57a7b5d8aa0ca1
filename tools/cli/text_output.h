// One text file as a result.
#pragma once

#include <string>

#include "sim/result.h"

namespace railyard::cli {

// Complete or not at all: written beside the target, then renamed.
sim::Result<void> write_text(const std::string& path, const std::string& text);

}  // namespace railyard::cli
