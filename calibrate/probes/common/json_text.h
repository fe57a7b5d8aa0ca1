// JSON as text: just enough to write a report.
#pragma once

#include <string>
#include <string_view>

namespace railyard::probe {

// Quoted and escaped. Bytes that are not UTF-8 become U+FFFD, so that the text is valid JSON
// whatever a driver calls its device.
std::string json_string(std::string_view text);

// The shortest text that reads back as the same double; null for infinities and NaN.
std::string json_number(double value);

}  // namespace railyard::probe
