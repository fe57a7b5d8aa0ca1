// Bands of message sizes in which errors of predictions are told apart: S < 64 KiB <= M <= 16 MiB
// < L. Short messages are bound by latencies, long ones by rates, those between by both.
#pragma once

#include <array>
#include <cstdint>

#include "sim/enum_table.h"
#include "sim/units.h"

namespace railyard::sim {

enum class SizeBand : std::uint8_t { small, medium, large };
template <>
struct EnumTable<SizeBand> {
  static constexpr std::string_view kind = "size band";
  static constexpr std::array entries{EnumEntry{SizeBand::small, "S"},
                                      EnumEntry{SizeBand::medium, "M"},
                                      EnumEntry{SizeBand::large, "L"}};
};

constexpr SizeBand size_band(Bytes size) {
  if (size.raw() < 64 * 1024) return SizeBand::small;
  return size.raw() <= 16 * 1024 * 1024 ? SizeBand::medium : SizeBand::large;
}

}  // namespace railyard::sim
