// JSON as foreign tools write it, read without exceptions across a folder.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "sim/result.h"

namespace railyard::calibrate {

using Json = nlohmann::ordered_json;

// The document; errors with file, line and column ("the file ends in the middle of ...").
sim::Result<Json> parse_json(std::string_view text, const std::string& name);

// Values of an object by key, whatever type was written: a number may stand as a string.
// Absent, null or not a number: nothing.
std::optional<double> json_real(const Json& object, std::string_view key);
std::optional<std::int64_t> json_integer(const Json& object, std::string_view key);
std::string json_string(const Json& object, std::string_view key);  // empty if absent
// The value itself; null JSON if absent or if this is no object.
const Json& json_at(const Json& object, std::string_view key);

}  // namespace railyard::calibrate
