// DDP's communication hooks that change what is on the wire
// (torch/distributed/algorithms/ddp_comm_hooks/default_hooks.py).
#pragma once

#include <array>
#include <cstdint>

#include "sim/enum_table.h"

namespace railyard::models {

enum class CommHook : std::uint8_t { none, fp16_compress, bf16_compress };

}  // namespace railyard::models

template <>
struct railyard::sim::EnumTable<railyard::models::CommHook> {
  using CommHook = railyard::models::CommHook;
  static constexpr std::string_view kind = "communication hook";
  static constexpr std::array entries{EnumEntry{CommHook::none, "none"},
                                      EnumEntry{CommHook::fp16_compress, "fp16_compress"},
                                      EnumEntry{CommHook::bf16_compress, "bf16_compress"}};
};
