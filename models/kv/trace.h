// Traces of requests: lines of "seconds, input tokens, output tokens".
//
//   RAILYARD_ASSIGN(const auto requests, parse_kv_trace("0.5, 1024, 128\n", "day.csv"));
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/kv/serving.h"
#include "sim/result.h"

namespace railyard::models {

inline constexpr std::size_t kMaxKvRequests = 10'000'000;
inline constexpr std::int64_t kMaxKvTokens = 16'000'000;

// In any order; one title line of words, empty lines and lines that begin with '#' are left out.
// The result is sorted by arrival, ties as in the text. Errors name `name` and the line.
sim::Result<std::vector<KvRequest>> parse_kv_trace(std::string_view text, const std::string& name);

}  // namespace railyard::models
