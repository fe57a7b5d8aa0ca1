// gzip files in memory: profilers write their traces compressed.
//
//   RAILYARD_ASSIGN(const std::string text, gunzip(bytes, "rank0.json.gz"));
//
// All members of the file are unpacked, one after the other, as gzip does. Cost: O(unpacked bytes).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sim/result.h"

namespace railyard::calibrate {

bool is_gzip(std::string_view bytes);

// Errors: damaged, cut off, more than `most` bytes unpacked, a tar archive inside.
sim::Result<std::string> gunzip(std::string_view packed, const std::string& name,
                                std::size_t most = std::size_t{8} << 30);

}  // namespace railyard::calibrate
