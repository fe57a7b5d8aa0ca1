// Element types of tensors, and their sizes in bytes.
#pragma once

#include <cstdint>

#include "sim/enum_table.h"

namespace railyard::models {

enum class Dtype : std::uint8_t { fp64, fp32, tf32, bf16, fp16, fp8, int64, int32, int8, bool8 };

// Bytes of one element as stored; TF32 is a compute format kept in 32 bits.
constexpr std::int64_t element_size(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp64:
    case Dtype::int64: return 8;
    case Dtype::fp32:
    case Dtype::tf32:
    case Dtype::int32: return 4;
    case Dtype::bf16:
    case Dtype::fp16: return 2;
    case Dtype::fp8:
    case Dtype::int8:
    case Dtype::bool8: return 1;
  }
  return 0;
}

}  // namespace railyard::models

template <>
struct railyard::sim::EnumTable<railyard::models::Dtype> {
  using Dtype = railyard::models::Dtype;
  static constexpr std::string_view kind = "element type";
  static constexpr std::array entries{
      EnumEntry{Dtype::fp64, "fp64"},   EnumEntry{Dtype::fp32, "fp32"},
      EnumEntry{Dtype::tf32, "tf32"},   EnumEntry{Dtype::bf16, "bf16"},
      EnumEntry{Dtype::fp16, "fp16"},   EnumEntry{Dtype::fp8, "fp8"},
      EnumEntry{Dtype::int64, "int64"}, EnumEntry{Dtype::int32, "int32"},
      EnumEntry{Dtype::int8, "int8"},   EnumEntry{Dtype::bool8, "bool"}};
};
