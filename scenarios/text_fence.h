// What a text must be before a parser sees it, and how foreign text appears in messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sim/result.h"

namespace railyard::scenarios {

// Not empty, within kMaxFileBytes, UTF-8 without control characters, no tab in indentation. An
// error gives line and column of the first offence. O(size).
sim::Result<void> check_text(std::string_view text, const std::string& name);

// `text` on one line: control characters become '?', and what exceeds `limit` bytes is cut ("...").
std::string printable(std::string_view text, std::size_t limit);

}  // namespace railyard::scenarios
