// What `railyard help TOPIC` prints: the names a scenario may use, read from the tables that the
// program itself uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"

namespace railyard::cli {

struct HelpTopic {
  std::string_view name;
  std::string_view summary;
  std::string (*text)();
};

const std::vector<HelpTopic>& help_topics();

// The text of one topic; an unknown name is an error with a hint.
sim::Result<std::string> help_topic(std::string_view name);

// "railyard help machines      the machine catalogue" ... for the end of --help.
std::string help_topics_footer();

}  // namespace railyard::cli
