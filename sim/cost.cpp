#include "sim/cost.h"

namespace railyard::sim {

Bytes wire_bytes(const ConnectionCost& cost, Bytes payload) {
  if (cost.wire_numerator == cost.wire_denominator) return payload;
  const Uint128 product = Uint128(static_cast<std::uint64_t>(payload.raw())) *
                          static_cast<std::uint64_t>(cost.wire_numerator);
  const auto divisor = static_cast<std::uint64_t>(cost.wire_denominator);
  return bytes(static_cast<std::int64_t>((product + divisor - 1) / divisor));
}

}  // namespace railyard::sim
